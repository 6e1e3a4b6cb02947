//! Calls each function and method of `aneforge-sys` once, with values that a wrong width or order would change.
//!
//! `aneforge-darwin-abi LIBRARY` runs anywhere; its purpose is arm64, whose convention packs small arguments on the stack, in the
//! CPU emulator of `scripts/darwin.sh`. The library is the fake without its engine: every program copies its input. So nothing here
//! reads a file.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aneforge_sys::ane::{
    AppleNeuralEngine, Client, Descriptor, InMemoryModel, Model, PerformanceStats, Request, SurfaceObject, Weights,
};
use aneforge_sys::e5rt::{
    Buffer, BufferKind, Compiler, Config, Event, Library, Operation, OperationOptions, Options, Runtime, Stream,
};
use aneforge_sys::energy::{EnergyReader, Rail};
use aneforge_sys::objc::{Data, Dictionary, Item, Value};
use aneforge_sys::surface::Surface;
use aneforge_sys::{Frameworks, Source, SysError};
use serde_json::{Value as Json, json};

/// Bytes of the one input and output of the fake's program.
const BYTES: usize = 49_152;

type Outcome = Result<(), Box<dyn Error>>;
type Step = fn(&Frameworks) -> Outcome;

fn main() -> ExitCode {
    let Some(library) = std::env::args().nth(1) else {
        eprintln!("usage: aneforge-darwin-abi LIBRARY");
        return ExitCode::from(2);
    };
    match run(Path::new(&library)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            // What the fake saw go wrong often says why.
            if let Ok(counters) = aneforge_fake_client::control(Path::new(&library), &json!({ "get": "counters" })) {
                eprintln!("violations: {}", counters["violations"]);
            }
            ExitCode::FAILURE
        }
    }
}

fn run(library: &Path) -> Outcome {
    let frameworks = Frameworks::open(&Source::Library(library.to_path_buf()))?;
    println!("chip {}, system {}", frameworks.chip_name()?, frameworks.os_build()?);
    println!("engine {:?}", frameworks.engine_subtype()?);
    let inventory = frameworks.inventory();
    for (part, lookups) in &inventory {
        let found = lookups.iter().filter(|lookup| lookup.found).count();
        println!("{part}: {found} of {} found", lookups.len());
        for lookup in lookups {
            hold(lookup.found || !lookup.required, &format!("{} is there", lookup.item))?;
            hold(lookup.types.is_none(), &format!("types of {}: {:?}", lookup.item, lookup.types))?;
        }
    }
    let steps: [(&str, Step); 5] =
        [("Foundation", foundation), ("e5rt", e5rt), ("in memory", in_memory), ("client", client), ("energy", energy)];
    for (name, step) in steps {
        step(&frameworks).map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: ok");
    }
    drop(inventory);
    drop(frameworks);
    clean(library)
}

/// Holds that the fake was used as its frameworks are to be used, and that everything was given back.
fn clean(library: &Path) -> Outcome {
    let counters = aneforge_fake_client::control(library, &json!({ "get": "counters" }))?;
    hold(counters["messages"].as_u64() > Some(100), "the counters are those of this process")?;
    for (name, wanted) in [("violations", json!([])), ("live", json!({})), ("loaded_programs", json!(0))] {
        let found = counters.get(name).unwrap_or(&Json::Null);
        hold(*found == wanted, &format!("{name} are {wanted}, found {found}"))?;
    }
    Ok(())
}

fn hold(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}").into()) }
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|index| (index * 7 % 251) as u8).collect()
}

fn foundation(frameworks: &Frameworks) -> Outcome {
    let objective_c = frameworks.objective_c()?;
    let owner = Arc::new(vec![1u8, 2, 3]);
    let shared = Data::shared(&objective_c, owner.clone())?;
    let dictionary = Dictionary::new(
        &objective_c,
        &[
            ("text", Item::Text("größe".to_string())),
            ("whole", Item::Integer(-0x1234_5678_9abc)),
            ("truth", Item::Boolean(true)),
            ("lie", Item::Boolean(false)),
            ("fraction", Item::Real(-2.75)),
            ("copied", Item::Data(Data::copy_of(&objective_c, &[9, 8])?)),
            ("shared", Item::Data(shared)),
        ],
    )?;
    let value = dictionary.read()?;
    let expected = [
        ("text", Value::Text("größe".to_string())),
        ("whole", Value::Integer(-0x1234_5678_9abc)),
        ("truth", Value::Integer(1)),
        ("lie", Value::Integer(0)),
        ("fraction", Value::Real(-2.75)),
        ("copied", Value::Data(vec![9, 8])),
        ("shared", Value::Data(vec![1, 2, 3])),
    ];
    for (key, expected) in &expected {
        hold(value.get(key) == Some(expected), &format!("{key} is {expected:?}, found {:?}", value.get(key)))?;
    }
    drop(dictionary);
    hold(Arc::strong_count(&owner) == 1, "borrowed bytes are given back")
}

