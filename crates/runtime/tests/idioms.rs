//! Groups of operations that become one step: the result must not depend on it.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::emulator::{Emulator, EmulatorOptions};
use aneforge_runtime::{Cpu, Device, Program, open};
use common::{distance, inputs, literal, program, run};
use std::sync::Arc;

/// A program, what its fused plan must mention, and how many steps it may have at most.
struct Idiom {
    name: &'static str,
    program: Arc<Program>,
    kernel: &'static str,
    steps: usize,
    tolerance: f64,
    range: (f64, f64),
}

fn layer_norm_written_out() -> Idiom {
    let statements = format!(
        r#"tensor<int32, [1]> ax = const()[name = string("ax"), val = tensor<int32, [1]>([-1])];
        tensor<fp16, [5, 1]> mu = reduce_mean(x = x, axes = ax, keep_dims = bool(true))[name = string("mu")];
        tensor<fp16, [5, 48]> xc = sub(x = x, y = mu)[name = string("xc")];
        tensor<fp16, [5, 48]> sq = mul(x = xc, y = xc)[name = string("sq")];
        tensor<fp16, [5, 1]> var = reduce_mean(x = sq, axes = ax, keep_dims = bool(true))[name = string("var")];
        tensor<fp16, [5, 1]> ve = add(x = var, y = fp16(0x1.5p-17))[name = string("ve")];
        tensor<fp16, [5, 1]> rr = rsqrt(x = ve, epsilon = fp16(0.0))[name = string("rr")];
        tensor<fp16, [5, 48]> xn = mul(x = xc, y = rr)[name = string("xn")];
        tensor<fp16, [5, 48]> g = mul(x = xn, y = {})[name = string("g")];
        tensor<fp16, [5, 48]> y = add(x = g, y = {})[name = string("y")];"#,
        literal(&[48], 3, (0.5, 1.5)),
        literal(&[1, 48], 4, (-1.0, 1.0)),
    );
    Idiom {
        name: "layer norm in nine operations",
        program: program("tensor<fp16, [5, 48]> x", &statements, "y"),
        kernel: "layer norm, 9 operations",
        steps: 1,
        tolerance: 3e-3,
        range: (-3.0, 5.0),
    }
}

fn rms_norm_written_out() -> Idiom {
    let statements = format!(
        r#"tensor<int32, [1]> ax = const()[name = string("ax"), val = tensor<int32, [1]>([1])];
        tensor<fp16, [5, 48]> sq = square(x = x)[name = string("sq")];
        tensor<fp16, [5, 1]> var = reduce_mean(x = sq, axes = ax, keep_dims = bool(true))[name = string("var")];
        tensor<fp16, [5, 1]> rr = rsqrt(x = var, epsilon = fp16(0x1p-10))[name = string("rr")];
        tensor<fp16, [5, 48]> xn = mul(x = rr, y = x)[name = string("xn")];
        tensor<fp16, [5, 48]> y = mul(x = xn, y = {})[name = string("y")];"#,
        literal(&[48], 3, (0.5, 1.5)),
    );
    Idiom {
        name: "rms norm in five operations",
        program: program("tensor<fp16, [5, 48]> x", &statements, "y"),
        kernel: "rms norm, 5 operations",
        steps: 1,
        tolerance: 3e-3,
        range: (-3.0, 5.0),
    }
}

