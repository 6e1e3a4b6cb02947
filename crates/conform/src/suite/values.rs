//! Values and extents of generated uses.

use aneforge_mil::{Array, DType, TensorType};

/// Points where arithmetic tends to go wrong: zeros of both signs, ones, halves, the smallest normal and subnormal fp16.
const SPECIAL: [f64; 10] = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 6.103_515_625e-5, -6.103_515_625e-5, 5.960_464_477_539_063e-8, 1.5];
/// How far values keep from the points that a domain leaves out.
const DISTANCE: f64 = 0.05;

/// A small generator (SplitMix64), so that uses repeat on every machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Started from the seed of a run and what the numbers are for.
    pub(super) fn new(seed: u64, purpose: &[&str]) -> Self {
        // FNV-1a: any mixing will do, it only has to be the same everywhere.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(purpose.iter().flat_map(|text| text.bytes().chain([0])).fold(seed ^ 0xcbf2_9ce4_8422_2325, hash))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From zero to below one.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below an end.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Where values are drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<'a> {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) avoid: &'a [f64],
}

impl Range<'_> {
    fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value) && self.avoid.iter().all(|point| (value - point).abs() >= DISTANCE)
    }

    /// Random values: multiples of 2^-8, which fp16 holds exactly, and distinct where there are enough of them, so that none tie.
    pub(super) fn draw(&self, ty: &TensorType, dice: &mut Dice) -> Array {
        let count = ty.count();
        let distinct = (self.high - self.low) * 256.0 > 2.0 * count as f64;
        let mut data: Vec<f64> = Vec::with_capacity(count);
        let mut tries = 0;
        while data.len() < count {
            let value = ((self.low + dice.unit() * (self.high - self.low)) * 256.0).round() / 256.0;
            tries += 1;
            if tries > 64 * count || (self.has(value) && !(distinct && data.contains(&value))) {
                data.push(value);
            }
        }
        fitting(ty, data)
    }

    /// The ends and the special points inside, over and over.
    pub(super) fn edges(&self, ty: &TensorType) -> Array {
        let mut points: Vec<f64> = [self.low, self.high].into_iter().chain(SPECIAL).filter(|&point| self.has(point)).collect();
        if points.is_empty() {
            points.push((self.low + self.high) / 2.0);
        }
        fitting(ty, points.into_iter().cycle().take(ty.count()).collect())
    }
}

/// Values as a type holds them.
fn fitting(ty: &TensorType, mut data: Vec<f64>) -> Array {
    match ty.dtype {
        DType::Bool => data.iter_mut().for_each(|value| *value = f64::from(u8::from(*value > 0.0))),
        dtype if dtype.is_integer() => data.iter_mut().for_each(|value| *value = value.round()),
        _ => {}
    }
    Array { ty: ty.clone(), data }.rounded()
}

/// Other extents: equal ones stay equal, ones stay one, and those of `fixed` stay as they are.
#[derive(Debug)]
pub(super) struct Extents {
    by_old: Vec<usize>,
    fixed: Vec<usize>,
}

impl Extents {
    pub(super) fn new(dice: &mut Dice, fixed: Vec<usize>) -> Self {
        let by_old = (0..64).map(|old| if old < 2 { old } else { 1 + dice.below(12) }).collect();
        Self { by_old, fixed }
    }

    pub(super) fn map(&self, shape: &[usize]) -> Vec<usize> {
        let extent = |&old: &usize| if self.fixed.contains(&old) { old } else { self.by_old.get(old).copied().unwrap_or(old) };
        shape.iter().map(extent).collect()
    }
}