fn e5rt(frameworks: &Frameworks) -> Outcome {
    let runtime = frameworks.e5rt()?;
    let mut compiler = Compiler::new(&Config::new(&runtime, Path::new("/cache"))?)?;
    let mut options = Options::new(&runtime)?;
    options.set_devices(Options::ENGINE)?;
    hold(options.devices()? == Options::ENGINE, "the device mask comes back")?;
    options.set_force_recompilation(true)?;
    options.set_segmenter("graph")?;
    options.set_custom_engine_options("TargetArchitecture=h13")?;
    options.set_profiling(false)?;
    let mut plain = Event::new(&runtime, "plain", 0)?;
    plain.signal()?;
    plain.wait()?;
    hold(plain.last_signaled()? == 1, "a signalled event")?;
    plain.set_active_future_value(0x1_0000_0007)?;
    plain.signal()?;
    hold(plain.last_signaled()? == 0x1_0000_0007, "the value of an event that was set")?;
    let mut empty = Stream::new(&runtime)?;
    empty.set_quality_of_service(21)?;
    empty.set_priority(5)?;
    let library = compiler.compile(Path::new("/program/model.mil"), &options)?;
    program(&runtime, &library, &plain)?;
    program(&runtime, &Library::open(&runtime, Path::new("/cache/bundle"))?, &plain)
}

/// Runs the one function of a library, at once and as a submission that waits for a signalled event.
fn program(runtime: &Arc<Runtime>, library: &Library, before: &Event) -> Outcome {
    hold(library.function_names()? == ["main"], "one function, main")?;
    let mut function = library.function("main")?;
    hold(function.name()? == "main", "its name")?;
    function.load()?;
    let mut options = OperationOptions::new(function)?;
    options.set_name("main")?;
    options.set_allocate_intermediate_buffers(true)?;
    let mut operation = Operation::new(options)?;
    let input = Buffer::allocate(runtime, BYTES, BufferKind::Host)?;
    hold(input.reported_size()? == BYTES as u64, "the size of a buffer")?;
    let output = Buffer::allocate(runtime, BYTES, BufferKind::Mapped)?;
    operation.input_port("x")?.bind(&input)?;
    operation.output_port("y")?.bind(&output)?;
    let event = Event::new(runtime, "op0_complete", 3)?;
    operation.bind_completion_event(&event)?;
    operation.bind_dependent_events(std::slice::from_ref(before))?;
    let mut stream = Stream::new(runtime)?;
    stream.encode(&mut operation)?;
    input.memory().write(0, &pattern())?;
    stream.execute()?;
    hold(output.memory().with(|bytes| bytes == pattern())?, "the output is the input")?;
    output.memory().clear()?;
    stream.submit()?;
    stream.wait()?;
    hold(output.memory().with(|bytes| bytes == pattern())?, "the submission's output is the input")?;
    hold(event.last_signaled()? == 4, "the event's value")?;
    stream.reset()?;
    operation.prepare()?;
    stream.encode(&mut operation)?;
    stream.execute()?;
    Ok(())
}

/// Two surfaces, the first with the pattern, and a request on them.
fn request(engine: &Arc<AppleNeuralEngine>, input: u64, output: u64) -> Result<(Surface, Request), Box<dyn Error>> {
    let (from, to) = (Surface::new(engine.surfaces(), BYTES)?, Surface::new(engine.surfaces(), BYTES)?);
    hold(from.identifier() != to.identifier(), "surfaces have numbers of their own")?;
    from.memory().write(0, &pattern())?;
    let (from, to_object) = (SurfaceObject::new(engine, &from)?, SurfaceObject::new(engine, &to)?);
    Ok((to, Request::new(engine, &[(input, &from)], &[(output, &to_object)], 0)?))
}

