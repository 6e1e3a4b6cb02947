//! AppleNeuralEngine's classes against the fake: both ways to the daemon.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aneforge_sys::SysError;
use aneforge_sys::ane::{
    AppleNeuralEngine, Client, Descriptor, InMemoryModel, Model, PerformanceStats, Request, SurfaceObject, Weights,
};
use aneforge_sys::objc::{Data, Value};
use aneforge_sys::surface::Surface;
use aneforge_testkit::fake;
use serde_json::json;

use common::{BYTES, RELU, alternating, bytes, rectified, write_program};

const QUALITY: u32 = AppleNeuralEngine::USUAL_QUALITY;

/// A surface and its wrapper.
fn surface(engine: &Arc<AppleNeuralEngine>) -> (Surface, SurfaceObject) {
    let surface = Surface::new(engine.surfaces(), BYTES).unwrap();
    let object = SurfaceObject::new(engine, &surface).unwrap();
    (surface, object)
}

fn in_memory(engine: &Arc<AppleNeuralEngine>) -> InMemoryModel {
    // The folder is named by the text and stands where tests of other processes have theirs.
    let text = RELU.replace("string(\"y\")", &format!("string(\"y_{}_{:?}\")", std::process::id(), std::thread::current().id()));
    let model = InMemoryModel::new(&Descriptor::from_text(engine, &text, &Weights::new()).unwrap()).unwrap();
    let folder = model.local_path().unwrap();
    assert_eq!(folder.file_name().and_then(|name| name.to_str()), Some(model.hex_identifier().unwrap().as_str()));
    write_program(&folder, &text);
    model
}

/// Removes a model's folder when the test ends.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_model_in_memory_compiles_loads_evaluates_and_unloads() {
    let engine = common::frameworks().in_memory().unwrap();
    let mut model = in_memory(&engine);
    let _folder = Folder(model.local_path().unwrap());
    assert_eq!(model.hex_identifier().unwrap().split('_').map(str::len).collect::<Vec<_>>(), [64, 64, 64]);
    model.compile(QUALITY, engine.no_options()).unwrap();
    model.set_queue_depth(127).unwrap();
    model.load(QUALITY, engine.no_options()).unwrap();
    assert!(matches!(model.load(QUALITY, engine.no_options()), Err(SysError::Order { .. })));
    assert_eq!(model.state(), Ok(3));
    let attributes = model.attributes().unwrap();
    let description = attributes.get("ANEFModelDescription").unwrap();
    let names = |key: &str| description.get(key).unwrap().list().iter().filter_map(Value::text).collect::<Vec<_>>();
    assert_eq!((names("InputSymbols"), names("OutputSymbols")), (vec!["x"], vec!["y@output"]));
    let ((input, input_object), (output, output_object)) = (surface(&engine), surface(&engine));
    let mut request = Request::new(&engine, &[(0, &input_object)], &[(0, &output_object)], 0).unwrap();
    assert_eq!(request.validate(), Ok(true));
    drop((input_object, output_object));
    input.memory().write(0, &alternating()).unwrap();
    for _ in 0..3 {
        output.memory().clear().unwrap();
        model.evaluate(QUALITY, &mut request).unwrap();
        assert_eq!(bytes(output.memory()), rectified());
    }
    model.unload().unwrap();
    assert!(!model.is_loaded());
    drop((model, request, input, output, engine));
    fake::assert_clean();
}

