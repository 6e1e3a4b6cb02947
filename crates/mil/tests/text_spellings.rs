//! What the parser takes and what its errors say.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::{Argument, DType, Literal, LiteralValue, Program, Type, parse, print};

const LOOSE: &str = include_str!("../../../testing/fuzz/corpus/parse_text/loose.mil");
const MODERN: &str = include_str!("../../../testing/fuzz/corpus/parse_text/modern.mil");
const OLD: &str = include_str!("../../../testing/fuzz/corpus/parse_text/old.mil");
const CONTAINERS: &str = include_str!("../../../testing/fuzz/corpus/parse_text/containers.mil");

fn value(program: &Program, name: &str) -> Literal {
    let statements = program.functions.iter().flat_map(|function| &function.body);
    let found = statements.filter(|statement| statement.outputs[0].name == name).flat_map(|statement| &statement.attributes);
    found.into_iter().find(|attribute| attribute.name == "val").expect("a constant of that name").value.clone()
}

#[test]
fn canonical_text_of_both_dialects_prints_back_to_the_letter() {
    for text in [MODERN, OLD, CONTAINERS] {
        assert_eq!(print(&parse(text).unwrap()), text);
    }
}

#[test]
fn loose_spellings_mean_what_they_should() {
    let program = parse(LOOSE).unwrap();
    assert_eq!(program.version, (1, 3));
    let attribute = |name: &str| program.attributes.iter().find(|a| a.name == name).unwrap().value.clone();
    assert_eq!(attribute("flag"), Literal::flag(true));
    assert_eq!(attribute("count"), Literal::int(DType::Int32, 3));
    assert_eq!(attribute("half"), Literal::float(DType::Fp32, 0.5));
    assert_eq!(attribute("word"), Literal::text("a \"quoted\" \\ one"));
    assert_eq!(attribute("list").ty, Type::tensor(DType::Int32, [2, 2]));

    assert_eq!(program.functions.len(), 2);
    let split = &program.functions[0].body[0];
    assert_eq!(split.outputs.len(), 2);
    assert_eq!((split.location.line, split.location.column), (6, 5));
    assert_eq!(split.arguments[2], ("axis".into(), Argument::Literal(Literal::int(DType::Int32, -1))));

    assert_eq!(value(&program, "zero"), Literal::float(DType::Fp16, 0.0));
    assert_eq!(value(&program, "top"), Literal::float(DType::Fp16, f64::INFINITY));
    assert_eq!(value(&program, "bottom"), Literal::float(DType::Fp16, f64::NEG_INFINITY));
    assert_eq!(value(&program, "odd"), Literal::float(DType::Fp16, f64::NAN));
    assert_eq!(value(&program, "two"), Literal::int(DType::UInt32, 2));
    assert_eq!(value(&program, "rank0").ty, Type::tensor(DType::Fp16, []));
    assert_eq!(value(&program, "grid"), value(&program, "flat"));
    let e = &program.functions[0].body[2].arguments[0].1;
    // -0.15 to the nearest fp16.
    assert_eq!(*e, Argument::Literal(Literal::float(DType::Fp16, -0.150_024_414_062_5)));

    let concat = program.functions[0].body.last().unwrap();
    assert_eq!(concat.arguments[0].1, Argument::Tuple(vec![Argument::Name("a".into()), Argument::Name("b".into())]));
    assert_eq!(program.functions[0].outputs, ["c", "a"]);
    assert_eq!(parse(&print(&program)).unwrap(), program);
}

#[test]
fn names_may_look_like_keywords() {
    let text = "program(1.3){func main<ios18>(tensor<fp16, [1]> fp16, tensor<fp16, [1]> tensor){\
                tensor<fp16, [1]> string = add(x = fp16, y = tensor);} -> (string);}";
    let program = parse(text).unwrap();
    assert_eq!(program.functions[0].body[0].arguments[0].1, Argument::Name("fp16".into()));
    assert_eq!(parse(&print(&program)).unwrap(), program);
}

#[test]
fn blobs_keep_path_and_offset_in_either_spelling() {
    let offset = |text: &str, name: &str| match value(&parse(text).unwrap(), name).value {
        LiteralValue::Blob { path, offset } => (path, offset),
        other => panic!("{other:?}"),
    };
    assert_eq!(offset(OLD, "weight"), ("@model_path/weights/weight.bin".to_string(), 64));
    let bare = OLD.replace("offset = tensor<uint64, []>(64), path", "path").replace("tensor<uint64, []>(64)", "64");
    assert_eq!(offset(&bare, "weight").1, 64);
}

#[test]
fn errors_point_at_line_and_column_with_a_caret() {
    let text = "program(1.3)\n{\n    func main<ios18>(tensor<fp17, [2]> x) {\n    } -> (x);\n}\n";
    let error = parse(text).unwrap_err();
    assert_eq!((error.location.line, error.location.column), (3, 29));
    let shown = error.to_string();
    assert_eq!(
        shown,
        "line 3, column 29: expected an element type such as fp16, found \"fp17\"\n\
         3 |     func main<ios18>(tensor<fp17, [2]> x) {\n  |                             ^"
    );
}

#[test]
fn every_mistake_has_its_own_message() {
    let cases = [
        ("program(1.3)", "expected '{' before the functions, found the end of the text"),
        ("program(x){}", "a version is two numbers"),
        ("program(1.3){} more", "expected the end of the text after the program"),
        ("program(1.3)[a = fp16(abc)]{}", "\"abc\" is no number"),
        ("program(1.3)[a = int8(128)]{}", "128 does not fit int8"),
        ("program(1.3)[a = uint8(-1)]{}", "-1 does not fit uint8"),
        ("program(1.3)[a = int32(1.5)]{}", "\"1.5\" is no integer"),
        ("program(1.3)[a = bool(yes)]{}", "\"yes\" is neither true nor false"),
        ("program(1.3)[a = string(\"x]{}", "this string is never closed"),
        ("program(1.3)[a = tensor<fp16, [3]>([1, 2])]{}", "tensor<fp16, [3]> needs 3 elements, found 2"),
        ("program(1.3)[a = tensor<fp16, [2, 2]>([[1], [2]])]{}", "2 elements along axis 1, found 1"),
        ("program(1.3)[a = tensor<fp16, [?]>([1])]{}", "dynamic extents are not supported"),
        ("program(1.3)[a = list<int32, 2>([1])]{}", "needs 2 elements, found 1"),
        ("program(1.3)[a = tuple<bool>((true, true))]{}", "has only 1 parts"),
        ("program(1.3)[a = [1, true]]{}", "elements of one type"),
        ("program(1.3)[a = tensor<fp16, [2]>(BLOBFILE(path = string(\"x\")))]{}", "needs both path and offset"),
        ("program(1.3)[a = tensor<fp16, [2]>(BLOBFILE(path = 3))]{}", "takes path = string(..)"),
        ("program(1.3)[a = list<fp16, 1>([int8(1)])]{}", "expected a fp16, found a int8"),
        ("program(1.3){func f<ios18>(){fp16 a = const()}->(a);}", "expected ';' after the statement, found '}'"),
    ];
    for (text, message) in cases {
        let error = parse(text).unwrap_err();
        assert!(error.message.contains(message), "{text}\n  gave {:?}\n  not {message:?}", error.message);
    }
}
