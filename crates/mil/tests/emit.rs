//! From a body to text and weights, and back to the same body.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::op::builtin;
use aneforge_mil::{
    BlobFile, BlobFileWriter, BlobFolder, BlobWriter, Body, Builder, Constant, DType, Dialect, EmitError, EmitOptions, Emitter,
    Given, Operand, Output, Program, TensorType, Weight, WeightError, emit, parse, print, resolve,
};
use half::f16;
use std::io::Cursor;
use std::sync::Arc;
use tempfile::TempDir;

fn fp16(shape: &[usize]) -> TensorType {
    TensorType::new(DType::Fp16, shape)
}

fn weight(shape: &[usize], seed: usize) -> Weight {
    let values: Vec<f16> =
        (0..shape.iter().product()).map(|i: usize| f16::from_f64(((i * 31 + seed) % 17) as f64 / 8.0 - 1.0)).collect();
    Weight::from_fp16(shape, &values).unwrap()
}

/// A little of everything: weights, a bias, constants of several types, a tuple, several results, compressed weights.
fn sample() -> Body {
    let mut builder = Builder::new("main");
    let x = builder.input("x", fp16(&[2, 8]));
    let shared = weight(&[8, 8], 1);
    let w = builder.weight("w", shared.clone());
    let again = builder.weight("w_again", shared);
    let product = builder.op("matmul", &[("x", x.into()), ("y", w.into()), ("transpose_y", true.into())]).unwrap();
    let twice = builder.op("matmul", &[("x", product.into()), ("y", again.into())]).unwrap();
    let data = Weight::from_bytes(TensorType::new(DType::Int8, [8, 8]), (0..64).collect()).unwrap();
    let data = builder.weight("data", data);
    let scale = builder.weight("scale", weight(&[8], 3));
    let zero = builder.values(TensorType::new(DType::Int8, []), vec![0.0]);
    let dense = builder
        .op(
            "constexpr_affine_dequantize",
            &[("quantized_data", data.into()), ("scale", scale.into()), ("zero_point", zero.into()), ("axis", Given::Int(0))],
        )
        .unwrap();
    let third = builder.op("matmul", &[("x", twice.into()), ("y", dense.into())]).unwrap();
    let half = builder.scalar(DType::Fp16, 0.1);
    let scaled = builder.op("mul", &[("x", third.into()), ("y", half.into())]).unwrap();
    let joined = builder
        .op("concat", &[("values", vec![scaled, product].into()), ("axis", Given::Int(1)), ("interleave", false.into())])
        .unwrap();
    let parts = builder.op_many("split", &[("x", joined.into()), ("num_splits", Given::Int(2)), ("axis", Given::Int(-1))], "part");
    let parts = parts.unwrap();
    let long = builder.values(fp16(&[2, 100]), (0..200).map(|i| f64::from(i) / 4.0).collect());
    let sum = builder.op("reduce_sum", &[("x", long.into()), ("axes", vec![1].into()), ("keep_dims", true.into())]).unwrap();
    let out = builder.op("add", &[("x", parts[1].into()), ("y", sum.into())]).unwrap();
    let cast = builder.op("cast", &[("x", out.into()), ("dtype", "fp32".into())]).unwrap();
    let mut body = builder.finish();
    body.outputs = vec![Output { name: "logits".into(), value: cast }, Output { name: "first".into(), value: parts[0] }];
    body
}

fn emitted(body: &Body, options: &EmitOptions) -> (TempDir, Program) {
    let folder = TempDir::new().unwrap();
    let mut writer = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
    let program = emit(body, options, writer.blobs().unwrap()).unwrap();
    writer.finish().unwrap();
    (folder, program)
}

fn discarded(body: &Body) -> Result<Program, EmitError> {
    emit(body, &EmitOptions::default(), &mut BlobWriter::new(Cursor::new(Vec::new())).unwrap())
}

