//! States in the text: one value before, one after, whatever the order of reads and writes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::op::builtin;
use aneforge_mil::{
    BlobWriter, Body, Dialect, EmitError, EmitOptions, NoBlobs, ValueKind, VerifyError, emit, parse, print, resolve,
};
use std::io::Cursor;

const TWO: &str = "tensor<fp16, [2]> x, state<tensor<fp16, [2]>> sum, state<tensor<fp16, [2]>> last";

fn text(inputs: &str, statements: &str, outputs: &str) -> String {
    format!("program(1.3)\n{{\n    func main<ios18>({inputs}) {{\n{statements}\n    }} -> ({outputs});\n}}\n")
}

fn body(inputs: &str, statements: &str, outputs: &str) -> Result<Body, String> {
    let text = text(inputs, statements, outputs);
    let body = resolve(&parse(&text).unwrap(), "main", builtin(), &NoBlobs).map_err(|error| error.to_string())?;
    body.verify().unwrap();
    Ok(body)
}

fn emitted(body: &Body) -> String {
    let mut blob = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
    print(&emit(body, &EmitOptions::default(), &mut blob).unwrap())
}

const ACCUMULATE: &str = "
    tensor<fp16, [2]> before = read_state(input = sum)[name = string(\"before\")];
    tensor<fp16, [2]> after = add(x = before, y = x)[name = string(\"after\")];
    write_state(data = after, input = sum)[name = string(\"sum_write\")];
    write_state(input = last, data = x);
    tensor<fp16, [2]> again = read_state(input = sum);
    tensor<fp16, [2]> y = mul(x = again, y = again);";

#[test]
fn a_read_after_a_write_is_what_was_written() {
    let body = body(TWO, ACCUMULATE, "y").unwrap();
    let ops: Vec<_> = body.operations.iter().map(|operation| operation.op.name).collect();
    assert_eq!(ops, ["add", "mul"]);
    let [sum, last] = body.states.as_slice() else { panic!("two states") };
    assert_eq!((sum.name.as_str(), last.name.as_str()), ("sum", "last"));
    assert_eq!(body.value(sum.input).kind, ValueKind::State);
    assert_eq!(body.value(sum.input).name, "before");
    assert_eq!(sum.result, body.operations[0].outputs[0]);
    assert_eq!(last.result, body.inputs[0]);
    assert_eq!(body.operations[1].arguments[0].values(), [sum.result]);
}

#[test]
fn a_body_with_states_goes_through_text_unchanged() {
    let cases = [
        body(TWO, ACCUMULATE, "y").unwrap(),
        // Swapped contents, a constant, one that only reads, and an output that is the old contents.
        body(
            "tensor<fp16, [1]> x, state<tensor<fp16, [1]>> a, state<tensor<fp16, [1]>> b, state<tensor<fp16, [1]>> c, state<tensor<int32, [1]>> d",
            "tensor<fp16, [1]> olda = read_state(input = a);
             tensor<fp16, [1]> oldb = read_state(input = b);
             write_state(input = a, data = oldb);
             write_state(input = b, data = olda);
             tensor<fp16, [1]> z = const()[val = tensor<fp16, [1]>([0x1p-1])];
             write_state(input = c, data = z);
             tensor<int32, [1]> count = read_state(input = d);",
            "olda, count",
        )
        .unwrap(),
    ];
    for body in cases {
        let text = emitted(&body);
        let again = resolve(&parse(&text).unwrap(), "main", builtin(), &NoBlobs).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(body.same_computation(&again), "{text}");
        assert_eq!(text, emitted(&again));
        assert_eq!(print(&parse(&text).unwrap()), text);
    }
}

#[test]
fn the_text_reads_once_at_the_start_and_writes_where_contents_are_made() {
    let text = emitted(&body(TWO, ACCUMULATE, "y").unwrap());
    let expected = "    func main<ios18>(tensor<fp16, [2]> x, state<tensor<fp16, [2]>> sum, state<tensor<fp16, [2]>> last) {
        tensor<fp16, [2]> before = read_state(input = sum)[name = string(\"before\")];
        tensor<fp16, [2]> after = add(x = before, y = x)[name = string(\"after\")];
        write_state(data = after, input = sum)[name = string(\"sum_write\")];
        tensor<fp16, [2]> y = mul(x = after, y = after)[name = string(\"y\")];
        write_state(data = x, input = last)[name = string(\"last_write\")];
    } -> (y);
";
    assert!(text.contains(expected), "{text}");
}

/// coremltools writes and reads in one statement.
#[test]
fn an_update_of_coremltools_gives_what_it_wrote() {
    let statements = "
        tensor<fp16, [2]> before = read_state(input = sum);
        tensor<fp16, [2]> after = add(x = before, y = x);
        tensor<fp16, [2]> kept = coreml_update_state(state = sum, value = after);
        tensor<fp16, [2]> y = mul(x = kept, y = x);";
    let body = body(TWO, statements, "y").unwrap();
    assert_eq!(body.states[0].result, body.operations[0].outputs[0]);
    assert_eq!(body.operations[1].arguments[0].values(), [body.states[0].result]);
}

#[test]
fn what_a_state_keeps_is_not_dead() {
    let mut body = body(TWO, &ACCUMULATE.replace("y = mul(x = again, y = again)", "y = relu(x = x)"), "y").unwrap();
    let counts = body.use_counts();
    assert_eq!(counts[body.states[0].result.index()], 1);
    body.compact();
    let ops: Vec<_> = body.operations.iter().map(|operation| operation.op.name).collect();
    assert_eq!(ops, ["add", "relu"]);
    body.verify().unwrap();
    let mut forgetful = body.clone();
    forgetful.states[0].result = forgetful.states[0].input;
    assert!(!body.same_computation(&forgetful));
    forgetful.compact();
    assert_eq!(forgetful.operations.len(), 1);
}

#[test]
fn wrong_uses_of_states_say_what_would_be_right() {
    let fault = |statements: &str| body(TWO, statements, "x").unwrap_err();
    let cases = [
        ("tensor<fp16, [2]> y = relu(x = sum);", "\"sum\" is a state; take its contents with read_state"),
        ("tensor<fp16, [2]> y = read_state(input = x);", "\"x\" is no state; declare it as state<tensor<...>> x"),
        ("tensor<fp16, [3]> y = read_state(input = sum);", "is declared tensor<fp16, [3]> but is tensor<fp16, [2]>"),
        ("read_state(input = sum);", "0 results are declared but the operator gives 1"),
        ("write_state(input = sum);", "takes input and data, once each and nothing else"),
        ("write_state(input = sum, data = fp16(1.0));", "holds tensor<fp16, [2]> and cannot take tensor<fp16, []>"),
        ("tensor<fp16, [2]> sum = relu(x = x);", "the name \"sum\" is taken already"),
    ];
    for (statements, expected) in cases {
        let told = fault(statements);
        assert!(told.contains(expected), "{statements}: {told}");
    }
    let doubled = body("tensor<fp16, [2]> s, state<tensor<fp16, [2]>> s", "", "s").unwrap_err();
    assert!(doubled.contains("taken already"), "{doubled}");
}

#[test]
fn the_older_dialect_and_a_changed_type_are_refused() {
    let good = body(TWO, ACCUMULATE, "y").unwrap();
    let mut blob = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
    let old = EmitOptions { dialect: Dialect::Old, ..EmitOptions::default() };
    assert!(matches!(emit(&good, &old, &mut blob), Err(EmitError::OldState { name }) if name == "sum"));
    let mut bad = good.clone();
    bad.values[bad.states[0].result.index()].ty.shape = vec![3];
    let VerifyError { .. } = bad.verify().unwrap_err();
    let mut bad = good;
    bad.states[1].result = bad.add_constant(
        "c",
        aneforge_mil::TensorType::new(aneforge_mil::DType::Fp16, [1]),
        aneforge_mil::Constant::Values(vec![0.0]),
    );
    let error = bad.verify().unwrap_err();
    assert_eq!((error.op, error.name.as_str()), ("write_state", "last"));
}

/// Text with pieces missing, doubled or exchanged: an error or a body that holds, never a panic.
#[test]
fn damaged_text_is_answered() {
    let whole = text(TWO, ACCUMULATE, "y");
    let words: Vec<&str> = whole.split_inclusive([' ', '(', ')', ',', ';', '<', '>']).collect();
    let mut answered = 0;
    for at in 0..words.len() {
        for change in 0..3 {
            let mut damaged = words.clone();
            match change {
                0 => drop(damaged.remove(at)),
                1 => damaged.insert(at, words[at]),
                _ => damaged.swap(at, (at * 7 + 3) % words.len()),
            }
            let Ok(program) = parse(&damaged.concat()) else { continue };
            let Ok(body) = resolve(&program, "main", builtin(), &NoBlobs) else { continue };
            body.verify().unwrap();
            let again = parse(&emitted(&body)).unwrap();
            assert!(body.same_computation(&resolve(&again, "main", builtin(), &NoBlobs).unwrap()));
            answered += 1;
        }
    }
    assert!(answered > 10, "{answered} damaged programs still hold");
}