fn attention(masked: bool, scaled_queries: bool) -> Idiom {
    let heads = |from: &str, to: &str| {
        format!(
            r#"tensor<fp16, [2, 9, 3, 16]> {to}r = reshape(x = {from}, shape = tensor<int32, [4]>([2, 9, 3, 16]))[name = string("{to}r")];
        tensor<fp16, [2, 3, 9, 16]> {to} = transpose(x = {to}r, perm = tensor<int32, [4]>([0, 2, 1, 3]))[name = string("{to}")];
        "#
        )
    };
    let mut statements = heads("q", "qh") + &heads("k", "kh") + &heads("v", "vh");
    let scores = "tensor<fp16, [2, 3, 9, 9]>";
    statements += &if scaled_queries {
        format!(
            r#"tensor<fp16, [2, 3, 9, 16]> qs = mul(x = qh, y = fp16(0x1p-2))[name = string("qs")];
        {scores} s = matmul(x = qs, y = kh, transpose_x = bool(false), transpose_y = bool(true))[name = string("s")];
        "#
        )
    } else {
        format!(
            r#"{scores} s0 = matmul(x = qh, y = kh, transpose_x = bool(false), transpose_y = bool(true))[name = string("s0")];
        {scores} s = mul(x = s0, y = fp16(0x1p-2))[name = string("s")];
        "#
        )
    };
    statements += &format!(
        r#"{scores} p = softmax(x = {}, axis = int32(-1))[name = string("p")];
        tensor<fp16, [2, 3, 9, 16]> o = matmul(x = p, y = vh)[name = string("o")];
        tensor<fp16, [2, 9, 3, 16]> ot = transpose(x = o, perm = tensor<int32, [4]>([0, 2, 1, 3]))[name = string("ot")];
        tensor<fp16, [2, 9, 48]> y = reshape(x = ot, shape = tensor<int32, [3]>([2, 9, 48]))[name = string("y")];"#,
        if masked { "sm" } else { "s" },
    );
    if masked {
        let add = format!("{scores} sm = add(x = s, y = m)[name = string(\"sm\")];\n        {scores} p =");
        statements = statements.replace(&format!("{scores} p ="), &add);
    }
    let mut ports = ["q", "k", "v"].map(|name| format!("tensor<fp16, [2, 9, 48]> {name}")).join(", ");
    if masked {
        ports += ", tensor<fp16, [2, 1, 1, 9]> m";
    }
    Idiom {
        name: if masked { "masked attention" } else { "attention" },
        program: program(&ports, &statements, "y"),
        kernel: "attention",
        steps: 1,
        tolerance: 4e-3,
        range: (-2.0, 2.0),
    }
}

fn linear_with_residual() -> Idiom {
    let statements = format!(
        r#"tensor<fp16, [7, 33]> a = linear(x = x, weight = {}, bias = {})[name = string("a")];
        tensor<fp16, [7, 33]> b = add(x = r, y = a)[name = string("b")];
        tensor<fp16, [7, 33]> y = relu(x = b)[name = string("y")];"#,
        literal(&[33, 40], 1, (-0.5, 0.5)),
        literal(&[33], 2, (-1.0, 1.0)),
    );
    Idiom {
        name: "linear, residual and relu",
        program: program("tensor<fp16, [7, 40]> x, tensor<fp16, [7, 33]> r", &statements, "y"),
        kernel: "+ bias + residual + relu",
        steps: 1,
        tolerance: 2e-3,
        range: (-2.0, 2.0),
    }
}

fn matmul_with_gelu() -> Idiom {
    let statements = format!(
        r#"tensor<fp16, [1, 7, 33]> a = matmul(x = x, y = {}, transpose_x = bool(false), transpose_y = bool(false))[name = string("a")];
        tensor<fp16, [1, 7, 33]> b = add(x = a, y = {})[name = string("b")];
        tensor<fp16, [1, 7, 33]> y = gelu(x = b, mode = string("EXACT"))[name = string("y")];"#,
        literal(&[40, 33], 1, (-0.5, 0.5)),
        literal(&[1, 1, 33], 2, (-1.0, 1.0)),
    );
    Idiom {
        name: "matmul, bias and gelu",
        program: program("tensor<fp16, [1, 7, 40]> x", &statements, "y"),
        kernel: "+ bias",
        steps: 2,
        tolerance: 2e-3,
        range: (-2.0, 2.0),
    }
}

