//! Forms that gradients take: conditions read twice, repeats, borders, sums over axes apart. Each as its meaning, on every device.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::open;

/// Runs on all devices; `exact` forms move values alone and give the very same ones.
fn check(inputs: &str, statements: &str, exact: bool) {
    let program = common::program(inputs, statements, "y");
    let given = common::inputs(&program, 5, (-2.0, 2.0));
    let wanted = common::run(&*open("reference").unwrap(), &program, &given);
    for device in ["cpu", "emulator:m1", "emulator:m5"] {
        let device = open(device).unwrap();
        let report = device.load(&program).unwrap().report();
        let slow: Vec<_> = report.steps.iter().filter(|step| step.kernel == "meaning").map(|step| &step.ops).collect();
        assert!(slow.is_empty(), "{} evaluates {slow:?} in f64: {statements}", device.name());
        let got = common::run(&*device, &program, &given);
        let distance = common::distance(&got[0], &wanted[0]);
        assert!(if exact { distance == 0.0 } else { distance < 1e-3 }, "{}: {distance} in {statements}", device.name());
    }
}

#[test]
fn a_condition_serves_several_selects() {
    for (windows, each) in
        [("2, 3, 2, 4, 2", "2, 3, 1, 4, 1"), ("1, 7, 1, 5, 3", "1, 7, 1, 5, 1"), ("2, 1, 2, 33, 2", "2, 1, 1, 33, 1")]
    {
        let sum: Vec<&str> = each.split(", ").collect();
        let statements = format!(
            "tensor<bool, [{windows}]> hit = greater_equal(x = x, y = e);
             tensor<fp16, [{windows}]> ones = select(cond = hit, a = x, b = z);
             tensor<fp16, [{}]> ties = reduce_sum(x = ones, axes = tensor<int32, [2]>([2, 4]), keep_dims = bool(true));
             tensor<fp16, [{}]> share = add(x = ties, y = e);
             tensor<fp16, [{windows}]> spread = add(x = share, y = z);
             tensor<fp16, [{windows}]> y = select(cond = hit, a = spread, b = x);",
            sum.join(", "),
            sum.join(", ")
        );
        let inputs = format!("tensor<fp16, [{windows}]> x, tensor<fp16, [{windows}]> z, tensor<fp16, [{each}]> e");
        check(&inputs, &statements, false);
    }
}

#[test]
fn a_condition_that_is_an_output_or_an_input_is_read_and_written_as_bytes() {
    let statements = "tensor<bool, [3, 41]> c = less(x = x, y = z); tensor<bool, [3, 41]> y = logical_not(x = c);";
    let program = common::program("tensor<fp16, [3, 41]> x, tensor<fp16, [3, 41]> z", statements, "c, y");
    let given = common::inputs(&program, 2, (-1.0, 1.0));
    let wanted: Vec<bool> = given[0].to_f32().iter().zip(given[1].to_f32()).map(|(x, z)| *x < z).collect();
    for device in ["cpu", "emulator:m1"] {
        let got = common::run(&*open(device).unwrap(), &program, &given);
        assert_eq!(got[0].bytes(), wanted.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>(), "{device}");
    }
    let statements = "tensor<fp16, [3, 41]> y = select(cond = c, a = x, b = fp16(0x1p+1));";
    let program = common::program("tensor<bool, [3, 1]> c, tensor<fp16, [3, 41]> x", statements, "y");
    let flags = HostArray::from_bytes(aneforge_core::DType::Bool, [3, 1], vec![1, 0, 1]).unwrap();
    let wanted: Vec<f32> = given[0].to_f32().iter().enumerate().map(|(at, &x)| if at / 41 == 1 { 2.0 } else { x }).collect();
    for device in ["reference", "cpu", "emulator:m1"] {
        let got = common::run(&*open(device).unwrap(), &program, &[flags.clone(), given[0].clone()]);
        assert_eq!(got[0].to_f32(), wanted, "{device}");
    }
}

#[test]
fn repeats() {
    for (shape, reps, result) in [
        ("2, 3", "1, 4", "2, 12"),
        ("2, 3", "3, 1", "6, 3"),
        ("1, 1, 5", "2, 3, 2", "2, 3, 10"),
        ("4, 1, 1", "1, 7, 9", "4, 7, 9"),
        ("1", "6", "6"),
    ] {
        let rank = reps.split(", ").count();
        let statement = format!("tensor<fp16, [{result}]> y = tile(x = x, reps = tensor<int32, [{rank}]>([{reps}]));");
        check(&format!("tensor<fp16, [{shape}]> x"), &statement, true);
    }
}

#[test]
fn borders() {
    for (shape, pad, result, value) in [
        ("2, 3, 4", "1, 2", "2, 3, 7", "0x0p+0"),
        ("2, 3, 4", "0, 1, 2, 0", "2, 4, 6", "-0x1p+4"),
        ("2, 3, 4", "1, 1, 2, 0, 0, 3", "4, 5, 7", "0x1p-1"),
        ("5", "3, 0", "8", "0x1p+0"),
    ] {
        let count = pad.split(", ").count();
        let statement = format!(
            "tensor<fp16, [{result}]> y = pad(x = x, pad = tensor<int32, [{count}]>([{pad}]), mode = string(\"constant\"), \
             constant_val = fp16({value}));"
        );
        check(&format!("tensor<fp16, [{shape}]> x"), &statement, true);
    }
}

#[test]
fn sums_over_axes_apart() {
    for op in ["reduce_sum", "reduce_mean"] {
        for (shape, axes, result) in [
            ("4, 5, 6, 7", "0, 2, 3", "5"),
            ("4, 5, 6, 7", "0, 2", "5, 7"),
            ("4, 5, 6, 7", "1, 3", "4, 6"),
            ("2, 1, 6, 7", "-1, 0", "1, 6"),
            ("3, 5, 2, 4, 2", "2, 4", "3, 5, 4"),
            ("64, 16, 9", "0, 2", "16"),
        ] {
            let count = axes.split(", ").count();
            let statement = format!(
                "tensor<fp16, [{result}]> y = {op}(x = x, axes = tensor<int32, [{count}]>([{axes}]), keep_dims = bool(false));"
            );
            check(&format!("tensor<fp16, [{shape}]> x"), &statement, false);
        }
    }
}

#[test]
fn a_factor_with_axes_inside_the_channels_meets_its_own_elements() {
    // A convolution leaves channels innermost; the factor's rows are not those of channels.
    for factor in ["1, 6, 4, 1", "1, 6, 1, 5", "1, 1, 4, 5", "1, 6, 1, 1", "4, 5", "2, 1, 4, 1"] {
        let statements = format!(
            "tensor<fp16, [2, 6, 4, 5]> c = conv(x = x, weight = {}, strides = tensor<int32, [2]>([1, 1]), \
             pad_type = string(\"valid\"), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1));
             tensor<fp16, [2, 6, 4, 5]> r = relu(x = c);
             tensor<fp16, [2, 6, 4, 5]> y = mul(x = r, y = f);",
            common::literal(&[6, 3, 1, 1], 3, (-1.0, 1.0))
        );
        check(&format!("tensor<fp16, [2, 3, 4, 5]> x, tensor<fp16, [{factor}]> f"), &statements, false);
    }
}