/// `y = x * w` with one weight for each channel, in a file.
const SCALED: &str = "program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 768, 1, 32]> x) {
        tensor<fp16, [1, 768, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [1, 768, 1, 1]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
        tensor<fp16, [1, 768, 1, 32]> y = mul(x = x, y = w)[name = string(\"y\")];
    } -> (y);
}
";

/// A weight file (blob v2, as coremltools writes it) whose only weight is `value` 768 times.
fn weight_file(value: u16) -> Vec<u8> {
    let header = [1u32, 2].map(u32::to_le_bytes).concat();
    let about = [&[0xdead_beefu32, 1].map(u32::to_le_bytes).concat()[..], &[1536u64, 128].map(u64::to_le_bytes).concat()].concat();
    let padded = |mut bytes: Vec<u8>| {
        bytes.resize(64, 0);
        bytes
    };
    [padded(header), padded(about), value.to_le_bytes().repeat(768)].concat()
}

/// A load takes the bytes of the file that was compiled: written over in place they change (Orion, M4 Max), another file under its name
/// does not (maderix/ANE, M4 and M5).
#[test]
fn weights_written_in_place_are_loaded_and_a_file_put_in_their_place_is_not() {
    let [two, three, four] = [0x4000u16, 0x4200, 0x4400];
    let engine = common::frameworks().in_memory().unwrap();
    let mut weights = Weights::new();
    weights.add("@model_path/weights.bin", Data::copy_of(engine.objective_c(), &weight_file(two)).unwrap());
    let mut model = InMemoryModel::new(&Descriptor::from_text(&engine, SCALED, &weights).unwrap()).unwrap();
    let folder = Folder(model.local_path().unwrap());
    write_program(&folder.0, SCALED);
    let file = folder.0.join("weights.bin");
    std::fs::write(&file, weight_file(two)).unwrap();
    model.compile(QUALITY, engine.no_options()).unwrap();
    let ((input, input_object), (output, output_object)) = (surface(&engine), surface(&engine));
    let mut request = Request::new(&engine, &[(0, &input_object)], &[(0, &output_object)], 0).unwrap();
    input.memory().write(0, &0x3c00u16.to_le_bytes().repeat(BYTES / 2)).unwrap();
    let mut answer = |model: &mut InMemoryModel| {
        model.load(QUALITY, engine.no_options()).unwrap();
        model.evaluate(QUALITY, &mut request).unwrap();
        model.unload().unwrap();
        let made = bytes(output.memory());
        u16::from_le_bytes([made[0], made[1]])
    };
    assert_eq!(answer(&mut model), two);
    std::fs::File::options().write(true).open(&file).unwrap().write_all(&weight_file(three)).unwrap();
    assert_eq!(answer(&mut model), three, "in place");
    std::fs::write(folder.0.join("other"), weight_file(four)).unwrap();
    std::fs::rename(folder.0.join("other"), &file).unwrap();
    assert_eq!(answer(&mut model), three, "another file");
}

#[test]
fn dropping_a_loaded_model_unloads_it() {
    let engine = common::frameworks().in_memory().unwrap();
    let mut model = in_memory(&engine);
    let _folder = Folder(model.local_path().unwrap());
    model.compile(QUALITY, engine.no_options()).unwrap();
    model.load(QUALITY, engine.no_options()).unwrap();
    assert_eq!(fake::counters()["loaded_programs"], 1);
    drop(model);
    drop(engine);
    fake::assert_clean();
}

#[test]
fn failures_carry_the_frameworks_domain_code_and_text() {
    let engine = common::frameworks().in_memory().unwrap();
    let mut model = in_memory(&engine);
    let _folder = Folder(model.local_path().unwrap());
    fake::set(json!({ "faults": [
        { "kind": "compile", "text": "ANECCompile() FAILED: err=()", "code": 1, "domain": "com.apple.appleneuralengine.compiler" },
        { "kind": "load" },
    ] }));
    match model.compile(QUALITY, engine.no_options()) {
        Err(SysError::Apple { call, error }) => {
            assert!(call.contains("compileWithQoS:"), "{call}");
            let whole = error.to_string();
            assert!(whole.contains("ANECCompile() FAILED"), "{whole}");
            let mut domains = std::iter::successors(Some(&error), |error| error.underlying.as_deref()).map(|error| &error.domain);
            assert!(domains.any(|domain| domain == "com.apple.appleneuralengine.compiler"), "{whole}");
        }
        other => panic!("{other:?}"),
    }
    model.compile(QUALITY, engine.no_options()).unwrap();
    assert!(matches!(model.load(QUALITY, engine.no_options()), Err(SysError::Apple { .. })));
    model.load(QUALITY, engine.no_options()).unwrap();
    drop((model, engine));
    fake::assert_clean();
}

#[test]
fn text_that_is_no_program_is_refused_and_leaves_nothing() {
    let engine = common::frameworks().in_memory().unwrap();
    match Descriptor::from_text(&engine, "nonsense", &Weights::new()).and_then(|descriptor| InMemoryModel::new(&descriptor)) {
        Ok(mut model) => {
            let folder = Folder(model.local_path().unwrap());
            write_program(&folder.0, "nonsense");
            assert!(matches!(model.compile(QUALITY, engine.no_options()), Err(SysError::Apple { .. })));
        }
        Err(error) => assert!(matches!(error, SysError::Nothing { .. }), "{error}"),
    }
    drop(engine);
    fake::assert_clean();
}

fn client_model(engine: &Arc<AppleNeuralEngine>, client: &Client, folder: &Path) -> Model {
    write_program(folder, RELU);
    let mut model = Model::new(engine, folder, "s").unwrap();
    assert_eq!(client.compiled_exists(&model), Ok(false));
    client.compile(&mut model, &engine.mil_options().unwrap(), QUALITY).unwrap();
    assert_eq!(client.compiled_exists(&model), Ok(true));
    model
}

#[test]
fn the_client_compiles_and_runs_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let engine = common::frameworks().in_memory().unwrap();
    for client in [Client::shared(&engine).unwrap(), Client::direct(&engine).unwrap()] {
        let place = tempfile::tempdir_in(folder.path()).unwrap();
        let mut model = client_model(&engine, &client, place.path());
        client.load(&mut model, engine.no_options(), QUALITY).unwrap();
        assert_eq!(model.input_symbols(0).unwrap().len(), 1);
        let (inputs, outputs) = (model.input_symbols(0).unwrap(), model.output_symbols(0).unwrap());
        let ((input, input_object), (output, output_object)) = (surface(&engine), surface(&engine));
        let mut request = Request::new(&engine, &[(inputs[0], &input_object)], &[(outputs[0], &output_object)], 0).unwrap();
        input.memory().write(0, &alternating()).unwrap();
        client.evaluate(&mut model, &mut request, QUALITY).unwrap();
        assert_eq!(bytes(output.memory()), rectified());
        output.memory().clear().unwrap();
        client.evaluate_directly(&mut model, &mut request, QUALITY).unwrap();
        assert_eq!(bytes(output.memory()), rectified());
        model.unload().unwrap();
    }
    drop(engine);
    fake::assert_clean();
}

