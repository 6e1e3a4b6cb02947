//! Models in memory: no operator that the route is reported to refuse is left, and what is written instead means the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod common;
#[path = "../../core/tests/support/rounded.rs"]
mod rounded;

use aneforge_compile::{CompileError, CompileOptions, Compiled, compile, compile_body};
use aneforge_core::{DType, Graph, evaluate};
use aneforge_mil::op::{MilOp, builtin};
use aneforge_mil::{Array, Body, Constant, Operand, Operation, ValueId, ValueKind};
use half::f16;

fn compiled(body: Body, target: &str) -> Result<Compiled, CompileError> {
    compile_body(body, &CompileOptions { target: target.parse().unwrap(), ..CompileOptions::default() })
}

/// A case of an operator as a body: tensors are inputs, attributes and weights constants.
fn case_body(op: &'static MilOp, ports: &[Vec<aneforge_mil::op::Argument>]) -> Option<(Body, Vec<Array>)> {
    let (mut body, mut inputs) = (Body::default(), Vec::new());
    let mut arguments = Vec::new();
    for (spec, given) in op.ports.iter().zip(ports) {
        let mut ids = Vec::new();
        for argument in given {
            let name = format!("{}_{}", spec.name, body.values.len());
            ids.push(match (&argument.text, &argument.value) {
                (Some(text), _) => body.add_constant(name, argument.ty.clone(), Constant::Text(text.clone())),
                (None, Some(array)) if spec.kind.is_attribute() || spec.name == "weight" || argument.ty.shape.is_empty() => {
                    body.add_constant(name, argument.ty.clone(), Constant::Values(array.data.clone()))
                }
                (None, Some(array)) => {
                    inputs.push(array.clone().rounded());
                    body.add_input(name, argument.ty.clone())
                }
                (None, None) => return None,
            });
        }
        arguments.push(match (spec.kind.is_tuple(), &ids[..]) {
            (true, _) => Operand::Many(ids),
            (false, []) => Operand::Absent,
            (false, ids) => Operand::One(ids[0]),
        });
    }
    let types = body.infer(op, &arguments).ok()?;
    let results = types.into_iter().enumerate().map(|(index, ty)| (format!("y{index}"), ty)).collect();
    let results = body.add_operation(op, arguments, results);
    let value = *results.first()?;
    body.outputs.push(aneforge_mil::Output { name: "y0".to_string(), value });
    Some((body, inputs))
}

fn at(operation: &Operation, port: &str) -> Option<ValueId> {
    match operation.op.port(port).map(|index| &operation.arguments[index]) {
        Some(Operand::One(id)) => Some(*id),
        _ => None,
    }
}

/// What the sources say is refused or silently wrong.
fn complaint(body: &Body) -> Option<String> {
    const REFUSED: &[&str] = &[
        "gelu",
        "silu",
        "rsqrt",
        "inverse",
        "real_div",
        "reduce_mean",
        "layer_norm",
        "linear",
        "identity",
        "square",
        "scaled_dot_product_attention",
    ];
    body.operations.iter().find_map(|operation| {
        let ports = body.argument_ports(&operation.arguments);
        let arguments = aneforge_mil::op::Arguments::checked(operation.op, &ports).unwrap();
        let name = operation.op.name;
        let from_input = at(operation, "x").is_some_and(|x| body.value(x).kind == ValueKind::Input);
        let float = arguments.get("x").is_some_and(|x| x.ty.dtype.is_float());
        let inner = || {
            let x = arguments.shape("x");
            x[if arguments.flag("transpose_x") && x.len() > 1 { x.len() - 2 } else { x.len() - 1 }]
        };
        let wrong = match name {
            "real_div" | "inverse" if !float => false,
            _ if REFUSED.contains(&name) || name.starts_with("constexpr_") => true,
            "conv" | "conv_transpose" => arguments.has("bias"),
            "concat" => !arguments.has("interleave"),
            "slice_by_index" => from_input && float,
            "softmax" => {
                let axis = arguments.axis(arguments.int("axis").unwrap(), arguments.shape("x").len()).unwrap();
                !arguments.shape("x")[axis].is_power_of_two()
            }
            "matmul" => float && !inner().is_multiple_of(32),
            _ => false,
        };
        wrong.then(|| format!("{name}: {}", arguments.describe()))
    })
}

