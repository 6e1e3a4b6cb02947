//! Buffers that live across calls: every device keeps them, none loses them to a call that fails.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_mil::{Body, DType};
use aneforge_runtime::{DeviceError, Executable, open};
use std::sync::Arc;

const DEVICES: &[&str] = &["reference", "cpu", "emulator:m1", "emulator:m5"];

const ACCUMULATOR: (&str, &str) = (
    "tensor<fp16, [4]> x, state<tensor<fp16, [4]>> sum",
    "tensor<fp16, [4]> before = read_state(input = sum);
     tensor<fp16, [4]> after = add(x = before, y = x);
     write_state(input = sum, data = after);
     tensor<fp16, [4]> y = mul(x = after, y = fp16(0x1p1));",
);

/// Attention over a window of three steps that shifts: the newest key and value push the oldest out.
const CACHE: (&str, &str) = (
    "tensor<fp16, [1, 2]> q, tensor<fp16, [1, 2]> k, tensor<fp16, [1, 2]> v, state<tensor<fp16, [3, 2]>> keys, state<tensor<fp16, [3, 2]>> values",
    "tensor<fp16, [3, 2]> k0 = read_state(input = keys);
     tensor<fp16, [2, 2]> k1 = slice_by_size(x = k0, begin = tensor<int32, [2]>([1, 0]), size = tensor<int32, [2]>([2, 2]));
     tensor<fp16, [3, 2]> k2 = concat(values = (k1, k), axis = int32(0), interleave = bool(false));
     write_state(input = keys, data = k2);
     tensor<fp16, [3, 2]> v0 = read_state(input = values);
     tensor<fp16, [2, 2]> v1 = slice_by_size(x = v0, begin = tensor<int32, [2]>([1, 0]), size = tensor<int32, [2]>([2, 2]));
     tensor<fp16, [3, 2]> v2 = concat(values = (v1, v), axis = int32(0), interleave = bool(false));
     write_state(input = values, data = v2);
     tensor<fp16, [1, 3]> scores = matmul(x = q, y = k2, transpose_x = bool(false), transpose_y = bool(true));
     tensor<fp16, [1, 3]> weights = softmax(x = scores, axis = int32(-1));
     tensor<fp16, [1, 2]> y = matmul(x = weights, y = v2, transpose_x = bool(false), transpose_y = bool(false));",
);

fn loaded(device: &str, (inputs, statements): (&str, &str)) -> Arc<dyn Executable> {
    open(device).unwrap().load(&common::program(inputs, statements, "y")).unwrap()
}

fn half(shape: &[usize], values: &[f32]) -> HostArray {
    HostArray::fp16_from_f32(shape, values).unwrap()
}

#[test]
fn a_sum_goes_on_from_call_to_call() {
    for device in DEVICES {
        let executable = loaded(device, ACCUMULATOR);
        let mut sum = [0.0f32; 4];
        for step in 0..3 {
            let x = [1.0, -0.5, 2.0, step as f32];
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            let y = executable.run(&[&half(&[4], &x)]).unwrap();
            assert_eq!(y[0].to_f32(), sum.map(|sum| 2.0 * sum), "{device}, step {step}");
            assert_eq!(executable.read_state("sum").unwrap().to_f32(), sum, "{device}, step {step}");
        }
        executable.reset();
        assert_eq!(executable.read_state("sum").unwrap().to_f32(), [0.0; 4], "{device}");
        executable.write_state("sum", &half(&[4], &[100.0; 4])).unwrap();
        assert_eq!(executable.run(&[&half(&[4], &[1.0; 4])]).unwrap()[0].to_f32(), [202.0; 4], "{device}");
    }
}

#[test]
fn a_cache_of_keys_and_values_gives_what_attention_over_all_of_them_gives() {
    let draw = |step: usize, salt: usize| [0, 1].map(|lane| (((step * 7 + salt * 3 + lane * 5) % 11) as f32 - 5.0) / 4.0);
    for device in DEVICES {
        let executable = loaded(device, CACHE);
        let mut keys = vec![[0.0f32; 2]; 3];
        let mut values = keys.clone();
        for step in 0..4 {
            let [q, k, v] = [1, 2, 3].map(|salt| draw(step, salt));
            keys.push(k);
            values.push(v);
            let (keys, values) = (&keys[keys.len() - 3..], &values[values.len() - 3..]);
            let scores: Vec<f32> = keys.iter().map(|key| (q[0] * key[0] + q[1] * key[1]).exp()).collect();
            let total: f32 = scores.iter().sum();
            let wanted =
                [0, 1].map(|lane| scores.iter().zip(values).map(|(score, value)| score * value[lane]).sum::<f32>() / total);
            let got = executable.run(&[&half(&[1, 2], &q), &half(&[1, 2], &k), &half(&[1, 2], &v)]).unwrap()[0].to_f32();
            assert!(
                got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 5e-3),
                "{device}, step {step}: {got:?} {wanted:?}"
            );
            let held: Vec<f32> = values.iter().flatten().copied().collect();
            assert_eq!(executable.read_state("values").unwrap().to_f32(), held, "{device}, step {step}");
        }
    }
}

