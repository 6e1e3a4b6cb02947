//! The engine's device on the fake: the emulator's bits on every route and under both profiles, and nothing left behind.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_compile::{CompileOptions, Compiled, compile};
use aneforge_core::{DType, Graph, HostArray, sdpa};
use aneforge_runtime::ane::{AneOptions, AneRoute};
use aneforge_runtime::{Device, DeviceError, Program, open};
use aneforge_testkit::fake;
use common::engine::{Engine, ROUTES, assert_clean, engine, engine_with, outputs};
use common::{inputs, literal, program};
use serde_json::json;
use std::sync::Arc;

const NETWORK_INPUT: &str = "tensor<fp16, [1, 8, 12, 12]> x";

fn network() -> Arc<Program> {
    let statements = format!(
        r#"tensor<fp16, [1, 8, 12, 12]> c = conv(x = x, weight = {}, strides = tensor<int32, [2]>([1, 1]), pad_type = string("custom"), pad = tensor<int32, [4]>([1, 1, 1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1))[name = string("c")];
        tensor<fp16, [1, 8, 12, 12]> r = relu(x = c)[name = string("r")];
        tensor<fp16, [1, 8, 144]> f = reshape(x = r, shape = tensor<int32, [3]>([1, 8, 144]))[name = string("f")];
        tensor<fp16, [1, 144, 8]> t = transpose(x = f, perm = tensor<int32, [3]>([0, 2, 1]))[name = string("t")];
        tensor<fp16, [1, 144, 16]> l = linear(x = t, weight = {}, bias = {})[name = string("l")];
        tensor<fp16, [1, 144, 16]> s = softmax(x = l, axis = int32(-1))[name = string("s")];
        tensor<fp16, [1, 16]> y = reduce_sum(x = s, axes = tensor<int32, [1]>([1]), keep_dims = bool(false))[name = string("y")];"#,
        literal(&[8, 8, 3, 3], 1, (-0.4, 0.4)),
        literal(&[16, 8], 2, (-0.5, 0.5)),
        literal(&[16], 3, (-0.5, 0.5)),
    );
    program(NETWORK_INPUT, &statements, "s, y")
}

const ACCUMULATOR: (&str, &str) = (
    "tensor<fp16, [1, 32]> x, state<tensor<fp16, [1, 32]>> sum",
    "tensor<fp16, [1, 32]> before = read_state(input = sum);
     tensor<fp16, [1, 32]> after = add(x = before, y = x);
     write_state(input = sum, data = after);
     tensor<fp16, [1, 32]> y = mul(x = after, y = fp16(0x1p1));",
);

fn each(mut work: impl FnMut(&Engine)) {
    for route in ROUTES {
        for (chip, profile) in [("m1", "strict"), ("m1", "agreed"), ("m5", "strict")] {
            let engine = engine(route, json!({ "chip": chip, "profile": profile }));
            work(&engine);
            assert_clean();
        }
    }
}

fn equal_to_the_emulator(engine: &Engine, program: &Arc<Program>) {
    let drawn = inputs(program, 7, (-2.0, 2.0));
    let (own, emulated) = (engine.load(program), engine.emulator().load(program).unwrap());
    for _ in 0..2 {
        assert_eq!(outputs(&own, &drawn), outputs(&emulated, &drawn), "{}", own.report().device);
    }
}

#[test]
fn a_network_gives_the_emulators_bits_as_it_stands() {
    each(|engine| {
        let program = engine.program(network().body().clone()).unwrap();
        equal_to_the_emulator(engine, &program);
        let report = engine.load(&program).report();
        let own = report.engine.unwrap();
        assert!(!own.translated, "the bundle was compiled for this engine");
        assert_eq!(own.chip, engine.device.chip().unwrap().product);
    });
}

#[test]
fn a_generic_program_is_compiled_for_the_chip_when_it_is_loaded_and_that_is_told() {
    each(|engine| {
        let executable = engine.load(&network());
        let drawn = inputs(&network(), 3, (-2.0, 2.0));
        let compiled = engine.program(network().body().clone()).unwrap();
        let emulated = engine.emulator().load(&compiled).unwrap();
        assert_eq!(outputs(&executable, &drawn), outputs(&emulated, &drawn));
        assert!(executable.report().engine.unwrap().translated);
    });
}