fn residual_block() -> Idiom {
    let conv = |x: &str, y: &str, seed: u64| {
        format!(
            r#"tensor<fp16, [2, 8, 7, 9]> {y} = conv(x = {x}, weight = {}, bias = {}, strides = tensor<int32, [2]>([1, 1]), pad_type = string("custom"), pad = tensor<int32, [4]>([1, 1, 1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1))[name = string("{y}")];
        "#,
            literal(&[8, 8, 3, 3], seed, (-0.3, 0.3)),
            literal(&[8], seed + 1, (-1.0, 1.0)),
        )
    };
    let mut statements = conv("x", "c1", 1);
    statements += "tensor<fp16, [2, 8, 7, 9]> r1 = relu(x = c1)[name = string(\"r1\")];\n        ";
    statements += &conv("r1", "c2", 5);
    statements += r#"tensor<fp16, [2, 8, 7, 9]> s = add(x = c2, y = x)[name = string("s")];
        tensor<fp16, [2, 8, 7, 9]> y = relu(x = s)[name = string("y")];
        tensor<fp16, [2, 8, 1, 1]> m = reduce_mean(x = y, axes = tensor<int32, [2]>([2, 3]), keep_dims = bool(true))[name = string("m")];"#;
    Idiom {
        name: "residual block",
        program: program("tensor<fp16, [2, 8, 7, 9]> x", &statements, "y, m"),
        kernel: "+ bias + residual + relu",
        steps: 5,
        tolerance: 3e-3,
        range: (-2.0, 2.0),
    }
}

fn element_wise_chain() -> Idiom {
    let statements = r#"tensor<fp16, [3, 4, 50]> a = mul(x = x, y = c)[name = string("a")];
        tensor<fp16, [3, 4, 50]> b = add(x = a, y = r)[name = string("b")];
        tensor<fp16, [3, 4, 50]> s = sigmoid(x = b)[name = string("s")];
        tensor<fp16, [3, 4, 50]> t = sub(x = fp16(3.0), y = s)[name = string("t")];
        tensor<fp16, [3, 4, 50]> u = leaky_relu(x = b, alpha = fp16(0.25))[name = string("u")];
        tensor<fp16, [3, 4, 50]> y = real_div(x = u, y = t)[name = string("y")];"#;
    Idiom {
        name: "element-wise chain with broadcasts",
        program: program("tensor<fp16, [3, 4, 50]> x, tensor<fp16, [4, 1]> c, tensor<fp16, [50]> r", statements, "y"),
        kernel: "element-wise chain of 6",
        steps: 1,
        tolerance: 2e-3,
        range: (-2.0, 2.0),
    }
}

/// The form in which `round` is written for the engine: select(abs(x) < 1024, round(x), x).
fn workaround_for_round() -> Idiom {
    let statements = r#"tensor<fp16, [64]> a = abs(x = x)[name = string("a")];
        tensor<bool, [64]> c = less(x = a, y = fp16(0x1p+10))[name = string("c")];
        tensor<fp16, [64]> r = round(x = x)[name = string("r")];
        tensor<fp16, [64]> y = select(cond = c, a = r, b = x)[name = string("y")];"#;
    Idiom {
        name: "workaround for round",
        program: program("tensor<fp16, [64]> x", statements, "y"),
        kernel: "element-wise chain of 4",
        steps: 1,
        tolerance: 0.0,
        range: (-1500.0, 1500.0),
    }
}

/// The form in which `softplus` is written for the engine: softplus(min(x, 10)) + relu(x - 10).
fn workaround_for_softplus() -> Idiom {
    let statements = r#"tensor<fp16, [64]> m = minimum(x = x, y = fp16(10.0))[name = string("m")];
        tensor<fp16, [64]> s = softplus(x = m)[name = string("s")];
        tensor<fp16, [64]> d = sub(x = x, y = fp16(10.0))[name = string("d")];
        tensor<fp16, [64]> r = relu(x = d)[name = string("r")];
        tensor<fp16, [64]> y = add(x = s, y = r)[name = string("y")];"#;
    Idiom {
        name: "workaround for softplus",
        program: program("tensor<fp16, [64]> x", statements, "y"),
        kernel: "element-wise chain of 5",
        steps: 1,
        tolerance: 2e-3,
        range: (-20.0, 40.0),
    }
}

