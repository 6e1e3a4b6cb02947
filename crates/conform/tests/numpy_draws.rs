//! The generator against numpy itself (run in the test where `ANEFORGE_PYTHON` names a Python that
//! has it) and against values that numpy printed once.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::process::Command;

use aneforge_conform::random::Generator;

/// Runs a script under the Python that `ANEFORGE_PYTHON` names. `None` where the variable is unset;
/// a Python that is named but fails is a failed test, never a skipped one.
fn run_python(script: &str) -> Option<Vec<u8>> {
    let Some(python) = std::env::var_os("ANEFORGE_PYTHON") else {
        println!("not compared with numpy: ANEFORGE_PYTHON is not set");
        return None;
    };
    let output = Command::new(&python)
        .args(["-c", script])
        .output()
        .unwrap_or_else(|error| panic!("ANEFORGE_PYTHON ({python:?}) does not start: {error}"));
    assert!(output.status.success(), "ANEFORGE_PYTHON ({python:?}) failed: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// A position-dependent sum over the bit patterns, cheap on both sides.
fn checksum(values: &[f64]) -> u64 {
    values.iter().enumerate().fold(0u64, |sum, (index, value)| sum.wrapping_add(value.to_bits().wrapping_mul(2 * index as u64 + 1)))
}

#[test]
fn raw_words_uniforms_and_normals_equal_numpy_for_many_seeds() {
    let script = "
import sys
import numpy as np
for seed in list(range(40)) + [2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**63, 2**64 - 1]:
    rng = np.random.default_rng(seed)
    for part in (rng.bit_generator.random_raw(5), rng.random(7), rng.standard_normal(20011), rng.random(3)):
        sys.stdout.buffer.write(part.astype(part.dtype.newbyteorder('<')).tobytes())
";
    let Some(bytes) = run_python(script) else {
        return;
    };
    let mut expected = words(&bytes).into_iter();
    let seeds = (0..40).chain([1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 7, 1 << 63, u64::MAX]);
    for seed in seeds {
        let mut generator = Generator::from_seed(seed);
        let mut ours: Vec<u64> = (0..5).map(|_| generator.next_raw()).collect();
        ours.extend((0..7).map(|_| generator.random().to_bits()));
        ours.extend(generator.normals(20011).iter().map(|value| value.to_bits()));
        ours.extend((0..3).map(|_| generator.random().to_bits()));
        for (index, value) in ours.into_iter().enumerate() {
            assert_eq!(Some(value), expected.next(), "seed {seed}, draw {index}");
        }
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn twenty_million_normals_equal_numpy() {
    // About 5,000 of these come from the tail and 140,000 from a layer's wedge.
    let script = "
import sys
import numpy as np
bits = np.random.default_rng(1234).standard_normal(20_000_000).view(np.uint64)
weights = 2 * np.arange(bits.size, dtype=np.uint64) + np.uint64(1)
sys.stdout.buffer.write(int((bits * weights).sum(dtype=np.uint64)).to_bytes(8, 'little'))
";
    let Some(bytes) = run_python(script) else {
        return;
    };
    let ours = checksum(&Generator::from_seed(1234).normals(20_000_000));
    assert_eq!(words(&bytes), [ours]);
}

#[test]
fn committed_values_of_numpy_are_drawn_where_python_is_absent() {
    let mut generator = Generator::from_seed(0);
    assert_eq!(generator.normals(4), [0.1257302210933933, -0.1321048632913019, 0.6404226504432821, 0.10490011715303971]);
    let mut generator = Generator::from_seed(42);
    assert_eq!(
        [generator.random(), generator.random(), generator.random()],
        [0.7739560485559633, 0.4388784397520523, 0.8585979199113825]
    );
    // Long enough to have passed through wedges and tails.
    assert_eq!(checksum(&Generator::from_seed(11).normals(1 << 20)), COMMITTED_CHECKSUM);
}

/// Of `default_rng(11).standard_normal(2**20)`, computed by numpy 2.4.
const COMMITTED_CHECKSUM: u64 = 0x1641ae1a0190d28d;

#[test]
fn the_ways_to_draw_normals_agree() {
    let mut one_by_one = Generator::from_seed(8);
    let mut filled = Generator::from_seed(8);
    let mut narrowed = Generator::from_seed(8);
    let values = filled.normals(1000);
    assert_eq!(values, (0..1000).map(|_| one_by_one.standard_normal()).collect::<Vec<_>>());
    assert_eq!(narrowed.normals_f32(1000), values.iter().map(|&value| value as f32).collect::<Vec<_>>());
    let next = one_by_one.next_raw();
    assert_eq!(filled.next_raw(), next);
    assert_eq!(narrowed.next_raw(), next);
}
