//! From text to a body: what is bound, and what every fault says.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::op::{MilOp, OpTable, builtin};
use aneforge_mil::{
    BlobFileWriter, BlobFolder, Body, Constant, DType, NoBlobs, Operand, ResolveError, ResolveFault, TensorType, ValueKind, parse,
    resolve,
};
use tempfile::TempDir;

const MODERN: &str = include_str!("../../../testing/fuzz/corpus/parse_text/modern.mil");

fn program(statements: &str, outputs: &str) -> String {
    format!("program(1.3)\n{{\n    func main<ios18>(tensor<fp16, [2, 4]> x) {{\n        {statements}\n    }} -> ({outputs});\n}}\n")
}

fn resolved(statements: &str, outputs: &str) -> Result<Body, ResolveError> {
    resolve(&parse(&program(statements, outputs)).unwrap(), "main", builtin(), &NoBlobs)
}

fn fault(statements: &str) -> String {
    resolved(statements, "x").unwrap_err().to_string()
}

/// The weight file that the sample names: int8 data at 64, its scales at 192.
fn sample_folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut writer = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
    let data: Vec<u8> = (0..32).collect();
    let blobs = writer.blobs().unwrap();
    assert_eq!(blobs.add_bytes(&TensorType::new(DType::Int8, [4, 8]), &data).unwrap(), 64);
    let scales = [0, 0x3c].repeat(4);
    assert_eq!(blobs.add_bytes(&TensorType::new(DType::Fp16, [4]), &scales).unwrap(), 192);
    writer.finish().unwrap();
    folder
}

#[test]
fn a_program_with_compressed_weights_becomes_a_body() {
    let folder = sample_folder();
    let body = resolve(&parse(MODERN).unwrap(), "main", builtin(), &BlobFolder::new(folder.path())).unwrap();
    body.verify().unwrap();
    let ops: Vec<_> = body.operations.iter().map(|operation| operation.op.name).collect();
    assert_eq!(ops, ["constexpr_affine_dequantize", "matmul", "add", "mul"]);
    assert_eq!(body.value(body.outputs[0].value).name, "y");
    let weights = body.values.iter().filter(|value| matches!(value.kind, ValueKind::Constant(Constant::Weight(_)))).count();
    assert_eq!(weights, 2);
    let bias = body.values.iter().find(|value| value.name == "bias").unwrap();
    assert_eq!(bias.kind, ValueKind::Constant(Constant::Values(vec![0.5, -3.0, 0.0, 65504.0])));
}

#[test]
fn literals_at_arguments_become_constants_with_names_of_their_own() {
    let body = resolved(
        "fp16 y_y = const()[val = fp16(0x1p-1)];\n tensor<fp16, [2, 4]> y = mul(x = x, y = fp16(2.0))[name = string(\"other\")];\n\
         tensor<fp16, [2, 4]> z = add(x = y, y = y_y);",
        "z",
    )
    .unwrap();
    let names: Vec<_> = body.values.iter().map(|value| value.name.as_str()).collect();
    assert_eq!(names, ["x", "y_y", "y_y_1", "y", "z"]);
}

#[test]
fn tuples_take_names_and_literals_and_a_single_value_stands_for_itself() {
    let body = resolved("tensor<fp16, [4, 4]> y = concat(values = (x, x), axis = 0, interleave = bool(false));", "y").unwrap();
    assert!(matches!(&body.operations[0].arguments[0], Operand::Many(values) if values.len() == 2));
    let body = resolved("tensor<fp16, [2, 4]> y = concat(values = x, axis = 0, interleave = bool(false));", "y").unwrap();
    assert!(matches!(&body.operations[0].arguments[0], Operand::Many(values) if values.len() == 1));
    let body = resolved("tensor<fp16, [2, 4]> y = relu(x = (x));", "y").unwrap();
    assert!(matches!(body.operations[0].arguments[0], Operand::One(_)));
    assert!(fault("tensor<fp16, [2, 4]> y = relu(x = (x, x));").contains("argument \"x\" takes one value, not a tuple"));
}