fn idioms() -> Vec<Idiom> {
    let mut all = vec![
        layer_norm_written_out(),
        rms_norm_written_out(),
        linear_with_residual(),
        matmul_with_gelu(),
        residual_block(),
        element_wise_chain(),
        workaround_for_round(),
        workaround_for_softplus(),
    ];
    for masked in [false, true] {
        for scaled_queries in [false, true] {
            all.push(attention(masked, scaled_queries));
        }
    }
    all
}

#[test]
fn cpu_recognises_each_idiom_and_stays_near_the_unfused_form_and_the_reference() {
    let (fused, unfused, reference) = (Cpu::default(), Cpu::unfused(), open("reference").unwrap());
    for idiom in idioms() {
        let report = fused.load(&idiom.program).unwrap().report();
        let steps: Vec<&str> = report.steps.iter().map(|step| step.kernel.as_str()).collect();
        assert!(steps.iter().any(|step| step.contains(idiom.kernel)), "{}: {steps:?}", idiom.name);
        assert!(steps.len() <= idiom.steps, "{}: {steps:?}", idiom.name);
        let given = inputs(&idiom.program, 11, idiom.range);
        let wanted = run(&*reference, &idiom.program, &given);
        for (index, wanted) in wanted.iter().enumerate() {
            for device in [&fused as &dyn Device, &unfused] {
                let error = distance(&run(device, &idiom.program, &given)[index], wanted);
                assert!(error <= idiom.tolerance, "{}, result {index}: {error:.2e}", idiom.name);
            }
        }
    }
}

#[test]
fn the_emulator_gives_the_same_bits_fused_and_unfused() {
    for chip in ["m1", "m5"] {
        let chip = aneforge_core::Chip::find(chip).unwrap();
        let fused = Emulator::new(chip, EmulatorOptions::default());
        let unfused = Emulator::new(chip, EmulatorOptions::default()).unfused();
        for idiom in idioms() {
            let given = inputs(&idiom.program, 12, idiom.range);
            let together = run(&fused, &idiom.program, &given);
            assert_eq!(together, run(&unfused, &idiom.program, &given), "{} on {}", idiom.name, chip.name);
            let wanted = run(&*open("reference").unwrap(), &idiom.program, &given);
            for (got, wanted) in together.iter().zip(&wanted) {
                let error = distance(got, wanted);
                assert!(error < 3e-2, "{} on {}: {error:.2e}", idiom.name, chip.name);
            }
        }
    }
}

#[test]
fn nan_and_infinity_go_through_every_idiom_without_a_panic() {
    for idiom in idioms() {
        let mut given = inputs(&idiom.program, 13, idiom.range);
        for array in &mut given {
            for (pair, bits) in
                array.bytes_mut().chunks_exact_mut(2).step_by(5).zip([0x7e00u16, 0x7c00, 0xfc00, 0xfe01].iter().cycle())
            {
                pair.copy_from_slice(&bits.to_le_bytes());
            }
        }
        for device in ["reference", "cpu", "emulator:m1", "emulator:m5"] {
            let results = run(&*open(device).unwrap(), &idiom.program, &given);
            if device.starts_with("emulator") {
                let has_nan = |array: &HostArray| array.to_f32().iter().any(|value| value.is_nan());
                assert!(!results.iter().any(has_nan), "{} on {device} stored NaN", idiom.name);
            }
        }
    }
}

