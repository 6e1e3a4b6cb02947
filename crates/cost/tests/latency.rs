//! The model against published figures, and against what it claims of itself.
#![allow(clippy::unwrap_used)]

use aneforge_cost::parameters::{PARTS, SHARED};
use aneforge_cost::{Coefficients, Format, HostClass, Kind, Operation, Rates, Traits, Values, Work, fit};

fn measured(name: &str) -> Rates {
    let committed = Coefficients::committed().unwrap();
    let at = committed.machines.iter().position(|machine| machine.name == name).unwrap();
    let machine = &committed.machines[at];
    let chip = aneforge_cost::Chip::find(&machine.chip).unwrap();
    fit::rates(&committed.latency().unwrap(), committed.layout(), at, Traits::of(chip, machine.host))
}

fn m5_pro() -> Rates {
    measured("M5 Pro Mac17,8")
}

#[test]
fn tables_and_names_are_in_one_order() {
    for (at, shared) in SHARED.iter().enumerate() {
        assert_eq!(shared.which as usize, at, "{}", shared.name);
    }
    for (at, (part, name, ..)) in PARTS.iter().enumerate() {
        assert_eq!(*part as usize, at, "{name}");
    }
}

/// Figures of the ANE guide (arXiv 2606.22283, chapters 9 and 12) that were not in the fit.
#[test]
fn roofs_are_near_those_that_the_guide_measured() {
    let near =
        |ours: f64, guide: f64| assert!((ours / guide).ln().abs() < 1.5_f64.ln(), "{ours} is not within half as much of {guide}");
    let (product, _, stream) = m5_pro().roofs();
    near(product, 19.6e12);
    near(stream, 145e9);
    near(measured("M1 MacBook Air").roofs().0, 12e12);
    // No row of the M1s streams a weight and little else, so their bandwidth stands on that of the M1 Max.
    near(measured("M1 Max MacBookPro18,2").roofs().2, 51e9);
}

#[test]
fn a_call_that_does_nothing_takes_the_dispatch_and_a_batch_of_one_row_streams_its_weight() {
    let rates = m5_pro();
    let floor = rates.latency(&Work::new(0.0, 0.0, Vec::new())).total_ms();
    let row = Work::new(8192.0, 8192.0, vec![Operation::linear(1.0, 8192.0, 8192.0, Format::Fp16)]);
    let time = rates.latency(&row).total_ms();
    let streamed = 2.0 * 8192.0 * 8192.0 / rates.roofs().2 * 1e3;
    assert!((time - floor - streamed).abs() < 0.02 * time, "{time} ms, of which {floor} floor and {streamed} stream");
}

#[test]
fn more_of_anything_never_takes_less() {
    let rates = m5_pro();
    let time = |rows: f64, inner: f64| {
        rates.latency(&Work::new(rows * inner, rows * inner, vec![Operation::linear(rows, inner, inner, Format::Fp16)])).total_ms()
    };
    for size in [64.0, 512.0, 1000.0, 4096.0, 5000.0, 8192.0] {
        assert!(time(2.0 * size, size) > time(size, size) && time(size, 1.01 * size) > time(size, size), "{size}");
    }
}

#[test]
fn products_of_two_large_operands_are_slower_and_streams_of_large_weights_are_not() {
    let rates = m5_pro();
    let rate = |rows: f64, size: f64| {
        let operation = Operation::linear(rows, size, size, Format::Fp16);
        operation.flops / rates.operation_ms(&operation, true)
    };
    // 2048^3 runs at 18.7 TFLOP/s beside its copies, 6144^3 at 5.1: benchmark results of PyPI aneforge 0.4.0.
    assert!(rate(2048.0, 2048.0) > 2.0 * rate(6144.0, 6144.0));
    assert!((rate(1.0, 6144.0) / rate(1.0, 4096.0) - 1.0).abs() < 0.05);
}

#[test]
fn one_by_one_kernels_run_as_products_do() {
    let rates = m5_pro();
    let convolution = Operation::convolution(1.0, 1024.0, 1024.0, 1024.0, 1.0);
    let product = Operation::linear(1024.0, 1024.0, 1024.0, Format::Fp16);
    assert_eq!(rates.operation_ms(&convolution, true), rates.operation_ms(&product, true));
}

#[test]
fn software_conversion_depends_on_what_the_numbers_are() {
    let rates = measured("M2 Pro Mac14,12");
    let work = |values| Work::new(1e6, 1e6, vec![Operation::vector(Kind::Elementwise, 1e6)]).with_values(values);
    let times = [Values::Ordinary, Values::Subnormal, Values::ManyZeros].map(|values| rates.latency(&work(values)).total_ms());
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    assert_eq!(m5_pro().software_ms(&work(Values::ManyZeros)), 0.0);
}

#[test]
fn a_full_queue_hides_copies_and_nothing_else() {
    let rates = m5_pro();
    let large = Work::new(1e7, 1e7, vec![Operation::vector(Kind::Elementwise, 1e7)]);
    let latency = rates.latency(&large);
    assert_eq!(latency.queued(), latency.host_ms);
    let small = rates.latency(&Work::new(1.0, 1.0, vec![Operation::linear(1.0, 4096.0, 4096.0, Format::Fp16)]));
    assert_eq!(small.queued(), small.dispatch_ms + small.engine_ms);
}

#[test]
fn host_classes_differ_in_results_alone() {
    let committed = Coefficients::committed().unwrap();
    let theta = committed.latency().unwrap();
    let rates = |host| {
        let traits = Traits { generation: 2.0, memory: 200.0, host };
        Rates::new(&theta, committed.layout(), traits, &[0.0; PARTS.len()])
    };
    let work = Work::new(1e6, 1e3, vec![Operation::vector(Kind::Reduction, 1e6)]);
    let [native, software] = [HostClass::Native, HostClass::Software].map(|host| rates(host).latency(&work).total_ms());
    assert!(software > native && software < 1.01 * native);
}
