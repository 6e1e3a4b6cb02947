//! Host arrays: strided views, broadcasting, generated values, rounding.

use aneforge_mil::op::{Arguments, build, builtin, given, int, text};
use aneforge_mil::{Array, DType, TensorType};

fn ramp(shape: &[usize]) -> Array {
    let count = shape.iter().product::<usize>();
    Array::new(DType::Fp16, shape, (0..count).map(|value| value as f64).collect())
}

#[test]
fn a_strided_view_picks_by_offset_and_steps() {
    let x = ramp(&[3, 4]);
    assert_eq!(x.strided(1, &[3, 2], &[4, 2]).data, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    assert_eq!(x.strided(11, &[2, 2], &[-4, -1]).data, [11.0, 10.0, 7.0, 6.0]);
    assert_eq!(x.strided(5, &[], &[]).data, [5.0]);
    assert_eq!(x.strided(5, &[2, 2], &[0, 0]).data, [5.0; 4]);
}

#[test]
fn transposing_twice_by_inverse_orders_gives_the_array_back() {
    let x = ramp(&[2, 3, 4]);
    let moved = x.transposed(&[2, 0, 1]);
    assert_eq!(moved.shape(), [4, 2, 3]);
    assert_eq!(moved.data[..6], [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]);
    assert_eq!(moved.transposed(&[1, 2, 0]), x);
}

#[test]
fn broadcasting_repeats_along_ones_and_new_axes() {
    let column = Array::new(DType::Fp16, [2, 1], vec![1.0, 2.0]);
    assert_eq!(column.broadcast_to(&[2, 2, 3]).data, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(Array::new(DType::Fp16, [], vec![7.0]).broadcast_to(&[2]).data, [7.0, 7.0]);
}

/// The first output of SplitMix64 from seed 0 is 0xe220a8397b1dcdaf in every published implementation.
#[test]
fn generated_values_are_the_same_everywhere() {
    let first = Array::seeded(TensorType::new(DType::Fp64, [1]), 0, (0.0, 1.0)).data[0];
    assert_eq!(first, (0xe220_a839_7b1d_cdafu64 >> 11) as f64 / (1u64 << 53) as f64);
}

#[test]
fn generated_values_fit_their_type_and_range() {
    let draw = |dtype, range| Array::seeded(TensorType::new(dtype, [1000]), 9, range).data;
    assert!(draw(DType::Fp16, (-2.0, 2.0)).iter().all(|&x| half::f16::from_f64(x).to_f64() == x && x.abs() <= 2.0));
    assert!(draw(DType::Int32, (-5.0, 5.0)).iter().all(|x| x.fract() == 0.0 && x.abs() <= 5.0));
    assert!(draw(DType::UInt4, (-5.0, 50.0)).iter().all(|x| (0.0..=15.0).contains(x)));
    let bools = draw(DType::Bool, (0.0, 1.0));
    assert!(bools.contains(&0.0) && bools.contains(&1.0) && bools.iter().all(|x| *x == 0.0 || *x == 1.0));
}

#[test]
fn rounding_goes_to_the_nearest_even_half() {
    let rounded = Array::new(DType::Fp16, [4], vec![2049.0, 2051.0, 65520.0, 1e-8]).rounded();
    assert_eq!(rounded.data, [2048.0, 2052.0, f64::INFINITY, 0.0]);
    assert_eq!(Array::new(DType::Fp32, [1], vec![0.1]).rounded().data, [f64::from(0.1f32)]);
}

#[test]
fn casts_stop_at_the_ends_of_every_integer_type() {
    let cast = builtin().get("cast").unwrap();
    let ends = [("int8", -128.0, 127.0), ("uint8", 0.0, 255.0), ("int16", -32768.0, 32767.0), ("uint16", 0.0, 65535.0)];
    for (name, low, high) in ends {
        let ports = build(cast, &[("x", given(&[3], &[-1e6, 1e6, f64::NAN])), ("dtype", text(name))]);
        let arguments = Arguments::checked(cast, &ports).unwrap();
        assert_eq!((cast.meaning)(&arguments).unwrap()[0].data, [low, high, 0.0], "{name}");
    }
}

/// coremltools 9.0 documents -1 for everything, though its own inference takes it for an extent.
#[test]
fn k_of_minus_one_sorts_the_whole_axis_and_puts_nan_last() {
    let topk = builtin().get("topk").unwrap();
    let ports = build(topk, &[("x", given(&[4], &[2.0, f64::NAN, -1.0, 3.0])), ("k", int(&[-1.0]))]);
    let arguments = Arguments::checked(topk, &ports).unwrap();
    let results = (topk.meaning)(&arguments).unwrap();
    assert_eq!(results[0].data[..3], [3.0, 2.0, -1.0]);
    assert_eq!(results[1].data, [3.0, 0.0, 2.0, 1.0]);
}

#[test]
fn integers_have_one_zero() {
    let small = Array::new(DType::Fp16, [3], vec![-0.25, -0.0, 0.25]);
    let cast = builtin().get("cast").unwrap();
    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "bool"] {
        let ports = vec![vec![aneforge_mil::op::Argument::valued(small.clone())], vec![aneforge_mil::op::Argument::string(dtype)]];
        let whole = (cast.meaning)(&Arguments { op: cast, ports: &ports }).unwrap().remove(0);
        assert!(whole.data.iter().all(|value| value.is_sign_positive()), "{dtype}: {whole:?}");
    }
    let drawn = Array::seeded(TensorType::new(DType::Int8, [64]), 3, (-0.4, 0.0));
    assert!(drawn.data.iter().all(|value| value.to_bits() == 0));
}