#[test]
fn without_the_option_keys_the_client_looks_for_another_kind_of_model() {
    let folder = tempfile::tempdir().unwrap();
    let engine = common::frameworks().in_memory().unwrap();
    write_program(folder.path(), RELU);
    let client = Client::shared(&engine).unwrap();
    let mut model = Model::new(&engine, folder.path(), "s").unwrap();
    let refused = client.compile(&mut model, engine.no_options(), QUALITY).unwrap_err();
    assert!(matches!(refused, SysError::Apple { .. }), "{refused}");
    drop((client, model, engine));
    fake::assert_clean();
}

#[test]
fn the_completion_handler_runs_once_for_each_evaluation() {
    let engine = common::frameworks().in_memory().unwrap();
    let mut model = in_memory(&engine);
    let _folder = Folder(model.local_path().unwrap());
    model.compile(QUALITY, engine.no_options()).unwrap();
    model.load(QUALITY, engine.no_options()).unwrap();
    let ((_, input), (_, output)) = (surface(&engine), surface(&engine));
    let mut request = Request::new(&engine, &[(0, &input)], &[(0, &output)], 0).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    request
        .set_completion(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }))
        .unwrap();
    model.evaluate(QUALITY, &mut request).unwrap();
    model.evaluate(QUALITY, &mut request).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2);
    drop(request);
    // The framework's copy of the block is gone, and with it the closure.
    assert_eq!(Arc::strong_count(&count), 1);
    drop((model, input, output, engine));
    fake::assert_clean();
}

#[test]
fn surfaces_are_locked_around_each_copy_and_are_zero_at_first() {
    let engine = common::frameworks().in_memory().unwrap();
    let (surface, object) = surface(&engine);
    let before = fake::counters()["surface_locks"].as_u64().unwrap();
    assert!(bytes(surface.memory()).iter().all(|byte| *byte == 0));
    surface.memory().write(5, &[1, 2]).unwrap();
    assert_eq!(fake::counters()["surface_locks"].as_u64().unwrap(), before + 2);
    assert_ne!(surface.identifier(), 0);
    // The wrapper alone keeps the surface.
    let memory = object.surface().memory().clone();
    drop((surface, object));
    assert_eq!(bytes(&memory)[5..7], [1, 2]);
    drop((memory, engine));
    fake::assert_clean();
}

#[test]
fn statistics_and_weights_go_with_the_longer_request() {
    let engine = common::frameworks().in_memory().unwrap();
    let ((_, input), (_, output)) = (surface(&engine), surface(&engine));
    match PerformanceStats::new(&engine) {
        Ok(stats) => {
            let request = Request::with_extras(&engine, &[(0, &input)], &[(0, &output)], 0, Some(&input), Some(&stats)).unwrap();
            // No source reports a time; what comes back must be no crash.
            request.hardware_nanoseconds().unwrap();
            stats.hardware_nanoseconds().unwrap();
        }
        Err(error) => assert!(matches!(error, SysError::Nothing { .. } | SysError::Lacking { .. }), "{error}"),
    }
    drop((input, output, engine));
    fake::assert_clean();
}