#[test]
fn several_results_are_bound_in_order() {
    let body = resolved(
        "tensor<fp16, [2, 1]> a, tensor<fp16, [2, 3]> b = split(x = x, split_sizes = tensor<int32, [2]>([1, 3]), axis = -1);",
        "b, a",
    );
    let body = body.unwrap();
    let names: Vec<_> = body.outputs.iter().map(|output| output.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(body.ty(body.outputs[0].value).shape, [2, 3]);
}

#[test]
fn a_constant_may_carry_its_value_as_an_argument() {
    let body = resolved("int32 c = const(val = int32(3))[name = string(\"c\")];", "c").unwrap();
    assert_eq!(body.constant(body.outputs[0].value), Some(&Constant::Values(vec![3.0])));
}

#[test]
fn faults_say_what_and_where() {
    let cases = [
        ("tensor<fp16, [2, 4]> y = rely(x = x);", "there is no MIL operator \"rely\"; did you mean \"relu\"?"),
        ("tensor<fp16, [2, 4]> y = zzzzzzzzzzzz(x = x);", "there is no MIL operator \"zzzzzzzzzzzz\""),
        ("tensor<fp16, [2, 4]> y = relu(x = w);", "nothing is called \"w\""),
        ("tensor<fp16, [2, 4]> y = relu(x = y);", "\"y\" is used before the statement that makes it"),
        ("tensor<fp16, [2, 4]> x = relu(x = x);", "the name \"x\" is taken already"),
        (
            "tensor<fp16, [2, 4]> y, tensor<fp16, [2, 4]> y = split(x = x, num_splits = 2, axis = 0);",
            "is declared tensor<fp16, [2, 4]>",
        ),
        ("tensor<fp16, [2, 5]> y = relu(x = x);", "\"y\" is declared tensor<fp16, [2, 5]> but is tensor<fp16, [2, 4]>"),
        ("tensor<fp16, [2, 4]> a, tensor<fp16, [2, 4]> b = relu(x = x);", "2 results are declared but the operator gives 1"),
        ("tensor<fp16, [2, 4]> y = relu(x = x, x = x);", "argument \"x\" is given twice"),
        ("tensor<fp16, [2, 4]> y = relu(y = x);", "relu has no argument \"y\"; it takes x"),
        ("tensor<fp16, [2, 4]> y = relu();", "relu needs an argument \"x\""),
        ("fp16 c = const();", "a const needs val"),
        ("fp16 c = const()[val = fp32(1.0)];", "\"c\" is declared tensor<fp16, []> but is tensor<fp32, []>"),
        ("uint64 c = const()[val = uint64(18446744073709551615)];", "18446744073709551615 is larger than 2^53"),
        ("dict<string, string> c = const()[val = {{\"a\", \"b\"}}];", "values of type dict<string, string> are not supported"),
        (
            "tensor<fp16, [2]> c = const()[val = tensor<fp16, [2]>(BLOBFILE(path = \"@model_path/w.bin\", offset = 64))];",
            "the program names the weight file \"@model_path/w.bin\" but came without any",
        ),
    ];
    for (statements, message) in cases {
        let found = fault(statements);
        assert!(found.contains(message), "{statements}\n  gave {found}\n  not {message}");
        assert!(found.starts_with("line 4, column 9: "), "{found}");
    }
    let error = resolved("tensor<fp16, [2, 4]> y = relu(x = x);", "z").unwrap_err();
    assert_eq!(error.to_string(), "return \"z\": nothing is called \"z\"");
    let error = resolve(&parse(MODERN).unwrap(), "prefill", builtin(), &NoBlobs).unwrap_err();
    assert!(error.to_string().contains("there is no function \"prefill\"; the program has main"));
}

#[test]
fn a_fault_renders_with_a_caret_in_its_source() {
    let text = program("tensor<fp16, [2, 4]> y = rely(x = x);", "y");
    let error = resolve(&parse(&text).unwrap(), "main", builtin(), &NoBlobs).unwrap_err();
    let shown = error.render(&text);
    assert!(shown.ends_with("4 |         tensor<fp16, [2, 4]> y = rely(x = x);\n  |         ^"), "{shown}");
}

#[test]
fn weight_paths_stay_in_the_folder() {
    let folder = sample_folder();
    let inside = folder.path().join("weights");
    std::fs::create_dir(&inside).unwrap();
    std::fs::rename(folder.path().join("weights.bin"), inside.join("w.bin")).unwrap();
    let open = |root: &std::path::Path, path: &str| {
        let statement =
            format!("tensor<int8, [4, 8]> c = const()[val = tensor<int8, [4, 8]>(BLOBFILE(path = \"{path}\", offset = 64))];");
        let text = program(&statement, "x");
        resolve(&parse(&text).unwrap(), "main", builtin(), &BlobFolder::new(root))
    };
    assert!(open(folder.path(), "@model_path/weights/w.bin").is_ok());
    let mut outside =
        vec!["@model_path/../weights/w.bin", "/etc/passwd", "weights/w.bin", "@model_path//etc/passwd", "@model_path/"];
    outside.push("@model_path/..");
    for path in outside {
        let error = open(&inside, path).unwrap_err();
        assert!(error.to_string().contains("leaves the program's folder"), "{error}");
    }
    assert!(open(folder.path(), "@model_path/none.bin").unwrap_err().to_string().contains("none.bin"));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_refused() {
    let folder = sample_folder();
    let bundle = TempDir::new().unwrap();
    std::os::unix::fs::symlink(folder.path().join("weights.bin"), bundle.path().join("weights.bin")).unwrap();
    let error = resolve(&parse(MODERN).unwrap(), "main", builtin(), &BlobFolder::new(bundle.path())).unwrap_err();
    assert!(matches!(*error.fault, ResolveFault::Source(_)), "{error}");
}

#[test]
fn a_blob_of_another_type_or_size_is_refused_with_file_and_offset() {
    let folder = sample_folder();
    for (from, to, message) in [
        ("offset = uint64(192)", "offset = uint64(64)", "declares tensor<fp16, [4]> but the file holds int8"),
        ("offset = uint64(64)", "offset = uint64(65)", "byte 65: expected a blob descriptor"),
        ("tensor<fp16, [4]>(", "tensor<fp16, [2, 2, 2]>(", "declares tensor<fp16, [2, 2, 2]>, 16 bytes, but the blob holds 8"),
    ] {
        let text = MODERN.replace(from, to);
        let error = resolve(&parse(&text).unwrap(), "main", builtin(), &BlobFolder::new(folder.path())).unwrap_err();
        assert!(error.to_string().contains(message) && error.to_string().contains("weights.bin"), "{error}");
    }
}

#[test]
fn operators_from_outside_resolve_like_the_others() {
    let relu = builtin().get("relu").unwrap();
    let mine: &'static MilOp =
        Box::leak(Box::new(MilOp { name: "my_relu", constraints: &[], cases: &[], ports: relu.ports, ..*relu }));
    let text = program("tensor<fp16, [2, 4]> y = my_relu(x = x);", "y");
    let body = resolve(&parse(&text).unwrap(), "main", &OpTable::with(&[mine]), &NoBlobs).unwrap();
    assert_eq!(body.operations[0].op.name, "my_relu");
}
