//! Questions about sums and what is made of them.
//!
//! Their order of additions is not known: the emulator's is a stand-in of the right size. These vectors are what it takes to find the
//! rule, and to hold one back for a check.

use super::question::{Part, Question};
use crate::random::Generator;
use aneforge_runtime::numerics::{Halves, ProbeInput};
use half::f16;

/// Axes around the lengths at which the compiler changes its way (192 and 384: ANE guide, arXiv 2606.22283, appendix A).
const LENGTHS: [usize; 7] = [8, 191, 192, 383, 384, 1024, 4096];
/// Short axes.
const SHORT: [usize; 12] = [2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 191, 192];
/// Rows of a short probe.
const ROWS: usize = 16;
/// A partial sum below, at and far beyond 4096, where single ones begin to be lost (ANE guide, chapter 3).
const MAGNITUDES: [f64; 3] = [1024.0, 4096.0, 30000.0];

pub(super) fn questions() -> Vec<Result<Question, String>> {
    let mut all = Vec::new();
    // The published error of this workload is known to every digit (arXiv 2606.17090, package 0.4.0).
    all.push(reduction("reduce_sum", "seeded, 256 rows of 4096", [256, 4096], vec![ProbeInput::Normals { seed: 11 }]));
    for length in LENGTHS {
        for magnitude in MAGNITUDES {
            let name = format!("one beside {magnitude} and -{magnitude} at each of {length} lanes");
            all.push(reduction("reduce_sum", &name, [length, length], vec![ProbeInput::Lanes { magnitude }]));
        }
    }
    for length in SHORT {
        let values = normals(ROWS * length, length as u64);
        for op in ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_l2_norm", "reduce_sum_square", "reduce_l1_norm"]
        {
            let name = format!("{ROWS} rows of {length}");
            all.push(reduction(op, &name, [ROWS, length], vec![ProbeInput::Halves(values.clone())]));
        }
        let parts = [("x", Part::Input(vec![ROWS, length])), ("axis", Part::Number(-1.0))];
        let name = format!("softmax: {ROWS} rows of {length}");
        all.push(Question::new(name, "softmax", &parts, vec![ProbeInput::Halves(values)]));
    }
    all.push(reduction("reduce_sum", "ties and ends of the range", [8, 8], vec![ProbeInput::Halves(edges())]));
    all
}

/// Sums whose rounding or overflow tells rules apart, one a row.
fn edges() -> Halves {
    let inf = f64::INFINITY;
    let rows: [[f64; 8]; 8] = [
        // 2049: a tie. 2050 on every chip that was asked.
        [257.0, 256.0, 256.0, 256.0, 256.0, 256.0, 256.0, 256.0],
        [-257.0, -256.0, -256.0, -256.0, -256.0, -256.0, -256.0, -256.0],
        // 2051: the other tie.
        [259.0, 256.0, 256.0, 256.0, 256.0, 256.0, 256.0, 256.0],
        // Beyond 2^15, which products do not survive, and beyond fp16.
        [8000.0, 8000.0, 8000.0, 8000.0, 8000.0, 8000.0, 8000.0, 0.0],
        [65504.0, 65504.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        // A partial sum beyond fp16 that comes back.
        [65504.0, 65504.0, -65504.0, -65504.0, 1.0, 0.0, 0.0, 0.0],
        [inf, -inf, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        // Subnormals.
        [5.9604645e-8, 5.9604645e-8, 5.9604645e-8, 0.0, 0.0, 0.0, 0.0, 0.0],
    ];
    rows.iter().flatten().map(|&value| f16::from_f64(value)).collect()
}

fn reduction(op: &'static str, name: &str, shape: [usize; 2], inputs: Vec<ProbeInput>) -> Result<Question, String> {
    let parts = [("x", Part::Input(shape.to_vec())), ("axes", Part::Integers(vec![-1])), ("keep_dims", Part::Flag(true))];
    Question::new(format!("{op}: {name}"), op, &parts, inputs)
}

/// Seeded standard normals as fp16.
pub(super) fn normals(count: usize, seed: u64) -> Halves {
    Generator::from_seed(seed).normals_f32(count).into_iter().map(f16::from_f32).collect()
}