#[test]
fn a_batch_gives_the_same_bits_as_its_images_alone_on_the_emulator() {
    let batch_of = |count: usize| {
        let statements = format!(
            r#"tensor<fp16, [{count}, 6, 8, 8]> c = conv(x = x, weight = {}, strides = tensor<int32, [2]>([1, 1]), pad_type = string("custom"), pad = tensor<int32, [4]>([1, 1, 1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1))[name = string("c")];
        tensor<fp16, [{count}, 6, 8, 8]> r = relu(x = c)[name = string("r")];
        tensor<fp16, [{count}, 6, 1, 1]> m = reduce_mean(x = r, axes = tensor<int32, [2]>([2, 3]), keep_dims = bool(true))[name = string("m")];
        tensor<fp16, [{count}, 6]> f = reshape(x = m, shape = tensor<int32, [2]>([{count}, 6]))[name = string("f")];
        tensor<fp16, [{count}, 5]> l = linear(x = f, weight = {})[name = string("l")];
        tensor<fp16, [{count}, 5]> y = softmax(x = l, axis = int32(-1))[name = string("y")];"#,
            literal(&[6, 6, 3, 3], 1, (-0.4, 0.4)),
            literal(&[5, 6], 2, (-0.5, 0.5)),
        );
        program(&format!("tensor<fp16, [{count}, 6, 8, 8]> x"), &statements, "y")
    };
    for device in ["emulator:m1", "emulator:m5"] {
        let device = open(device).unwrap();
        let (whole, alone) = (batch_of(4), batch_of(1));
        let images = inputs(&whole, 21, (-3.0, 3.0));
        let together = run(&*device, &whole, &images);
        for (image, row) in images[0].bytes().chunks_exact(6 * 64 * 2).zip(together[0].bytes().chunks_exact(10)) {
            let image = HostArray::from_bytes(aneforge_core::DType::Fp16, [1, 6, 8, 8], image.to_vec()).unwrap();
            assert_eq!(run(&*device, &alone, &[image])[0].bytes(), row);
        }
    }
}

#[test]
fn a_table_after_a_choice_by_an_outside_condition_is_the_same_table() {
    let unary = ["silu", "erf", "tanh", "exp", "sigmoid", "sqrt", "sin", "atan", "softsign", "relu", "abs"];
    for op in unary {
        let statements = format!(
            r#"tensor<fp16, [3, 4]> s = select(cond = c, a = a, b = b)[name = string("s")];
        tensor<fp16, [3, 4]> y = {op}(x = s)[name = string("y")];"#
        );
        let program = program("tensor<bool, [3, 4]> c, tensor<fp16, [3, 4]> a, tensor<fp16, [3, 4]> b", &statements, "y");
        let given = inputs(&program, 31, (0.0, 2.0));
        for chip in aneforge_core::chips() {
            let fused = Emulator::new(chip, EmulatorOptions::default());
            let together = run(&fused, &program, &given);
            assert_eq!(together, run(&fused.unfused(), &program, &given), "{op} on {}", chip.name);
        }
    }
}

#[test]
fn uses_of_one_operator_with_other_attributes_have_tables_of_their_own() {
    let statements = r#"tensor<fp16, [2, 8]> a = elu(x = x, alpha = fp16(0.5))[name = string("a")];
        tensor<fp16, [2, 8]> b = elu(x = x, alpha = fp16(2.0))[name = string("b")];
        tensor<fp16, [2, 8]> c = elu(x = x, alpha = fp16(0.5))[name = string("c")];"#;
    let program = program("tensor<fp16, [2, 8]> x", statements, "a, b, c");
    let given = inputs(&program, 41, (-2.0, -0.5));
    for device in ["cpu", "emulator:m1", "emulator:m5", "cpu"] {
        let results = run(&*open(device).unwrap(), &program, &given);
        let wanted = run(&*open("reference").unwrap(), &program, &given);
        assert_eq!(results[0], results[2]);
        for (got, wanted) in results.iter().zip(&wanted) {
            assert!(distance(got, wanted) < 5e-3, "{device}");
        }
    }
}