fn in_memory(frameworks: &Frameworks) -> Outcome {
    let engine = frameworks.in_memory()?;
    let mut weights = Weights::new();
    weights.add("@model_path/weights/weight.bin", Data::copy_of(engine.objective_c(), &[0; 128])?);
    let descriptor = Descriptor::from_text(&engine, "program(1.3) {}", &weights)?;
    let mut model = InMemoryModel::new(&descriptor)?;
    hold(model.hex_identifier()?.len() == 3 * 64 + 2, "the identifier's length")?;
    hold(model.local_path()?.is_absolute(), "the folder's path")?;
    model.compile(AppleNeuralEngine::USUAL_QUALITY, engine.no_options())?;
    model.set_queue_depth(127)?;
    model.set_performance_mask(15)?;
    model.load(AppleNeuralEngine::USUAL_QUALITY, engine.no_options())?;
    hold(model.state()? == 3, "the state of a loaded model")?;
    hold(matches!(model.attributes()?, Value::Dictionary(_)), "attributes are a dictionary")?;
    let (output, mut request) = request(&engine, 0, 0)?;
    hold(request.validate()?, "the request is in order")?;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    request.set_completion(Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }))?;
    model.evaluate(AppleNeuralEngine::USUAL_QUALITY, &mut request)?;
    hold(output.memory().with(|bytes| bytes == pattern())?, "the output is the input")?;
    hold(count.load(Ordering::Relaxed) == 1, "the completion handler ran once")?;
    model.unload()?;
    hold(!model.is_loaded(), "an unloaded model")?;
    model.compiled_exists()?;
    // The longest message: nine arguments, one of them on the stack.
    let surface = Surface::new(engine.surfaces(), BYTES)?;
    let object = SurfaceObject::new(&engine, &surface)?;
    // Reported to give nil; the call is what matters here.
    let stats = PerformanceStats::new(&engine);
    hold(matches!(stats, Ok(_) | Err(SysError::Nothing { .. })), "statistics are there or nil")?;
    let long = Request::with_extras(&engine, &[(0, &object)], &[(0, &object)], 7, Some(&object), stats.as_ref().ok())?;
    long.validate()?;
    long.hardware_nanoseconds()?;
    network(&engine)
}

/// A model of a network, whose surfaces can be mapped before it runs, as the client's model.
fn network(engine: &Arc<AppleNeuralEngine>) -> Outcome {
    let mut weights = Weights::new();
    weights.add("weights.0", Data::copy_of(engine.objective_c(), &[0; 128])?);
    let mut model = InMemoryModel::new(&Descriptor::from_network(engine, b"<plist/>", &weights)?)?;
    model.compile(AppleNeuralEngine::USUAL_QUALITY, engine.no_options())?;
    model.load(AppleNeuralEngine::USUAL_QUALITY, engine.no_options())?;
    let (output, mut request) = request(engine, 0, 0)?;
    model.map_surfaces(&request, true)?;
    Client::shared(engine)?.evaluate(&mut model, &mut request, AppleNeuralEngine::USUAL_QUALITY)?;
    hold(output.memory().with(|bytes| bytes == pattern())?, "the output is the input")?;
    model.unmap_surfaces(&request)?;
    let inner = model.inner()?;
    hold(inner.program_handle()? != 0, "a loaded program has a handle")?;
    hold(inner.input_symbols(0)?.len() == 1, "one symbol for the one input")?;
    drop(inner);
    model.unload()?;
    Ok(())
}

fn client(frameworks: &Frameworks) -> Outcome {
    let engine = frameworks.in_memory()?;
    for client in [Client::shared(&engine)?, Client::direct(&engine)?] {
        let mut model = Model::new(&engine, Path::new("/program"), "s")?;
        client.compile(&mut model, &engine.mil_options()?, AppleNeuralEngine::USUAL_QUALITY)?;
        client.compiled_exists(&model)?;
        client.load(&mut model, engine.no_options(), AppleNeuralEngine::USUAL_QUALITY)?;
        hold(model.is_loaded() && model.program_handle()? != 0, "a loaded model has a handle")?;
        hold(matches!(model.attributes()?, Value::Dictionary(_)), "attributes are a dictionary")?;
        model.set_performance_mask(15)?;
        let symbols = (model.input_symbols(0)?, model.output_symbols(0)?);
        let (Some(input), Some(output)) = (symbols.0.first(), symbols.1.first()) else {
            return Err("a loaded model has no symbols".into());
        };
        let (surface, mut request) = request(&engine, *input, *output)?;
        client.evaluate(&mut model, &mut request, AppleNeuralEngine::USUAL_QUALITY)?;
        hold(surface.memory().with(|bytes| bytes == pattern())?, "the output is the input")?;
        client.evaluate_directly(&mut model, &mut request, AppleNeuralEngine::USUAL_QUALITY)?;
        model.unload()?;
    }
    Ok(())
}

fn energy(frameworks: &Frameworks) -> Outcome {
    let mut reader = EnergyReader::new(&frameworks.energy()?)?;
    let first = reader.sample()?;
    let readings = reader.sample()?.since(&first)?;
    hold(!readings.channels.is_empty(), "there are channels")?;
    for rail in [Rail::Engine, Rail::Cpu, Rail::Gpu, Rail::Memory] {
        println!("{rail:?}: {:?} J", readings.joules(rail)?);
    }
    hold(matches!(readings.engine_bytes(), (Some(_), Some(_))), "the engine's traffic is counted")
}