#[test]
fn a_program_for_another_chip_is_refused() {
    let first = engine(AneRoute::E5rt, json!({ "chip": "m5" }));
    let program = first.program(network().body().clone()).unwrap();
    drop(first);
    let second = engine(AneRoute::E5rt, json!({ "chip": "m1" }));
    let error = second.device.load(&program).err().unwrap().to_string();
    assert!(error.contains("m5") && error.contains("m1") && error.contains("generic"), "{error}");
}

#[test]
fn states_stay_in_place_and_the_host_copies_none_of_them() {
    each(|engine| {
        let stateful = program(ACCUMULATOR.0, ACCUMULATOR.1, "y");
        let (own, emulated) = (engine.load(&stateful), open("emulator:m1").unwrap().load(&stateful).unwrap());
        for step in 0..4 {
            let drawn = inputs(&stateful, step, (-2.0, 2.0));
            assert_eq!(outputs(&own, &drawn), outputs(&emulated, &drawn));
            assert_eq!(own.states().read("sum").unwrap(), emulated.states().read("sum").unwrap());
        }
        let stats = own.report().engine.unwrap().stats;
        assert_eq!((stats.copied_state, stats.copied_between), (0, 0));
        assert_eq!((stats.copied_in, stats.copied_out, stats.commands), (4 * 64, 4 * 64, 4));
        own.reset();
        assert_eq!(own.states().read("sum").unwrap(), [0; 64]);
        own.states().write("sum", &[1; 64]).unwrap();
        assert_eq!(own.states().read("sum").unwrap(), [1; 64]);
        // The states of an executable are those of its bindings.
        let mut bound = own.bind().unwrap();
        bound.execute().unwrap();
        assert_eq!(own.states().read("sum").unwrap(), [1; 64], "x is zero in a new binding");
    });
}

#[test]
fn bound_buffers_accumulate_and_programs_share_them() {
    each(|engine| {
        let add = r#"tensor<fp16, [1, 32]> y = add(x = x, y = s)[name = string("y")];"#;
        let adder = program("tensor<fp16, [1, 32]> x, tensor<fp16, [1, 32]> s", add, "y");
        let double = program(
            "tensor<fp16, [1, 32]> x",
            r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16(0x1p1))[name = string("y")];"#,
            "y",
        );
        let (adder, double) = (engine.load(&adder), engine.load(&double));
        let (mut adder, mut double) = (adder.bind().unwrap(), double.bind().unwrap());
        let ones = HostArray::fp16_from_f32([1, 32], &[1.0; 32]).unwrap();
        adder.input(0).unwrap().write(0, ones.bytes()).unwrap();
        let sum = adder.output(0).unwrap().clone();
        adder.set_input(1, sum.clone()).unwrap();
        double.set_input(0, sum.clone()).unwrap();
        for round in 1..=3 {
            adder.execute().unwrap();
            double.execute().unwrap();
            let mut result = vec![0; 64];
            double.output(0).unwrap().read(0, &mut result).unwrap();
            let wanted = HostArray::fp16_from_f32([1, 32], &[2.0 * round as f32; 32]).unwrap();
            assert_eq!(result, wanted.bytes());
        }
        let error = adder.set_input(0, aneforge_runtime::Buffer::host(1 << 16).unwrap()).unwrap_err();
        assert!(matches!(&error, DeviceError::Binding { .. }), "{error}");
        adder.execute().unwrap();
    });
}

#[test]
fn programs_with_native_layers_run_in_segments_with_the_emulators_bits() {
    for route in ROUTES {
        for profile in ["strict", "agreed"] {
            let engine = engine(route, json!({ "chip": "m2", "profile": profile }));
            let graph = Graph::new();
            let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, DType::Fp16, &[1, 2, 4, 8]));
            let attended = sdpa(&q.tanh(), &k, &v, None, None, true);
            let sorted = (attended.clone() * 0.5).sort(true);
            let options = CompileOptions { target: engine.device.target(), ..CompileOptions::default() };
            let compiled = compile(&[("attended", &attended), ("sorted", &sorted.relu())], &options).unwrap();
            let folder = engine.cache.path().join("bundle");
            compiled.write(&folder).unwrap();
            let program = Arc::new(Program::open(&folder).unwrap());
            equal_to_the_emulator(&engine, &program);
            let report = engine.load(&program).report();
            assert!(report.segments.len() > 1 && report.segments.iter().any(|segment| segment.kind == "native"));
            assert_eq!(report.engine.unwrap().routes.len(), report.segments.len());
            drop(program);
            assert_clean();
        }
    }
}

