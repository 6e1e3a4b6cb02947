//! Dumps: asked of one device and loaded by the emulator, to the bit.
#![allow(clippy::unwrap_used)] // helpers of tests

use aneforge_conform::numerics::{Scope, differences, dump, report};
use aneforge_core::Chip;
use aneforge_mil::NoBlobs;
use aneforge_runtime::emulator::{ConvolutionForm, Emulator, EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
use aneforge_runtime::numerics::{Dump, Halves};
use aneforge_runtime::{Device, DeviceError, Label, Program, open};
use half::f16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Everything that an M1 of the emulator answers.
fn m1() -> &'static Dump {
    static DUMP: OnceLock<Dump> = OnceLock::new();
    DUMP.get_or_init(|| dump(&*open("emulator:m1").unwrap(), "25D125", &Scope::default(), &mut |_| ()).unwrap())
}

/// The same chip as if its tables were others: every result is another number.
fn strange() -> Dump {
    let mut dump = m1().clone();
    for (index, table) in dump.tables.iter_mut().enumerate() {
        let shift = 1 + index as u16;
        let bent = |(input, bits): (usize, &mut u16)| *bits ^= (input as u16).rotate_left(5) & 0x83ff ^ shift;
        table.results.0.iter_mut().enumerate().for_each(bent);
        // The engine takes NaN in as infinity.
        let infinite = table.results.0[usize::from(f16::INFINITY.to_bits())];
        let not_numbers = (0..=u16::MAX).filter(|&bits| f16::from_bits(bits).is_nan());
        not_numbers.for_each(|bits| table.results.0[usize::from(bits)] = infinite);
    }
    dump
}

fn write(folder: &Path, dump: &Dump) -> PathBuf {
    let path = folder.join("report.json");
    let value = report(Ok(dump), serde_json::Map::new()).unwrap();
    std::fs::write(&path, serde_json::to_vec(&value).unwrap()).unwrap();
    path
}

fn load(path: &Path) -> Arc<dyn Device> {
    open(&format!("emulator:{}", path.display())).unwrap()
}

fn run(device: &dyn Device, text: &str, inputs: &[&[u16]]) -> Vec<Vec<u16>> {
    let program = Arc::new(Program::from_text("test", text, &NoBlobs).unwrap());
    let executable = device.load(&program).unwrap();
    let given: Vec<Vec<u8>> = inputs.iter().map(|bits| Halves(bits.to_vec()).to_bytes()).collect();
    let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
    let mut results: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let mut taken: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    executable.execute(&given, &mut taken).unwrap();
    results.iter().map(|bytes| Halves::from_bytes(bytes).0).collect()
}

#[test]
fn a_chip_answers_every_function_and_probe() {
    let dump = m1();
    assert_eq!(dump.refused, []);
    assert!(dump.tables.len() >= 35 && dump.probes.len() > 100, "{} {}", dump.tables.len(), dump.probes.len());
    assert_eq!((dump.chip.as_str(), dump.device.as_str(), dump.os_build.as_str()), ("m1", "emulator:m1", "25D125"));
    for op in [
        "gelu", "exp", "exp2", "log", "sqrt", "rsqrt", "inverse", "sigmoid", "tanh", "erf", "silu", "sin", "cos", "atan",
        "softplus",
    ] {
        assert!(dump.tables.iter().any(|table| table.op == op), "{op}");
    }
}

#[test]
fn other_tables_come_back_bit_for_bit_on_every_input() {
    let folder = tempfile::tempdir().unwrap();
    let strange = strange();
    let device = load(&write(folder.path(), &strange));
    assert_eq!(device.chip().map(|chip| chip.name), Some("m1"));
    let again = dump(&*device, "25D125", &Scope::default(), &mut |_| ()).unwrap();
    for (got, wanted) in again.tables.iter().zip(&strange.tables) {
        assert!(got == wanted, "{}", wanted.op);
    }
    assert_eq!(again.tables.len(), strange.tables.len());
    // What is not a table of the file follows the rules: the probes of relu's neighbours are those of the chip.
    assert!(!differences(m1(), &again).is_empty());
}

const LARGER: &str = r#"program(1.3)
{
    func main<ios18>(tensor<fp16, [64, 32]> x) {
        tensor<fp16, [32, 16]> w = const()[val = tensor<fp16, [32, 16]>(WEIGHTS)];
        tensor<fp16, [64, 16]> product = matmul(x = x, y = w)[name = string("product")];
        tensor<fp16, [64, 16]> positive = relu(x = product)[name = string("positive")];
        string mode = const()[val = string("EXACT")];
        tensor<fp16, [64, 16]> bent = gelu(x = positive, mode = mode)[name = string("bent")];
        tensor<fp16, [64, 16]> gate = sigmoid(x = product)[name = string("gate")];
        tensor<fp16, [64, 16]> y = mul(x = bent, y = gate)[name = string("y")];
    } -> (y);
}"#;