#[test]
fn an_emitted_body_resolves_to_the_same_computation_in_both_dialects() {
    let body = sample();
    body.verify().unwrap();
    for dialect in [Dialect::Modern, Dialect::Old] {
        let options = EmitOptions { dialect, ..EmitOptions::default() };
        let (folder, program) = emitted(&body, &options);
        assert_eq!(Dialect::of(&program), dialect);
        let text = print(&program);
        let parsed = parse(&text).unwrap();
        assert_eq!(parsed, program, "{text}");
        let back =
            resolve(&parsed, "main", builtin(), &BlobFolder::new(folder.path())).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        back.verify().unwrap();
        assert!(back.same_computation(&body), "{text}");
        // Emitting what was read changes nothing any more.
        let (second_folder, second) = emitted(&back, &options);
        assert_eq!(print(&second), text);
        let read = |folder: &TempDir| std::fs::read(folder.path().join("weights.bin")).unwrap();
        assert_eq!(read(&folder), read(&second_folder));
    }
}

#[test]
fn a_shared_weight_is_written_once_and_small_constants_stay_in_the_text() {
    let (folder, program) = emitted(&sample(), &EmitOptions::default());
    let file = BlobFile::open(folder.path().join("weights.bin")).unwrap();
    let kinds: Vec<_> = file.iter().map(|view| view.map(|view| (view.dtype, view.bytes.len())).unwrap()).collect();
    // The square weight, the int8 data, their scales, and the constant that is too long for the text.
    assert_eq!(kinds, [(DType::Fp16, 128), (DType::Int8, 64), (DType::Fp16, 16), (DType::Fp16, 400)]);
    let text = print(&program);
    assert!(text.contains("fp16 c_3 = const()[name = string(\"c_3\"), val = fp16(0x1.998p-4)];"), "{text}");
    assert!(text.contains("matmul_0 = matmul(x = x, y = w, transpose_y = c)[name = string(\"matmul_0\")];"), "{text}");
    assert!(text.contains(
        "constexpr_affine_dequantize()[name = string(\"constexpr_affine_dequantize_0\"), quantized_data = tensor<int8, [8, 8]>(BLOBFILE("
    ));
}

#[test]
fn inputs_and_outputs_keep_their_names_and_the_rest_make_way() {
    let mut builder = Builder::new("");
    let x = builder.input("x", fp16(&[4]));
    let y = builder.op_named("relu", &[("x", x.into())], "result").unwrap();
    let z = builder.op_named("tanh", &[("x", y.into())], "z").unwrap();
    let mut body = builder.finish();
    body.values[y.index()].name = "z".into();
    body.values[z.index()].name = "tensor".into();
    body.outputs = vec![Output { name: "z".into(), value: z }];
    let text = print(&discarded(&body).unwrap());
    assert!(text.contains("func main<ios18>(tensor<fp16, [4]> x)"), "{text}");
    assert!(text.contains("tensor<fp16, [4]> z_1 = relu(x = x)"), "{text}");
    assert!(text.contains("tensor<fp16, [4]> z = tanh(x = z_1)"), "{text}");

    body.values[x.index()].name = "7 days/α".into();
    body.values[y.index()].name = "fp16".into();
    let text = print(&discarded(&body).unwrap());
    assert!(text.contains("func main<ios18>(tensor<fp16, [4]> _7_days__)"), "{text}");
    assert!(text.contains("fp16_ = relu"), "{text}");
    parse(&text).unwrap();
}

#[test]
fn an_output_that_has_another_name_already_is_refused() {
    let mut builder = Builder::new("main");
    let x = builder.input("x", fp16(&[4]));
    let y = builder.op("relu", &[("x", x.into())]).unwrap();
    let mut body = builder.finish();
    let output = |name: &str, value| Output { name: name.into(), value };
    body.outputs = vec![output("y", x)];
    assert!(discarded(&body).unwrap_err().to_string().contains("output \"y\" is the value that is already called \"x\""));
    body.outputs = vec![output("a", y), output("b", y)];
    assert!(matches!(discarded(&body), Err(EmitError::Output { .. })));
    body.outputs = vec![output("x", x), output("a", y)];
    assert!(discarded(&body).is_ok());
}

