//! Questions about the multiply-accumulate path and element-wise operators that no published figure decides.

use super::question::{Part, Question};
use super::reductions::normals;
use aneforge_runtime::numerics::{Halves, ProbeInput};
use half::f16;

/// Extents of a matrix product: wide enough to stay on the multiply-accumulate array (a product with a single column may be lowered
/// to the reduction unit).
const INNER: usize = 32;
const COLUMNS: usize = 32;

/// Smallest subnormal and smallest normal fp16 number.
const TINY: f64 = 5.960_464_477_539_063e-8;
const SMALL: f64 = 6.103_515_625e-5;

pub(super) fn questions() -> Vec<Result<Question, String>> {
    let mut all = vec![
        product(
            "matmul: partial sums beyond 2^15",
            &[
                &[(200.0, 200.0), (-200.0, 200.0), (1.0, 5.0)],
                &[(1.0, 5.0), (200.0, 200.0), (-200.0, 200.0)],
                &[(181.0, 181.0), (181.0, 181.0), (-181.0, 181.0), (-181.0, 181.0), (1.0, 3.0)],
                &[(250.0, 250.0), (-250.0, 250.0)],
            ],
        ),
        product(
            "matmul: sums about 2^15",
            &[
                &[(128.0, 255.0), (1.0, 112.0)],
                &[(128.0, 255.0), (1.0, 120.0)],
                &[(128.0, 255.0), (1.0, 127.0)],
                &[(128.0, 256.0)],
                &[(-128.0, 256.0)],
            ],
        ),
        product(
            "matmul: ties of the stored sum",
            &[
                &[(2048.0, 1.0), (1.0, 1.0)],
                &[(2048.0, 1.0), (1.0, 3.0)],
                &[(-2048.0, 1.0), (-1.0, 1.0)],
                &[(1.0, 1.0), (0.000_488_281_25, 1.0)],
                &[(1.0, 1.0), (0.000_488_281_25, 1.0), (-0.000_015_258_789, 1.0)],
            ],
        ),
        product(
            "matmul: subnormal inputs",
            &[
                &[(TINY, 1.0)],
                &[(512.0 * TINY, 1.0), (512.0 * TINY, 1.0)],
                &[(512.0 * TINY, 1024.0)],
                &[(1.0, 1023.0 * TINY)],
                &[(1023.0 * TINY, 1024.0), (1.0, 1.0)],
                &[(1023.0 * TINY, 1023.0 * TINY)],
            ],
        ),
        product(
            "matmul: products at the edge of the 2^-16 grid",
            &[
                // Exponents that sum to -16, -17, -18; halves of the grid's unit.
                &[(0.003_906_25, 0.003_906_25)],
                &[(0.003_906_25, 0.001_953_125)],
                &[(0.001_953_125, 0.001_953_125)],
                &[(0.005_859_375, 0.003_906_25)],
                &[(0.007_808_685_3, 0.001_953_125)],
                &[(-0.005_859_375, 0.003_906_25)],
                &[(SMALL, 1.5)],
                &[(SMALL, 0.5), (1.0, 1.0)],
            ],
        ),
        product(
            "matmul: infinities and NaN",
            &[
                &[(f64::INFINITY, 1.0)],
                &[(f64::INFINITY, 0.0)],
                &[(f64::INFINITY, 1.0), (f64::NEG_INFINITY, 1.0)],
                &[(f64::NAN, 1.0)],
                &[(1.0, f64::NAN)],
                &[(1.0, f64::INFINITY)],
                &[(-0.0, 1.0)],
            ],
        ),
        ones("matmul: 4096 and 1024 ones, one column", 1, &counted(4096.0)),
        ones("matmul: 4096 and 1024 ones, 32 columns", 32, &counted(4096.0)),
    ];
    for magnitude in [1024.0, 4000.0, 4096.0, 30000.0] {
        let row: Vec<f64> = [magnitude, -magnitude, 1.0].repeat(16);
        all.push(ones(&format!("matmul: 16 times {magnitude}, -{magnitude}, 1, one column"), 1, &row));
        all.push(ones(&format!("matmul: 16 times {magnitude}, -{magnitude}, 1, 32 columns"), 32, &row));
    }
    all.extend(convolutions());
    all.extend(element_wise());
    all
}

fn counted(first: f64) -> Vec<f64> {
    let mut row = vec![1.0; 1025];
    row[0] = first;
    row
}

/// A matrix product of two inputs, each row a sum of its own: the pairs stand in the row and, one row a block of columns of its own,
/// in the columns.
fn product(name: &str, sums: &[&[(f64, f64)]]) -> Result<Question, String> {
    let rows = sums.len();
    let (mut x, mut y) = (vec![f16::ZERO; rows * INNER], vec![f16::ZERO; INNER * COLUMNS]);
    // Rows share the inner axis: row r uses lanes of its own as far as they go, and column r holds its factors.
    for (row, sum) in sums.iter().enumerate() {
        for (lane, (left, right)) in sum.iter().enumerate() {
            let lane = (row * 4 + lane) % INNER;
            x[row * INNER + lane] = f16::from_f64(*left);
            y[lane * COLUMNS + row] = f16::from_f64(*right);
        }
    }
    let parts = [("x", Part::Input(vec![rows, INNER])), ("y", Part::Input(vec![INNER, COLUMNS]))];
    let inputs = [x, y].map(|values| ProbeInput::Halves(values.into_iter().collect())).to_vec();
    Question::new(name, "matmul", &parts, inputs)
}