fn larger() -> String {
    let weights: Vec<String> = (0..32 * 16).map(|index| format!("{:?}", f64::from((index * 37) % 65 - 32) / 64.0)).collect();
    LARGER.replace("WEIGHTS", &format!("[{}]", weights.join(", ")))
}

/// A program up to one of its values.
fn until(text: &str, value: &str) -> String {
    text.replace("-> (y)", &format!("-> ({value})"))
}

#[test]
fn inside_a_larger_program_functions_are_looked_up_too_fused_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let strange = strange();
    let path = write(folder.path(), &strange);
    let x: Vec<u16> = (0..64 * 32).map(|index| f16::from_f64(f64::from((index * 53) % 129 - 64) / 16.0).to_bits()).collect();
    let product = run(&*open("emulator:m1").unwrap(), &until(&larger(), "product"), &[&x]).remove(0);
    // By hand: the tables of the file, and the engine's product of two numbers.
    let look = |op: &str, bits: u16| {
        let table = strange.tables.iter().find(|table| table.op == op && !format!("{:?}", table.arguments).contains("APPROX"));
        table.unwrap().results.0[usize::from(bits)]
    };
    let wanted: Vec<u16> = product
        .iter()
        .map(|&bits| {
            let (bent, gate) = (look("gelu", look("relu", bits)), look("sigmoid", bits));
            let taken = |bits| aneforge_runtime::emulator::rules::rounding::taken(f16::from_bits(bits));
            aneforge_runtime::emulator::rules::rounding::product(taken(bent), taken(gate)).to_bits()
        })
        .collect();
    assert_eq!(run(&*load(&path), &larger(), &[&x])[0], wanted);
    let unfused = Emulator::from_dump("file", &Dump::read(&path).unwrap(), EmulatorOptions::default()).unwrap().unfused();
    assert_eq!(run(&unfused, &larger(), &[&x])[0], wanted);
}

#[test]
fn labels_say_what_the_dump_proves_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut dump = m1().clone();
    for probe in dump.probes.iter_mut().filter(|probe| probe.op == "sub") {
        probe.results[0].0[7] ^= 1;
    }
    let atan = dump.tables.iter_mut().find(|table| table.op == "atan").unwrap();
    atan.results.0[usize::from(f16::NAN.to_bits())] ^= 1;
    let device = load(&write(folder.path(), &dump));
    let label = |body: &str| {
        let text = format!("program(1.3)\n{{\n    func main<ios18>(tensor<fp16, [2, 4]> x) {{\n        {body}\n    }} -> (y);\n}}");
        let program = Arc::new(Program::from_text("test", &text, &NoBlobs).unwrap());
        device.load(&program).unwrap().report().steps[0].rule.clone().unwrap()
    };
    let tanh = label("tensor<fp16, [2, 4]> y = tanh(x = x)[name = string(\"y\")];");
    assert_eq!((tanh.label, &*tanh.source), (Label::Exact, "dump of m1, 25D125, emulator:m1"));
    let atan = label("tensor<fp16, [2, 4]> y = atan(x = x)[name = string(\"y\")];");
    assert_eq!(atan.label, Label::Modelled, "the emulator takes NaN in as infinity, and this dump does not");
    let elu =
        label("fp16 a = const()[val = fp16(0.5)];\n        tensor<fp16, [2, 4]> y = elu(x = x, alpha = a)[name = string(\"y\")];");
    assert_eq!(elu.label, Label::Modelled, "another alpha is another function");
    let mean = label(
        "tensor<int32, [1]> a = const()[val = tensor<int32, [1]>([1])];\n        bool k = const()[val = bool(true)];\n        tensor<fp16, [2, 1]> y = reduce_mean(x = x, axes = a, keep_dims = k)[name = string(\"y\")];",
    );
    assert_eq!(mean.label, Label::Modelled, "vectors do not prove a sum");
    assert!(mean.text.contains("of the dump of m1"), "{}", mean.text);
    let mul = label("tensor<fp16, [2, 4]> y = mul(x = x, y = x)[name = string(\"y\")];");
    assert_eq!(mul.label, Label::Exact);
    let sub = label("tensor<fp16, [2, 4]> y = sub(x = x, y = x)[name = string(\"y\")];");
    assert_eq!(sub.label, Label::Modelled, "contradicted once");
    assert!(sub.text.contains("4095 of 4096"), "{}", sub.text);
}