#[test]
fn the_order_of_symbols_does_not_matter() {
    let two = r#"tensor<fp16, [1, 32]> z = sub(x = b, y = a)[name = string("z")];
        tensor<fp16, [1, 32]> y = mul(x = b, y = fp16(0x1p2))[name = string("y")];"#;
    for route in [AneRoute::InMemory, AneRoute::Client] {
        for order in ["sorted", "declared", "reversed"] {
            let engine = engine(route, json!({ "symbol_order": order }));
            let body = program("tensor<fp16, [1, 32]> b, tensor<fp16, [1, 32]> a", two, "z, y").body().clone();
            equal_to_the_emulator(&engine, &engine.program(body).unwrap());
            assert_clean();
        }
    }
}

#[test]
fn the_cache_serves_a_second_process_without_a_compilation_in_memory() {
    let engine = engine(AneRoute::InMemory, json!({}));
    let program = engine.program(network().body().clone()).unwrap();
    let drawn = inputs(&program, 7, (-2.0, 2.0));
    let first = engine.load(&program);
    let wanted = outputs(&first, &drawn);
    let used = engine.device.usage().compilations;
    let stats = first.report().engine.unwrap();
    assert!(!stats.cached && stats.stats.compilations == 1);
    drop(first);
    // Nothing of the first is left in this process: what is loaded now comes from the files that it kept.
    let second = engine.load(&program);
    let stats = second.report().engine.unwrap();
    assert!(stats.cached && stats.stats.compilations == 0);
    assert_eq!(engine.device.usage().compilations, used);
    assert_eq!(outputs(&second, &drawn), wanted);
}

#[test]
fn least_recently_used_programs_leave_below_the_limit_and_come_back() {
    for route in ROUTES {
        let options = AneOptions { route, loaded_programs: 4, compilations: 1000, ..AneOptions::default() };
        let engine = engine_with(json!({ "limits": { "programs": 5, "compiles": 1000 } }), options);
        let programs: Vec<_> = (1..=9)
            .map(|factor| {
                let text = format!(r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16({factor}))[name = string("y")];"#);
                engine.load(&program("tensor<fp16, [1, 32]> x", &text, "y"))
            })
            .collect();
        let ones = [HostArray::fp16_from_f32([1, 32], &[1.0; 32]).unwrap()];
        for _ in 0..2 {
            for (index, executable) in programs.iter().enumerate() {
                let wanted = HostArray::fp16_from_f32([1, 32], &[(index + 1) as f32; 32]).unwrap();
                assert_eq!(outputs(executable, &ones)[0], wanted.bytes());
            }
        }
        assert!(engine.device.usage().loaded <= 4 && engine.device.usage().evicted >= 5);
        drop(programs);
        assert_clean();
    }
}

#[test]
fn commands_of_many_threads_are_on_the_engine_one_at_a_time() {
    let engine = engine(AneRoute::E5rt, json!({}));
    let executables: Vec<_> = (0..4).map(|_| engine.load(&network())).collect();
    let drawn = inputs(&network(), 3, (-2.0, 2.0));
    let wanted = outputs(&executables[0], &drawn);
    std::thread::scope(|scope| {
        for executable in &executables {
            for _ in 0..2 {
                scope.spawn(|| (0..5).for_each(|_| assert_eq!(outputs(executable, &drawn), wanted)));
            }
        }
    });
    assert_eq!(fake::counters()["most_in_flight"], 1);
}

#[test]
fn nothing_lives_when_the_device_is_gone() {
    for route in ROUTES {
        let engine = engine(route, json!({}));
        let executable = engine.load(&network());
        // What is loaded keeps what it needs, the device included.
        drop(engine);
        let drawn = inputs(&network(), 3, (-2.0, 2.0));
        outputs(&executable, &drawn);
        drop(executable);
        fake::assert_clean();
    }
}