/// Both take what the other held: a write must not be seen by a read of the same call.
#[test]
fn two_states_change_places() {
    let program = (
        "tensor<fp16, [2]> x, state<tensor<fp16, [2]>> a, state<tensor<fp16, [2]>> b",
        "tensor<fp16, [2]> old = read_state(input = a);
         tensor<fp16, [2]> other = read_state(input = b);
         write_state(input = a, data = other);
         write_state(input = b, data = old);
         tensor<fp16, [2]> y = sub(x = old, y = x);",
    );
    for device in DEVICES {
        let executable = loaded(device, program);
        executable.write_state("a", &half(&[2], &[1.0, 2.0])).unwrap();
        executable.write_state("b", &half(&[2], &[3.0, 4.0])).unwrap();
        assert_eq!(executable.run(&[&half(&[2], &[0.0, 0.0])]).unwrap()[0].to_f32(), [1.0, 2.0], "{device}");
        assert_eq!(executable.read_state("a").unwrap().to_f32(), [3.0, 4.0], "{device}");
        assert_eq!(executable.run(&[&half(&[2], &[1.0, 1.0])]).unwrap()[0].to_f32(), [2.0, 3.0], "{device}");
        assert_eq!(executable.read_state("b").unwrap().to_f32(), [3.0, 4.0], "{device}");
    }
}

#[test]
fn a_call_that_fails_leaves_the_states_alone() {
    for device in DEVICES.iter().chain(&["null"]) {
        let executable = loaded(device, ACCUMULATOR);
        executable.write_state("sum", &half(&[4], &[5.0; 4])).unwrap();
        executable.run(&[]).unwrap_err();
        executable.run(&[&half(&[3], &[0.0; 3])]).unwrap_err();
        executable.execute(&[&[0; 8]], &mut [&mut [0; 7]]).unwrap_err();
        assert_eq!(executable.read_state("sum").unwrap().to_f32(), [5.0; 4], "{device}");
    }
}

#[test]
fn names_types_and_lengths_are_checked() {
    for device in DEVICES.iter().chain(&["null"]) {
        let executable = loaded(device, ACCUMULATOR);
        let ports = executable.states().ports();
        assert_eq!((ports.len(), ports[0].name.as_str(), ports[0].ty.dtype), (1, "sum", DType::Fp16), "{device}");
        assert_eq!(executable.inputs().len(), 1, "{device}");
        let error = executable.read_state("total").unwrap_err();
        assert!(matches!(&error, DeviceError::StateName { name, known } if name == "total" && known == "sum"), "{error}");
        assert!(matches!(executable.write_state("sum", &half(&[2, 2], &[0.0; 4])), Err(DeviceError::PortShape { .. })), "{device}");
        let wide = HostArray::from_f32([4], &[0.0; 4]).unwrap();
        assert!(matches!(executable.write_state("sum", &wide), Err(DeviceError::PortDType { .. })), "{device}");
        assert!(matches!(executable.states().write("sum", &[0; 3]), Err(DeviceError::PortLength { .. })), "{device}");
    }
    let none = loaded("cpu", ("tensor<fp16, [1]> x", "tensor<fp16, [1]> y = relu(x = x);"));
    assert!(none.read_state("s").unwrap_err().to_string().contains("the program keeps none"));
}

#[test]
fn two_executables_of_one_program_have_states_of_their_own() {
    let program = common::program(ACCUMULATOR.0, ACCUMULATOR.1, "y");
    let device = open("cpu").unwrap();
    let (one, other) = (device.load(&program).unwrap(), device.load(&program).unwrap());
    one.run(&[&half(&[4], &[1.0; 4])]).unwrap();
    assert_eq!(other.read_state("sum").unwrap().to_f32(), [0.0; 4]);
    assert_eq!(one.read_state("sum").unwrap().to_f32(), [1.0; 4]);
}

/// Eight threads add one a hundred times each: no addition is lost.
#[test]
fn calls_from_several_threads_do_not_lose_writes() {
    for device in ["reference", "cpu"] {
        let executable = loaded(device, ACCUMULATOR);
        let one = half(&[4], &[1.0; 4]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| drop(executable.run(&[&one]).unwrap())));
            }
        });
        assert_eq!(executable.read_state("sum").unwrap().to_f32(), [800.0; 4], "{device}");
    }
}

/// What passes make of a program keeps its states: a kept value is no dead code.
#[test]
fn a_compiled_program_keeps_its_states() {
    let program = common::program(CACHE.0, CACHE.1, "y");
    let written = common::through_text(program.body().clone(), "cache");
    let states = |body: &Body| body.states.iter().map(|state| state.name.clone()).collect::<Vec<_>>();
    assert_eq!(states(written.body()), ["keys", "values"]);
    assert!(written.body().same_computation(program.body()));
}