#[test]
fn probes_decide_between_readings_that_figures_leave_open() {
    let chip = Chip::find("m3").unwrap();
    let scope = Scope { filter: Some("o".to_string()) };
    for options in [
        EmulatorOptions { subnormal_products: SubnormalProducts::Flushed, ..EmulatorOptions::default() },
        EmulatorOptions { partial_overflow: PartialOverflow::Immediate, single_tap: SingleTap::Port, ..EmulatorOptions::default() },
        EmulatorOptions { convolution: ConvolutionForm::Winograd, ..EmulatorOptions::default() },
    ] {
        let device = Emulator::new(chip, options);
        let asked = dump(&device, "", &scope, &mut |_| ()).unwrap();
        let loaded = Emulator::from_dump("file", &asked, EmulatorOptions::default()).unwrap();
        let found = loaded.options();
        assert_eq!(
            found.subnormal_products == SubnormalProducts::Flushed,
            options.subnormal_products == SubnormalProducts::Flushed
        );
        assert_eq!(found.partial_overflow, options.partial_overflow);
        assert_eq!(found.single_tap, options.single_tap);
        assert_eq!(found.convolution == ConvolutionForm::Winograd, options.convolution == ConvolutionForm::Winograd);
        assert_eq!(differences(&asked, &dump(&loaded, "", &scope, &mut |_| ()).unwrap()), []);
    }
}

fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.json");
    std::fs::write(&path, bytes).unwrap();
    match open(&format!("emulator:{}", path.display())) {
        Err(error @ DeviceError::Dump { .. }) => error.to_string(),
        other => panic!("{:?}", other.map(|device| device.name().to_string())),
    }
}

#[test]
fn damaged_and_foreign_files_are_refused_with_the_place() {
    let mut small = dump(&*open("emulator:m1").unwrap(), "", &Scope { filter: Some("relu6".to_string()) }, &mut |_| ()).unwrap();
    let ties = Scope { filter: Some("matmul: ties".to_string()) };
    small.probes = dump(&*open("emulator:m1").unwrap(), "", &ties, &mut |_| ()).unwrap().probes;
    let text = |dump: &Dump| serde_json::to_string_pretty(&report(Ok(dump), serde_json::Map::new()).unwrap()).unwrap();
    let whole = text(&small);
    assert!(Dump::from_json(whole.as_bytes()).is_ok());
    let changed = |change: &dyn Fn(&mut Dump)| {
        let mut dump = small.clone();
        change(&mut dump);
        refusal(text(&dump).as_bytes())
    };
    assert!(refusal(b"").contains("line 1"));
    assert!(refusal(b"{}").contains("kind"));
    assert!(refusal(br#"{"kind": "evidence", "schema": 1}"#).contains("evidence"));
    assert!(refusal(br#"{"kind": "aneforge report", "schema": 7}"#).contains('7'));
    assert!(refusal(br#"{"kind": "aneforge report", "schema": 1, "numerics_missing": "no engine"}"#).contains("no engine"));
    assert!(changed(&|dump| dump.chip = "m0".to_string()).contains("m0"));
    assert!(changed(&|dump| dump.tables[0].results.0.truncate(9)).contains("tables[0] (relu6)"));
    assert!(changed(&|dump| dump.tables[0].op = "nothing".to_string()).contains("tables[0] (nothing)"));
    assert!(changed(&|dump| dump.tables[0].op = "pad".to_string()).contains("tables[0] (pad): the argument"));
    assert!(changed(&|dump| dump.tables.push(dump.tables[0].clone())).contains("tables[1] (relu6): the same function"));
    assert!(changed(&|dump| dump.probes[0].mil.push('?')).contains("probes[0] (matmul: ties"));
    assert!(changed(&|dump| dump.probes[0].results[0].0.truncate(1)).contains("probes[0]"));
    assert!(
        changed(&|dump| dump.probes[0].mil = dump.probes[0].mil.replace("fp16, [32, 32]", "fp32, [32, 32]")).contains("probes[0]")
    );
    let place = refusal(whole.replacen("\"results\": \"", "\"results\": \"*", 1).as_bytes());
    assert!(place.contains("line ") && place.contains("base64"), "{place}");
    // No cut of the file is taken for a whole one, and none ends in a panic.
    for cut in (0..whole.len()).step_by(whole.len() / 97) {
        refusal(&whole.as_bytes()[..cut]);
    }
}

#[test]
fn a_device_of_no_chip_is_not_asked() {
    let error = dump(&*open("cpu").unwrap(), "", &Scope::default(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("cpu"));
}