/// Two functions on one weight of 4 kB, and the folder of their bundle.
fn two_functions(engine: &Engine) -> std::path::PathBuf {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 32]);
    let values: Vec<f32> = (0..64 * 32).map(|index| ((index * 13) % 29) as f32 / 64.0 - 0.2).collect();
    let product = x.linear(&graph.constant(&HostArray::from_f32([64, 32], &values).unwrap()), None);
    let options = CompileOptions { target: engine.device.target(), ..CompileOptions::default() };
    let plain = compile(&[("y", &product)], &options).unwrap();
    let shares = compile(&[("y", &product.softmax(-1)), ("z", &product.relu())], &options).unwrap();
    let folder = engine.cache.path().join("functions");
    let manifest = Compiled::write_functions(&[("main", &plain), ("shares", &shares)], &folder).unwrap();
    let weights = manifest.files.iter().find(|file| file.name == "weights.bin").unwrap().bytes;
    assert!(weights < 2 * 4096, "the weight stands in the file once: {weights}");
    let twice = Compiled::write_functions(&[("main", &plain), ("main", &plain)], &folder).unwrap_err().to_string();
    assert!(twice.contains("given twice"), "{twice}");
    folder
}

#[test]
fn functions_of_one_bundle_share_its_weights_and_its_compilation() {
    each(|engine| {
        let folder = two_functions(engine);
        let [plain, shares] = ["main", "shares"].map(|name| Arc::new(Program::open_function(&folder, name).unwrap()));
        assert_eq!(Program::open(&folder).unwrap().body().outputs.len(), 1, "main is what is opened without a name");
        let loaded = [engine.load(&plain), engine.load(&shares)];
        for (program, own) in [&plain, &shares].into_iter().zip(&loaded) {
            let drawn = inputs(program, 5, (-2.0, 2.0));
            let emulated = engine.emulator().load(program).unwrap();
            assert_eq!(outputs(own, &drawn), outputs(&emulated, &drawn), "{}", engine.device.name());
            assert!(!own.report().engine.unwrap().translated);
        }
        if engine.device.name().contains("e5rt") {
            assert_eq!(fake::counters()["compiles"], json!(1), "the second function was there");
        }
        let unknown = Program::open_function(&folder, "other").unwrap_err().to_string();
        assert!(unknown.contains("other") && unknown.contains("shares"), "{unknown}");
    });
}

#[test]
fn a_program_with_too_many_weights_is_cut_when_it_is_loaded() {
    for route in ROUTES {
        // Room for one weight with its offset; in memory it stands there with more around it.
        let weight_bytes = if route == AneRoute::E5rt { 800 } else { 1200 };
        let options = AneOptions { route, weight_bytes, ..AneOptions::default() };
        let engine = engine_with(json!({ "chip": "m1", "profile": "strict" }), options);
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[2, 16]);
        let y = (0..4).fold(x, |x, step| {
            let values: Vec<f32> = (0..256).map(|index| ((index * 7 + step) % 13) as f32 / 32.0 - 0.2).collect();
            x.linear(&graph.constant(&HostArray::from_f32([16, 16], &values).unwrap()), None).tanh()
        });
        let compiled = compile(&[("y", &y)], &CompileOptions::default()).unwrap();
        let program = Arc::new(Program::from_body("chain", compiled.body));
        let own = engine.load(&program);
        assert_eq!(own.report().segments.len(), 4, "{}", engine.device.name());
        let drawn = inputs(&program, 9, (-2.0, 2.0));
        let emulated = engine.emulator().load(&engine.program(program.body().clone()).unwrap()).unwrap();
        assert_eq!(outputs(&own, &drawn), outputs(&emulated, &drawn), "{}", engine.device.name());
        // What was compiled for this engine stands as it is.
        let whole = engine.program(program.body().clone()).unwrap();
        let error = engine.device.load(&whole).map(drop).unwrap_err().to_string();
        assert!(error.contains("bytes of weights"), "{error}");
    }
    assert_clean();
}
