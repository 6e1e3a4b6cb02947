//! fp32 and bf16 bytes to fp16 bytes: the conversion every imported weight passes through.

use crate::{CHUNK_ELEMENTS, DType, WeightError};
use aneforge_kernel::Context;
use half::{bf16, f16};
use rayon::prelude::*;

/// Elements that are converted while the ones before them are handed over.
const GROUP: usize = 4 * CHUNK_ELEMENTS;

/// Rounds packed fp32 or bf16 elements to fp16, ties to even, and hands them to `sink` in order. The next group is converted on
/// other threads meanwhile; two groups are held.
pub(crate) fn to_fp16(
    bytes: &[u8],
    stored: DType,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), WeightError>,
) -> Result<(), WeightError> {
    let width = stored.bits() / 8;
    let elements = bytes.len() / width;
    if elements <= CHUNK_ELEMENTS {
        // Waking other threads would take longer.
        let mut narrow = vec![f16::ZERO; elements];
        slice_to_fp16(bytes, stored, 0, &mut narrow)?;
        return if elements == 0 { Ok(()) } else { sink(bytemuck::cast_slice(&narrow)) };
    }
    let mut current = vec![f16::ZERO; elements.min(GROUP)];
    let mut next = vec![f16::ZERO; elements.saturating_sub(GROUP).min(GROUP)];
    let mut groups = bytes.chunks(GROUP * width).zip((0..elements).step_by(GROUP));
    let mut converted = match groups.next() {
        Some((group, base)) => group_to_fp16(group, stored, base, &mut current),
        None => return Ok(()),
    };
    loop {
        let count = converted?;
        let mut following = None;
        let mut handed = Ok(());
        let (upcoming, result, spare) = (groups.next(), &mut following, &mut next);
        rayon::in_place_scope(|scope| {
            if let Some((group, base)) = upcoming {
                scope.spawn(move |_| *result = Some(group_to_fp16(group, stored, base, spare)));
            }
            handed = bytemuck::cast_slice(&current[..count]).chunks(CHUNK_ELEMENTS * 2).try_for_each(&mut *sink);
        });
        handed?;
        match following {
            Some(result) => converted = result,
            None => return Ok(()),
        }
        std::mem::swap(&mut current, &mut next);
    }
}

/// Elements that are converted and looked over before the next ones, so that both happen in the fastest cache.
const STEP: usize = 8192;

/// Rounds packed fp32 or bf16 elements to fp16, ties to even, on this thread. `base` is the index of the first element.
pub(crate) fn slice_to_fp16(bytes: &[u8], stored: DType, base: usize, narrow: &mut [f16]) -> Result<(), WeightError> {
    let width = stored.bits() / 8;
    for (index, (narrow, bytes)) in narrow.chunks_mut(STEP).zip(bytes.chunks(STEP * width)).enumerate() {
        if let Some((at, value)) = chunk_to_fp16(bytes, stored, narrow) {
            return Err(WeightError::Range { value, index: base + index * STEP + at });
        }
    }
    Ok(())
}

/// Converts one group, whose first element has index `base`, and gives its element count.
fn group_to_fp16(bytes: &[u8], stored: DType, base: usize, narrow: &mut [f16]) -> Result<usize, WeightError> {
    let width = stored.bits() / 8;
    let count = bytes.len() / width;
    let chunks = narrow[..count].par_chunks_mut(CHUNK_ELEMENTS).zip(bytes.par_chunks(CHUNK_ELEMENTS * width)).enumerate();
    let failure = chunks.find_map_first(|(index, (narrow, bytes))| {
        chunk_to_fp16(bytes, stored, narrow).map(|(at, value)| (base + index * CHUNK_ELEMENTS + at, value))
    });
    match failure {
        None => Ok(count),
        Some((index, value)) => Err(WeightError::Range { value, index }),
    }
}

/// Converts one chunk; gives place and value of the first finite number that fp16 cannot hold.
fn chunk_to_fp16(bytes: &[u8], stored: DType, narrow: &mut [f16]) -> Option<(usize, f64)> {
    if stored == DType::Fp32 && cfg!(target_endian = "little") {
        // Mapped files usually keep tensors aligned; then nothing is copied.
        if let Ok(wide) = bytemuck::try_cast_slice::<u8, f32>(bytes) {
            return narrowed(wide, narrow);
        }
    }
    let wide: Vec<f32> = match stored {
        DType::Fp32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        _ => bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
    };
    narrowed(&wide, narrow)
}

fn narrowed(wide: &[f32], narrow: &mut [f16]) -> Option<(usize, f64)> {
    for (wide, narrow) in wide.chunks(STEP).zip(narrow.chunks_mut(STEP)) {
        aneforge_kernel::convert::narrow(Context::global(), wide, narrow);
    }
    // Almost no weight holds an infinity, so one pass without branches comes before the search. Signed, because that maximum is
    // what every processor has an instruction for.
    let largest = narrow.iter().fold(0i16, |largest, value| largest.max((value.to_bits() & 0x7fff) as i16));
    if largest < 0x7c00 {
        return None;
    }
    let at = narrow.iter().zip(wide).position(|(narrow, wide)| narrow.is_infinite() && wide.is_finite())?;
    Some((at, f64::from(wide[at])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(bytes: &[u8], stored: DType) -> Result<Vec<f16>, WeightError> {
        let mut values = Vec::new();
        to_fp16(bytes, stored, &mut |chunk| {
            values.extend(chunk.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])));
            Ok(())
        })?;
        Ok(values)
    }

    fn numbers(count: usize) -> Vec<f32> {
        (0..count as u32).map(|i| f32::from_bits(0x3000_0000 + i.wrapping_mul(2_654_435_761) % 0x177f_0000)).collect()
    }

    #[test]
    fn every_length_and_alignment_converts_like_one_number_at_a_time() {
        for count in [0, 1, 7, CHUNK_ELEMENTS, CHUNK_ELEMENTS + 1, GROUP, GROUP + 3, 2 * GROUP, 2 * GROUP + CHUNK_ELEMENTS + 5] {
            let values = numbers(count);
            let expected: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
            let mut bytes = vec![0u8];
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            assert!(converted(&bytes[1..], DType::Fp32).unwrap() == expected, "{count} elements");
            let shifted = [&[0u8; 3][..], &bytes].concat();
            assert!(converted(&shifted[4..], DType::Fp32).unwrap() == expected, "{count} elements, shifted");
        }
        let bytes: Vec<u8> = numbers(1000).iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect();
        let expected: Vec<f16> = numbers(1000).iter().map(|&value| f16::from_f32(bf16::from_f32(value).to_f32())).collect();
        assert!(converted(&bytes, DType::Bf16).unwrap() == expected);
    }

    #[test]
    fn the_first_number_out_of_range_is_named_and_infinities_pass() {
        let mut values = vec![1.0f32; 2 * GROUP];
        values[10] = f32::INFINITY;
        values[GROUP + 7] = 65520.0;
        values[GROUP + CHUNK_ELEMENTS * 2] = -1e9;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        match converted(&bytes, DType::Fp32) {
            Err(WeightError::Range { value, index }) => assert_eq!((value, index), (65520.0, GROUP + 7)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failing_sink_stops_the_conversion() {
        let bytes = vec![0u8; 4 * 3 * GROUP];
        let mut calls = 0;
        let result = to_fp16(&bytes, DType::Fp32, &mut |_| {
            calls += 1;
            if calls == 2 { Err(WeightError::Other("full".into())) } else { Ok(()) }
        });
        assert!(matches!(result, Err(WeightError::Other(_))));
        assert_eq!(calls, 2);
    }
}
