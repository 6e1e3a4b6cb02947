//! Models, surfaces and requests, made as a client makes them.

use super::{Fake, Id, NIL, Sel, error_of};
use crate::send;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The library with settings and counters of a new process; one at a time.
pub fn alone() -> (MutexGuard<'static, ()>, Fake) {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = Fake::open();
    aneforge_fake_client::control(&aneforge_fake_client::library().unwrap(), &json!({"reset": true})).unwrap();
    (guard, fake)
}

pub const TEXT: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremlc-component-MIL", "3510.2.1"}, {"coremlc-version", "3505.4.1"}})]
{
    func main<ios18>(tensor<fp16, [1, 768, 1, 32]> x) {
        tensor<fp16, [1, 768, 1, 32]> y = relu(x = x)[name = string("y")];
    } -> (y);
}
"#;

/// The program under a name of its own: models of equal text share a folder, also across the tests that run beside this one.
pub fn text() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    TEXT.replace("3505.4.1", &format!("{}.{}", std::process::id(), NEXT.fetch_add(1, Relaxed)))
}

pub const BYTES: usize = 49_152;

/// A surface with the six properties.
pub fn surface(fake: &Fake, bytes: usize) -> Id {
    let number = |value: usize| send!(fake, fake.class("NSNumber"), "numberWithUnsignedInteger:", value => usize; Id);
    let entries =
        [("Width", bytes), ("Height", 1), ("BytesPerElement", 1), ("BytesPerRow", bytes), ("AllocSize", bytes), ("PixelFormat", 0)];
    let entries = entries.map(|(key, value)| (fake.string(&format!("IOSurface{key}")), number(value)));
    let surface: Id = fake.call("IOSurfaceCreate", fake.dictionary(&entries));
    assert!(!surface.is_null());
    surface
}

pub fn lock(fake: &Fake, name: &str, surface: Id, options: u32) -> i32 {
    let function: unsafe extern "C" fn(Id, u32, *mut u32) -> i32 = unsafe { std::mem::transmute(fake.address(name)) };
    unsafe { function(surface, options, std::ptr::null_mut()) }
}

pub fn write(fake: &Fake, surface: Id, value: u16) {
    assert_eq!(lock(fake, "IOSurfaceLock", surface, 0), 0);
    let base: *mut u16 = fake.call("IOSurfaceGetBaseAddress", surface);
    (0..BYTES / 2).for_each(|at| unsafe { base.add(at).write(value) });
    assert_eq!(lock(fake, "IOSurfaceUnlock", surface, 0), 0);
}

pub fn read(fake: &Fake, surface: Id) -> u16 {
    assert_eq!(lock(fake, "IOSurfaceLock", surface, 1), 0);
    let base: *const u16 = fake.call("IOSurfaceGetBaseAddress", surface);
    let value = unsafe { base.add(BYTES / 2 - 1).read() };
    assert_eq!(lock(fake, "IOSurfaceUnlock", surface, 1), 0);
    value
}

pub fn request(fake: &Fake, inputs: &[(Id, i32)], outputs: &[(Id, i32)], procedure: i32) -> Id {
    let wrap = |surface: Id| send!(fake, fake.class("_ANEIOSurfaceObject"), "objectWithIOSurface:", surface => Id; Id);
    let surfaces = |ports: &[(Id, i32)]| fake.array(&ports.iter().map(|port| wrap(port.0)).collect::<Vec<Id>>());
    let indices = |ports: &[(Id, i32)]| fake.array(&ports.iter().map(|port| fake.number(port.1)).collect::<Vec<Id>>());
    send!(fake, fake.class("_ANERequest"), "requestWithInputs:inputIndices:outputs:outputIndices:procedureIndex:",
        surfaces(inputs) => Id, indices(inputs) => Id, surfaces(outputs) => Id, indices(outputs) => Id,
        fake.number(procedure) => Id; Id)
}

pub fn descriptor(fake: &Fake, text: &str) -> Id {
    send!(fake, fake.class("_ANEInMemoryModelDescriptor"), "modelWithMILText:weights:optionsPlist:",
        fake.data(text.as_bytes()) => Id, fake.dictionary(&[]) => Id, NIL => Id; Id)
}

/// A model from text, its folder filled.
pub fn memory_model(fake: &Fake, text: &str) -> (Id, PathBuf) {
    let model = send!(fake, fake.class("_ANEInMemoryModel"), "inMemoryModelWithDescriptor:", descriptor(fake, text) => Id; Id);
    let folder = PathBuf::from(fake.text(send!(fake, model, "localModelPath"; Id)));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.mil"), text).unwrap();
    (model, folder)
}

pub type Outcome = Result<(), (String, i64, String)>;

pub fn outcome(fake: &Fake, done: bool, error: Id) -> Outcome {
    if done {
        assert!(error.is_null());
        return Ok(());
    }
    Err(error_of(fake, error))
}

pub fn step(fake: &Fake, model: Id, what: &str) -> Outcome {
    let mut error = NIL;
    let options = fake.dictionary(&[]);
    let out = &raw mut error;
    let done = match what {
        "compile" => send!(fake, model, "compileWithQoS:options:error:", 21 => u32, options => Id, out => *mut Id; bool),
        "load" => send!(fake, model, "loadWithQoS:options:error:", 21 => u32, options => Id, out => *mut Id; bool),
        _ => send!(fake, model, "unloadWithQoS:error:", 21 => u32, out => *mut Id; bool),
    };
    outcome(fake, done, error)
}

pub fn evaluate(fake: &Fake, model: Id, request: Id) -> Outcome {
    let mut error = NIL;
    let out = &raw mut error;
    let done = send!(fake, model, "evaluateWithQoS:options:request:error:",
        21 => u32, fake.dictionary(&[]) => Id, request => Id, out => *mut Id; bool);
    outcome(fake, done, error)
}

pub fn client_model(fake: &Fake, folder: &Path) -> Id {
    let url = send!(fake, fake.class("NSURL"), "fileURLWithPath:", fake.string(folder.to_str().unwrap()) => Id; Id);
    send!(fake, fake.class("_ANEModel"), "modelAtURL:key:", url => Id, fake.string("s") => Id; Id)
}

pub fn client_step(fake: &Fake, selector: &str, model: Id, keys: bool) -> Outcome {
    let client = send!(fake, fake.class("_ANEClient"), "sharedConnection"; Id);
    let pair = |key: &str, value: &str| (fake.string(key), fake.string(value));
    let both = [pair("kANEFModelType", "kANEFModelMIL"), pair("kANEFNetPlistFilenameKey", "model.mil")];
    let options = fake.dictionary(if keys { &both } else { &[] });
    let mut error = NIL;
    let call: unsafe extern "C" fn(Id, Sel, Id, Id, u32, *mut Id) -> bool =
        unsafe { std::mem::transmute(fake.address("objc_msgSend")) };
    let done = unsafe { call(client, fake.selector(selector), model, options, 21, &raw mut error) };
    outcome(fake, done, error)
}