#[test]
fn constants_that_no_weight_file_can_hold_go_into_the_text() {
    let mut builder = Builder::new("main");
    let x = builder.input("x", fp16(&[100]));
    let mask = builder.values(TensorType::new(DType::Bool, [100]), (0..100).map(|i| f64::from(i % 2)).collect());
    let y = builder.op("select", &[("cond", mask.into()), ("a", x.into()), ("b", x.into())]).unwrap();
    let mut body = builder.finish();
    body.outputs = vec![Output { name: "y".into(), value: y }];
    assert!(print(&discarded(&body).unwrap()).contains("tensor<bool, [100]>([false, true, false"));
}

#[test]
fn a_weight_that_fails_or_lies_names_the_constant() {
    let mut builder = Builder::new("main");
    let x = builder.input("x", fp16(&[2, 4]));
    let w = builder.weight("embedding", Weight::computed([4, 4], Arc::new(|_| Err(WeightError::Other("disk gone".into())))));
    let y = builder.op("matmul", &[("x", x.into()), ("y", w.into())]).unwrap();
    let mut body = builder.finish();
    body.outputs = vec![Output { name: "y".into(), value: y }];
    let message = discarded(&body).unwrap_err().to_string();
    assert!(message.contains("constant \"embedding\"") && message.contains("disk gone"), "{message}");
    body.values[w.index()].kind = aneforge_mil::ValueKind::Constant(Constant::Values(vec![1.0]));
    assert!(discarded(&body).unwrap_err().to_string().contains("it holds 1 elements"));
}

#[test]
fn several_bodies_become_functions_over_one_weight_file() {
    let mut first = sample();
    let mut second = first.clone();
    first.name = "short".into();
    second.name = "long".into();
    let folder = TempDir::new().unwrap();
    let mut writer = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
    let mut emitter = Emitter::new(EmitOptions::default(), writer.blobs().unwrap());
    emitter.function(&first).unwrap();
    emitter.function(&second).unwrap();
    let program = emitter.finish();
    writer.finish().unwrap();
    let blobs = BlobFolder::new(folder.path());
    assert!(resolve(&program, "long", builtin(), &blobs).unwrap().same_computation(&second));
    // All weights are shared; only the long literal, which has no identity, is there twice.
    assert_eq!(BlobFile::open(folder.path().join("weights.bin")).unwrap().count(), 5);
}

#[test]
fn compacting_drops_what_no_output_needs_and_keeps_the_computation() {
    let mut body = sample();
    let whole = body.clone();
    body.compact();
    assert!(body.same_computation(&whole));
    let x = body.inputs[0];
    let op = builtin().get("tanh").unwrap();
    let dead = body.add_operation(op, vec![Operand::One(x)], vec![("dead".into(), fp16(&[2, 8]))]);
    body.add_operation(op, vec![Operand::One(dead[0])], vec![("deader".into(), fp16(&[2, 8]))]);
    body.add_constant("unused", fp16(&[]), Constant::Values(vec![1.0]));
    assert!(!body.same_computation(&whole));
    body.compact();
    assert!(body.same_computation(&whole));
    assert!(body.values.iter().all(|value| !value.name.contains("dead") && value.name != "unused"));
    body.verify().unwrap();
    // Without outputs nothing but the inputs is left.
    body.outputs.clear();
    body.compact();
    assert_eq!((body.values.len(), body.operations.len()), (1, 0));
}

#[test]
fn same_computation_sees_every_difference() {
    let body = sample();
    let change = |edit: &dyn Fn(&mut Body)| {
        let mut other = body.clone();
        edit(&mut other);
        !other.same_computation(&body) && !body.same_computation(&other)
    };
    assert!(change(&|other| other.outputs.swap(0, 1)));
    assert!(change(&|other| other.outputs[0].name = "other".into()));
    assert!(change(&|other| drop(other.operations.pop())));
    let constant = body.values.iter().position(|value| value.ty == fp16(&[])).unwrap();
    assert!(change(&|other| other.values[constant].kind = aneforge_mil::ValueKind::Constant(Constant::Values(vec![0.25]))));
    let w = body.values.iter().position(|value| value.name == "w").unwrap();
    assert!(change(&|other| {
        other.values[w].kind = aneforge_mil::ValueKind::Constant(Constant::Weight(weight(&[8, 8], 2)));
    }));
}
