//! Stand-ins for large constants: the same data for the same seed and type.

use crate::{DType, TensorType, Weight, WeightError, round_to_fp16};
use half::f16;
use std::sync::Arc;

/// A weight of that type with pseudo-random data: fp16 uniform within the inverse root of the elements per first-axis entry, so
/// that deep graphs neither explode nor vanish; other types small integers.
pub(crate) fn seeded(ty: &TensorType, seed: u64) -> Result<Weight, WeightError> {
    let count = ty.count();
    if ty.dtype != DType::Fp16 {
        let bytes = (0..ty.dtype.packed_bytes(count)).map(|index| (random(seed, index as u64) >> 62) as u8).collect();
        return Weight::from_bytes(ty.clone(), bytes);
    }
    let per_entry = (count / ty.shape.first().copied().unwrap_or(1).max(1)).max(1);
    let scale = (per_entry as f64).sqrt().recip();
    let compute = move |sink: &mut dyn FnMut(&[f16]) -> Result<(), WeightError>| {
        let mut chunk = Vec::with_capacity(4096);
        for start in (0..count).step_by(4096) {
            chunk.clear();
            chunk.extend((start..count.min(start + 4096)).map(|index| {
                let unit = (random(seed, index as u64) >> 11) as f64 / (1u64 << 53) as f64;
                round_to_fp16((2.0 * unit - 1.0) * scale)
            }));
            sink(&chunk)?;
        }
        Ok(())
    };
    Ok(Weight::computed(ty.shape.clone(), Arc::new(compute)))
}

/// SplitMix64 (Steele, Lea, Flood 2014) at position `index` of the stream `seed`.
fn random(seed: u64, index: u64) -> u64 {
    let mut bits = seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
