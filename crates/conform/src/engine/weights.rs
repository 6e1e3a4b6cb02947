//! Experiments on weight files: which bytes a load takes, whether procedures have weights of their own, whether element codes are read.

use super::bench::{BYTES, Bench, QUALITY, SHAPE, SURFACE, input, words};
use aneforge_mil::op::builtin;
use aneforge_mil::{BlobWriter, Body, Constant, DType, EmitOptions, Emitter, Operand, Output, TensorType, Weight, print};
use aneforge_sys::ane::{Model, Request};
use half::f16;
use serde_json::{Value, json};
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::path::Path;

/// Where a weight file has the element code of its first weight: behind the file's 64 bytes and the mark of the record (coremltools,
/// MILBlob's StorageFormat.hpp).
const CODE: u64 = 68;

/// A program whose functions each add a weight of one number, with the file that holds the weights.
struct Adding {
    text: String,
    weights: Vec<u8>,
}

fn adding(functions: &[(&str, f64)]) -> Result<Adding, String> {
    let fault = |error: &dyn std::error::Error| error.to_string();
    let add = builtin().get("add").ok_or("MIL has no add")?;
    let mut blob = BlobWriter::new(Cursor::new(Vec::new())).map_err(|error| fault(&error))?;
    let mut emitter = Emitter::new(EmitOptions::default(), &mut blob);
    let mut bodies = Vec::new();
    for &(name, number) in functions {
        let mut body = Body { name: name.to_string(), ..Body::default() };
        let ty = TensorType::new(DType::Fp16, SHAPE);
        let x = body.add_input("x", ty.clone());
        let numbers = vec![f16::from_f64(number); BYTES / 2];
        let weight = Weight::from_fp16(SHAPE, &numbers).map_err(|error| fault(&error))?;
        let weight = body.add_constant("w", ty, Constant::Weight(weight));
        let operands = vec![Operand::One(x), Operand::One(weight)];
        let types = body.infer(add, &operands).map_err(|error| fault(&error))?;
        let results = types.into_iter().map(|ty| ("y".to_string(), ty)).collect();
        let y = body.add_operation(add, operands, results).first().copied().ok_or("no result")?;
        body.outputs = vec![Output { name: "y".to_string(), value: y }];
        emitter.function(&body).map_err(|error| fault(&error))?;
        // A weight of the same address as one that is gone would be taken for that one.
        bodies.push(body);
    }
    let text = print(&emitter.finish());
    Ok(Adding { text, weights: blob.finish().map_err(|error| fault(&error))?.into_inner() })
}

fn written(result: std::io::Result<()>, path: &Path) -> Result<(), String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a program's files and compiles and loads them.
fn model(bench: &Bench, name: &str, program: &Adding) -> Result<Model, String> {
    let place = bench.place(name);
    let file = place.join("weights.bin");
    written(std::fs::create_dir_all(&place).and_then(|()| std::fs::write(&file, &program.weights)), &file)?;
    bench.model(name, &program.text)
}

/// What a procedure adds to its input; a wrong answer is an error.
fn added(bench: &Bench, model: &mut Model, procedure: u32) -> Result<f64, String> {
    let (from, to) = (bench.surface(SURFACE)?, bench.surface(SURFACE)?);
    let inputs: Vec<_> = model.input_symbols(procedure).map_err(words)?.into_iter().zip([&from]).collect();
    let outputs: Vec<_> = model.output_symbols(procedure).map_err(words)?.into_iter().zip([&to]).collect();
    let mut request = Request::new(&bench.engine, &inputs, &outputs, procedure).map_err(words)?;
    bench.client.evaluate(model, &mut request, QUALITY).map_err(words)?;
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        bytes.chunks_exact(2).map(|pair| f16::from_bits(u16::from_le_bytes([pair[0], pair[1]])).to_f64()).collect()
    };
    let (given, made) = (numbers(&input()), numbers(&bench.read(&to)?));
    let mut differences = given.iter().zip(&made).map(|(given, made)| made - given);
    let first = differences.next().ok_or("no elements")?;
    if differences.all(|difference| difference == first) { Ok(first) } else { Err("a wrong answer".to_string()) }
}

fn told(answer: Result<f64, String>) -> Value {
    answer.map_or_else(|problem| json!({ "problem": problem }), |number| json!({ "adds": number }))
}

/// Experiment 3: the file is written over in place, then another one gets its name; after each the model is unloaded and loaded.
pub(super) fn replaced(bench: &Bench) -> Result<Value, String> {
    let mut model = model(bench, "replaced", &adding(&[("main", 1.0)])?)?;
    let file = bench.place("replaced").join("weights.bin");
    let compiled = added(bench, &mut model, 0);
    let mut again = |number: f64, write: &dyn Fn(&[u8]) -> std::io::Result<()>| {
        model.unload().map_err(words)?;
        written(write(&adding(&[("main", number)])?.weights), &file)?;
        bench.client.load(&mut model, bench.engine.no_options(), QUALITY).map_err(words)?;
        added(bench, &mut model, 0)
    };
    let in_place = again(2.0, &|bytes| std::fs::File::options().write(true).open(&file)?.write_all(bytes));
    let other = file.with_extension("other");
    let replaced = again(3.0, &|bytes| std::fs::write(&other, bytes).and_then(|()| std::fs::rename(&other, &file)));
    Ok(json!({
        "compiled_with_1": told(compiled),
        "written_over_in_place_with_2": told(in_place),
        "replaced_by_a_file_with_3": told(replaced),
    }))
}

/// Experiment 7: two procedures of one program, each with a weight of its own in one file.
pub(super) fn procedures(bench: &Bench) -> Result<Value, String> {
    let mut model = model(bench, "procedures", &adding(&[("one", 1.0), ("two", 2.0)])?)?;
    let answers: Vec<_> = (0..2).map(|procedure| told(added(bench, &mut model, procedure))).collect();
    Ok(json!({ "functions_add": [1.0, 2.0], "procedures": answers }))
}

/// Experiment 8: fp16 weights under codes of other types, sizes as they are for fp16.
pub(super) fn codes(bench: &Bench) -> Result<Value, String> {
    let mut all = Vec::new();
    for (code, meaning) in [(1_u32, "fp16, as it is"), (3, "uint8"), (4, "int8"), (8, "int4"), (255, "none")] {
        // A number of its own, so that no program is taken for another.
        let mut program = adding(&[("main", f64::from(code))])?;
        let mut file = Cursor::new(&mut program.weights);
        let patched = file.seek(SeekFrom::Start(CODE)).and_then(|_| file.write_all(&code.to_le_bytes()));
        patched.map_err(|error| error.to_string())?;
        let answer = model(bench, &format!("code-{code}"), &program).and_then(|mut model| added(bench, &mut model, 0));
        all.push(json!({ "code": code, "meaning": meaning, "weights_are": code, "answer": told(answer) }));
    }
    Ok(json!(all))
}