#[test]
fn every_case_of_every_operator_keeps_its_meaning_or_is_refused_with_a_remedy() {
    let (mut kept, mut changed, mut refused) = (0, 0, 0);
    for op in builtin().all() {
        for case in op.cases {
            let Some((body, inputs)) = case_body(op, &case.arguments(op)) else { continue };
            let name = format!("{} {}", op.name, case.name);
            let wanted = evaluate(&body, &inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
            let e5rt: Vec<_> = match compiled(body.clone(), "m5") {
                Ok(compiled) => compiled.body.operations.iter().map(|operation| operation.op.name).collect(),
                // Not a matter of the route.
                Err(_) => continue,
            };
            let after = match compiled(body, "m5:in-memory") {
                Ok(compiled) => compiled.body,
                Err(CompileError::Limit { rule, remedy, target, .. }) => {
                    assert!(!rule.is_empty() && !remedy.is_empty() && target == "m5:in-memory", "{name}");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{name}: {error}"),
            };
            after.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(complaint(&after), None, "{name}");
            let names: Vec<_> = after.operations.iter().map(|operation| operation.op.name).collect();
            changed += usize::from(names != e5rt);
            // Every step in fp16, as the engine stores it.
            let got = rounded::run(&after, &inputs);
            let largest =
                wanted[0].data.iter().filter(|value| value.is_finite()).fold(1e-3f64, |most, value| most.max(value.abs()));
            for (wanted, got) in wanted[0].data.iter().zip(&got) {
                let near = (wanted - got).abs() <= 4e-3 * largest || wanted == got || (wanted.is_nan() && got.is_nan());
                assert!(near, "{name}: {got}, wanted {wanted}; {names:?}");
            }
            kept += 1;
        }
    }
    println!("{kept} cases kept, {changed} of them written otherwise than for e5rt, {refused} refused");
    assert!(kept > 180 && changed > 30, "{kept} kept, {changed} changed, {refused} refused");
}

#[test]
fn gelu_stays_within_its_bound_over_all_of_fp16() {
    let values: Vec<f64> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64()).filter(|value| value.is_finite()).collect();
    let graph = Graph::new();
    let shape = [8, values.len() / 8];
    let y = graph.input("x", DType::Fp16, &shape).gelu("EXACT");
    let options = CompileOptions { target: "m4:in-memory".parse().unwrap(), ..CompileOptions::default() };
    let body = compile(&[("y", &y)], &options).unwrap().body;
    let given = [Array::new(DType::Fp16, shape, values.clone())];
    let exact = |x: f64| 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2));
    for (&x, got) in values.iter().zip(&evaluate(&body, &given).unwrap()[0].data) {
        // Above 8 the fp16 result is x itself; its rounding is not the formula's error.
        let bound = if x.abs() < 8.0 { 5e-4 + exact(x).abs() * 2f64.powi(-11) } else { x.abs() * 2f64.powi(-11) };
        assert!((got - exact(x)).abs() <= bound, "gelu({x}) = {got}");
    }
    for (&x, got) in values.iter().zip(rounded::run(&body, &given)) {
        assert!((got - exact(x)).abs() <= 1e-3 + exact(x).abs() * 3e-3, "gelu({x}) = {got} with every step rounded");
    }
}

