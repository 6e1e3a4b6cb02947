//! Convolutions whose weights are computed, and transposed ones: the same answers as with constant weights, and as their meaning.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::open;
use aneforge_testkit::Random;

/// A convolution: extents and attributes.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    channels: [usize; 2],
    input: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pad: [usize; 4],
    groups: usize,
}

const PLAIN: Case =
    Case { batch: 1, channels: [3, 5], input: [7, 6], kernel: [3, 3], strides: [1, 1], dilations: [1, 1], pad: [0; 4], groups: 1 };

const CASES: &[Case] = &[
    PLAIN,
    Case { batch: 3, channels: [17, 19], pad: [1; 4], ..PLAIN },
    Case { channels: [1, 16], kernel: [1, 1], ..PLAIN },
    Case { batch: 2, kernel: [2, 3], pad: [1, 0, 2, 1], ..PLAIN },
    Case { batch: 2, dilations: [2, 1], pad: [2, 2, 1, 1], ..PLAIN },
    Case { batch: 2, strides: [2, 3], pad: [1; 4], ..PLAIN },
    Case { batch: 2, channels: [8, 12], groups: 4, pad: [1; 4], ..PLAIN },
    Case { channels: [32, 64], input: [9, 9], kernel: [5, 5], pad: [2; 4], ..PLAIN },
];

impl Case {
    /// The weight's shape: outputs first for a convolution, inputs first for a transposed one.
    fn weight(&self, transposed: bool) -> [usize; 4] {
        let [inputs, outputs] = self.channels;
        let [height, width] = self.kernel;
        if transposed { [inputs, outputs / self.groups, height, width] } else { [outputs, inputs / self.groups, height, width] }
    }

    fn x(&self) -> [usize; 4] {
        [self.batch, self.channels[0], self.input[0], self.input[1]]
    }

    fn output(&self, transposed: bool) -> [usize; 4] {
        let extent = |axis: usize| {
            let reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1;
            let pads = self.pad[2 * axis] + self.pad[2 * axis + 1];
            if transposed {
                (self.input[axis] - 1) * self.strides[axis] + reach - pads
            } else {
                (self.input[axis] + pads - reach) / self.strides[axis] + 1
            }
        };
        [self.batch, self.channels[1], extent(0), extent(1)]
    }

    fn statement(&self, op: &str, weight: &str) -> String {
        let list = |values: &[usize]| format!("tensor<int32, [{}]>({values:?})", values.len());
        format!(
            "tensor<fp16, {:?}> y = {op}(x = x, weight = {weight}, strides = {}, pad_type = string(\"custom\"), pad = {}, \
             dilations = {}, groups = int32({}));",
            self.output(op == "conv_transpose"),
            list(&self.strides),
            list(&self.pad),
            list(&self.dilations),
            self.groups
        )
    }
}

fn array(random: &mut Random, shape: &[usize], size: f64) -> HostArray {
    let count = shape.iter().product();
    let values: Vec<f32> = random.values(count, -size, size).into_iter().map(|value| value as f32).collect();
    HostArray::fp16_from_f32(shape, &values).unwrap()
}

fn literal(array: &HostArray) -> String {
    let values: Vec<String> = array.to_f32().iter().map(|value| format!("{value:?}")).collect();
    format!("tensor<fp16, {:?}>([{}])", array.shape(), values.join(", "))
}

/// The answer with the weight as an input and as a constant.
fn answers(device: &str, case: &Case, op: &str, x: &HostArray, weight: &HostArray) -> [Vec<f32>; 2] {
    let inputs = format!("tensor<fp16, {:?}> x, tensor<fp16, {:?}> w", x.shape(), weight.shape());
    let computed = common::program(&inputs, &case.statement(op, "w"), "y");
    let constant = common::program(&format!("tensor<fp16, {:?}> x", x.shape()), &case.statement(op, &literal(weight)), "y");
    let device = open(device).unwrap();
    let given = [x.clone(), weight.clone()];
    [common::run(&*device, &computed, &given)[0].to_f32(), common::run(&*device, &constant, &given[..1])[0].to_f32()]
}

fn check(op: &str) {
    let mut random = Random::new(7);
    for case in CASES {
        let x = array(&mut random, &case.x(), 1.0);
        let weight = array(&mut random, &case.weight(op == "conv_transpose"), 0.5);
        let [wanted, _] = answers("reference", case, op, &x, &weight);
        let norm = wanted.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        for device in ["cpu", "emulator:m1", "emulator:m5"] {
            let [computed, constant] = answers(device, case, op, &x, &weight);
            assert_eq!(computed, constant, "{op} on {device}: {case:?}");
            let lost = computed.iter().zip(&wanted).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
            assert!(lost <= 2e-3 * norm, "{op} on {device}: {case:?} differs by {}", lost / norm);
        }
    }
}

#[test]
fn computed_weights_answer_as_constant_ones() {
    check("conv");
}

#[test]
fn transposed_convolutions_answer_as_their_meaning() {
    check("conv_transpose");
}

#[test]
fn a_transposed_convolution_is_the_convolution_by_the_turned_weight() {
    let mut random = Random::new(9);
    let case = Case { batch: 2, channels: [6, 10], pad: [1, 0, 2, 1], ..PLAIN };
    let (x, weight) = (array(&mut random, &case.x(), 1.0), array(&mut random, &case.weight(true), 0.5));
    let (values, [inputs, outputs], [height, width]) = (weight.to_f32(), case.channels, case.kernel);
    let mut turned = vec![0f32; values.len()];
    for (place, value) in turned.iter_mut().enumerate() {
        let (column, row) = (place % width, place / width % height);
        let (input, output) = (place / width / height % inputs, place / width / height / inputs);
        *value = values[((input * outputs + output) * height + height - 1 - row) * width + width - 1 - column];
    }
    let turned = HostArray::fp16_from_f32(case.weight(false), &turned).unwrap();
    let plain = Case { pad: case.pad.map(|pad| 2 - pad), ..case };
    // M1 has one form of convolution, so both are the same sums in the same arithmetic.
    for device in ["cpu", "emulator:m1"] {
        let [transposed, _] = answers(device, &case, "conv_transpose", &x, &weight);
        let [convolved, _] = answers(device, &plain, "conv", &x, &turned);
        assert_eq!(transposed, convolved, "{device}");
    }
}