/// Four equal rows times a constant matrix of ones.
fn ones(name: &str, columns: usize, row: &[f64]) -> Result<Question, String> {
    let parts = [
        ("x", Part::Input(vec![4, row.len()])),
        ("y", Part::Weight(vec![row.len(), columns], vec![f16::ONE; row.len() * columns])),
    ];
    let x = row.repeat(4).into_iter().map(f16::from_f64).collect();
    Question::new(name, "matmul", &parts, vec![ProbeInput::Halves(x)])
}

/// A convolution of seeded numbers: kernel, stride, padding, dilation, groups, and the image's width.
type Shape = (&'static str, [usize; 2], i64, i64, i64, usize, usize);

/// Forms of convolutions on chips that run some of them as Winograd, and those that add nothing up.
fn convolutions() -> Vec<Result<Question, String>> {
    const SHAPES: [Shape; 8] = [
        ("3x3, even width", [3, 3], 1, 1, 1, 1, 8),
        ("3x3, odd width", [3, 3], 1, 1, 1, 1, 9),
        ("3x3, no padding", [3, 3], 1, 0, 1, 1, 8),
        ("3x3, stride 2", [3, 3], 2, 1, 1, 1, 8),
        ("3x3, dilation 2", [3, 3], 1, 2, 2, 1, 8),
        ("3x3, two groups", [3, 3], 1, 1, 1, 2, 8),
        ("5x5", [5, 5], 1, 2, 1, 1, 8),
        ("1x3", [1, 3], 1, 1, 1, 1, 8),
    ];
    let mut all = Vec::new();
    for (index, (name, kernel, stride, pad, dilation, groups, width)) in SHAPES.into_iter().enumerate() {
        let count = 8 * (4 / groups) * kernel[0] * kernel[1];
        let weight: Vec<f16> = normals(count, 100 + index as u64).values().collect();
        let x = normals(4 * 8 * width, 200 + index as u64);
        let vertical = if kernel[0] == 1 { 0 } else { pad };
        let parts = [
            ("x", Part::Input(vec![1, 4, 8, width])),
            ("weight", Part::Weight(vec![8, 4 / groups, kernel[0], kernel[1]], weight)),
            ("strides", Part::Integers(vec![stride, stride])),
            ("pad_type", Part::Text("custom")),
            ("pad", Part::Integers(vec![vertical, vertical, pad, pad])),
            ("dilations", Part::Integers(vec![dilation, dilation])),
            ("groups", Part::Number(groups as f64)),
        ];
        all.push(Question::new(format!("conv: {name}"), "conv", &parts, vec![ProbeInput::Halves(x)]));
    }
    // Factors whose Winograd transforms leave fp16, though the convolution does not.
    let large = |seed, count, scale: f64| -> Vec<f16> {
        normals(count, seed).values().map(|value| f16::from_f64(value.to_f64() * scale)).collect()
    };
    let x: Halves = large(300, 4 * 8 * 8, 16000.0).into_iter().collect();
    let weight = large(301, 8 * 4 * 9, 1e-3);
    let parts = [
        ("x", Part::Input(vec![1, 4, 8, 8])),
        ("weight", Part::Weight(vec![8, 4, 3, 3], weight)),
        ("strides", Part::Integers(vec![1, 1])),
        ("pad_type", Part::Text("custom")),
        ("pad", Part::Integers(vec![1, 1, 1, 1])),
        ("dilations", Part::Integers(vec![1, 1])),
        ("groups", Part::Number(1.0)),
    ];
    all.push(Question::new("conv: 3x3 of numbers near the end of fp16", "conv", &parts, vec![ProbeInput::Halves(x)]));
    for channels in [1, 2] {
        let line = [1.0, 30000.0, 32752.0, 32768.0, 60000.0, -60000.0, 65504.0, TINY];
        let x = line.repeat(channels).into_iter().map(f16::from_f64).collect();
        let mut weight = vec![f16::ZERO; channels];
        weight[0] = f16::ONE;
        let parts = [("x", Part::Input(vec![1, channels, 1, 8])), ("weight", Part::Weight(vec![1, channels, 1, 1], weight))];
        let name = format!("conv: 1x1 of {channels} channel(s), large values");
        all.push(Question::new(name, "conv", &parts, vec![ProbeInput::Halves(x)]));
    }
    all
}

/// Pairs of bit patterns through the operators of two numbers.
fn element_wise() -> Vec<Result<Question, String>> {
    const PAIRS: usize = 4096;
    let mut state = 0x9e37_79b9_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u16
    };
    let mut pairs: Vec<(u16, u16)> = (0..PAIRS / 2).map(|_| (word(), word())).collect();
    // Neighbouring exponents, where sums and quotients meet ties.
    pairs.extend((PAIRS / 2..PAIRS).map(|_| {
        let bits = word();
        (bits, bits & 0x7c00 | word() & 0x83ff)
    }));
    let (x, y): (Vec<u16>, Vec<u16>) = pairs.into_iter().unzip();
    let inputs = vec![ProbeInput::Halves(Halves(x)), ProbeInput::Halves(Halves(y))];
    let shape = vec![1, 64, 1, PAIRS / 64];
    let parts = [("x", Part::Input(shape.clone())), ("y", Part::Input(shape))];
    ["add", "sub", "mul", "real_div", "maximum", "minimum"]
        .into_iter()
        .map(|op| Question::new(format!("{op}: {PAIRS} pairs"), op, &parts, inputs.clone()))
        .collect()
}