#[test]
fn a_product_with_a_weight_is_filled_as_the_weight_is_read() {
    let folder = common::folder();
    for (weight, flag, filled) in [("[2, 512]", "true", [2, 512]), ("[32, 32]", "false", [32, 32]), ("[16, 64]", "false", [32, 64])]
    {
        let inner = if flag == "true" { 512 } else { weight[1..3].parse::<usize>().unwrap() };
        let rows = if flag == "true" { 2 } else { filled[1] };
        let text = format!(
            "func main<ios18>(tensor<fp16, [3, {inner}]> x) {{
                tensor<fp16, {weight}> w = const()[name = string(\"w\"), val = tensor<fp16, {weight}>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
                tensor<fp16, [3, {rows}]> y = matmul(x = x, y = w, transpose_y = bool({flag}))[name = string(\"y\")];
            }} -> (y);"
        );
        let before = common::body(&text, &folder);
        let after = compiled(before.clone(), "m1:in-memory").unwrap().body;
        let weights: Vec<_> =
            after.values.iter().filter(|value| matches!(value.kind, ValueKind::Constant(Constant::Weight(_)))).collect();
        assert_eq!(weights.iter().map(|value| value.ty.shape.clone()).collect::<Vec<_>>(), [filled.to_vec()]);
        for given in common::inputs(&before) {
            assert_eq!(evaluate(&before, &given).unwrap(), evaluate(&after, &given).unwrap(), "{weight}");
        }
    }
}

#[test]
fn what_the_route_refuses_is_told_with_its_remedy() {
    let folder = common::folder();
    let wide = "func main<ios18>(tensor<fp32, [2]> x) {
        tensor<fp16, [2]> y = cast(x = x, dtype = string(\"fp16\"))[name = string(\"y\")];
    } -> (y);";
    let inside = "func main<ios18>(tensor<fp16, [2]> x) {
        tensor<fp32, [2]> z = cast(x = x, dtype = string(\"fp32\"))[name = string(\"z\")];
        tensor<fp32, [2]> r = relu(x = z)[name = string(\"r\")];
        tensor<fp16, [2]> y = cast(x = r, dtype = string(\"fp16\"))[name = string(\"y\")];
    } -> (y);";
    let bytes = "func main<ios18>(tensor<uint8, [2]> x) {
        tensor<fp16, [2]> y = cast(x = x, dtype = string(\"fp16\"))[name = string(\"y\")];
    } -> (y);";
    let computed = "func main<ios18>(tensor<fp16, [1, 2, 1, 4]> x, tensor<fp16, [2, 1, 1, 1]> w) {
        tensor<fp16, [1, 2, 1, 4]> y = conv(x = x, weight = w, groups = int32(2))[name = string(\"y\")];
    } -> (y);";
    let volume = "func main<ios18>(tensor<fp16, [1, 2, 2, 2, 32]> x, tensor<fp16, [1, 2, 2, 32, 2]> z) {
        tensor<fp16, [1, 2, 2, 2, 2]> y = matmul(x = x, y = z)[name = string(\"y\")];
    } -> (y);";
    let search = "func main<ios18>(tensor<fp16, [2049]> x) {
        tensor<int32, [1]> i = reduce_argmax(x = x, axis = int32(0), keep_dims = bool(true))[name = string(\"i\")];
        tensor<fp16, [1]> y = gather(x = x, indices = i, axis = int32(0))[name = string(\"y\")];
    } -> (y);";
    for (text, works, fails, words) in [
        (volume, "m4", "m4:in-memory", ["four axes", "reshape"]),
        (search, "m4", "m4:in-memory", ["2048 elements", "on the host"]),
        (wide, "m3:in-memory", "m2:in-memory", ["fp32", "make the port fp16"]),
        (inside, "m5:in-memory", "m1:in-memory", ["between fp16 and fp32", "fp16"]),
        (bytes, "m5", "m5:in-memory", ["ports are floats", "on the host"]),
        (computed, "m4", "m4:in-memory", ["is a constant", "matmul"]),
    ] {
        let body = common::body(text, &folder);
        assert!(compiled(body.clone(), works).is_ok(), "{:?}", compiled(body, works).err());
        let error = compiled(body, fails).unwrap_err().to_string();
        assert!(words.iter().chain(&[fails]).all(|word| error.contains(word)), "{error}");
    }
    let graph = Graph::new();
    let weight = graph.weight(aneforge_mil::Weight::from_fp16([1, 32000, 1, 1], &vec![f16::ONE; 32000]).unwrap());
    let y = graph.input("x", DType::Fp16, &[1, 32000, 1, 1]).conv(&weight, None, &aneforge_core::Window::default());
    let options = CompileOptions { target: "m4:in-memory".parse().unwrap(), ..CompileOptions::default() };
    let error = compile(&[("y", &y)], &options).unwrap_err().to_string();
    assert!(error.contains("32000 input channels") && error.contains("split"), "{error}");
}

#[test]
fn a_bundle_says_its_route() {
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[1, 64, 1, 32]).silu();
    let options = CompileOptions { target: "m2:in-memory".parse().unwrap(), ..CompileOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("silu.ane");
    let manifest = compile(&[("y", &y)], &options).unwrap().write(&place).unwrap();
    assert_eq!(manifest.target, "m2:in-memory");
    let read: aneforge_compile::Manifest = serde_json::from_slice(&std::fs::read(place.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(read.target.parse(), Ok(options.target));
}
