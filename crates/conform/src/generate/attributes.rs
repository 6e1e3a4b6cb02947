//! Values for attributes: what an example has, or something of the right kind that may be legal.

use super::draws::Draws;
use aneforge_core::{Attribute, AttributeKind, AttributeSpec};
use std::borrow::Cow;

/// What is known of a use when its attributes are drawn.
pub(super) struct Site<'a> {
    /// Shape of the first tensor.
    pub shape: &'a [usize],
    /// Whether numbers must be whole.
    pub whole: bool,
    /// Attributes drawn before.
    pub earlier: &'a [(&'static str, Attribute)],
}

/// A value for an attribute of which an example, or the record's default, says `usual`; `None` leaves it out.
pub(super) fn draw(spec: &AttributeSpec, usual: Attribute, site: &Site<'_>, draws: &mut Draws) -> Option<Attribute> {
    let value = match spec.kind {
        AttributeKind::Flag => Attribute::Flag(draws.percent(50)),
        AttributeKind::Text(words) => match draws.pick(words) {
            Some(word) => Attribute::Text(Cow::Borrowed(word)),
            None => usual,
        },
        AttributeKind::Int => Attribute::Int(int(spec.name, &usual, site, draws)),
        AttributeKind::Float => Attribute::Float(float(spec.name, &usual, site, draws)),
        AttributeKind::Ints => Attribute::from(ints(spec.name, &usual, site, draws)),
    };
    (value != Attribute::Absent).then_some(value)
}

fn int(name: &str, usual: &Attribute, site: &Site<'_>, draws: &mut Draws) -> i64 {
    let rank = site.shape.len() as i64;
    match name {
        "axis" => draws.between(-rank, rank),
        "batch_dims" => draws.between(0, 1),
        _ => {
            // Counts, factors and block sizes divide some extent, or are small.
            let extents: Vec<i64> = site.shape.iter().map(|&extent| extent as i64).collect();
            let divisor = draws.pick(&extents).map_or(1, |&extent| {
                let divisors: Vec<i64> = (1..=extent.min(16)).filter(|part| extent % part == 0).collect();
                draws.pick(&divisors).copied().unwrap_or(1)
            });
            match (usual, draws.below(4)) {
                (Attribute::Int(value), 0) => value.saturating_add(draws.between(-1, 1)),
                (_, 1) => draws.between(0, 4),
                _ => divisor,
            }
        }
    }
}

fn float(name: &str, usual: &Attribute, site: &Site<'_>, draws: &mut Draws) -> f64 {
    if site.whole {
        return draws.between(-4, 4) as f64;
    }
    if name.contains("epsilon") {
        return draws.pick(&[1e-5, 1e-3, 0.125, 1.0]).copied().unwrap_or(1e-3);
    }
    match (usual, draws.below(3)) {
        (Attribute::Float(value), 0) => *value,
        (_, 1) => draws.between(-4, 4) as f64,
        _ => draws.unit() * 4.0 - 2.0,
    }
}

fn ints(name: &str, usual: &Attribute, site: &Site<'_>, draws: &mut Draws) -> Vec<i64> {
    let (shape, rank) = (site.shape, site.shape.len());
    let usual: &[i64] = match usual {
        Attribute::Ints(values) => values,
        _ => &[],
    };
    let earlier = |wanted: &str| match site.earlier.iter().find(|(name, _)| *name == wanted) {
        Some((_, Attribute::Ints(values))) => values.to_vec(),
        _ => vec![0; rank],
    };
    match name {
        "axes" => {
            let mut axes: Vec<i64> = (0..rank as i64).collect();
            draws.shuffle(&mut axes);
            axes.truncate(1 + draws.below(rank));
            axes.iter_mut().for_each(|axis| *axis -= if draws.percent(30) { rank as i64 } else { 0 });
            axes
        }
        "perm" => {
            let mut axes: Vec<i64> = (0..rank as i64).collect();
            draws.shuffle(&mut axes);
            axes
        }
        "shape" => factors(shape.iter().product(), draws),
        "reps" => (0..rank).map(|_| draws.between(1, 3)).collect(),
        "begin" => shape.iter().map(|&extent| draws.between(0, extent as i64 - 1)).collect(),
        "size" => shape.iter().zip(earlier("begin")).map(|(&extent, begin)| draws.between(1, extent as i64 - begin)).collect(),
        "end" => shape.iter().zip(earlier("begin")).map(|(&extent, begin)| draws.between(begin + 1, extent as i64)).collect(),
        _ => {
            // A list per axis, per spatial axis, or twice that; entries as small as windows and borders are.
            let lengths =
                [usual.len(), usual.len(), usual.len(), rank, 2 * rank, rank.saturating_sub(2), 2 * rank.saturating_sub(2)];
            let length = draws.pick(&lengths).copied().unwrap_or(0);
            let least = i64::from(!(name.contains("pad") || name.contains("crop")));
            let entry = |index: usize, draws: &mut Draws| match usual.get(index) {
                Some(&value) if draws.percent(40) => value,
                _ => draws.between(least, least + 2),
            };
            (0..length).map(|index| entry(index, draws)).collect()
        }
    }
}

/// A shape of as many elements, sometimes with one extent left to be computed.
fn factors(mut count: usize, draws: &mut Draws) -> Vec<i64> {
    let mut shape = Vec::new();
    for _ in 0..draws.below(5) {
        let divisors: Vec<usize> = (1..=count).filter(|part| count.is_multiple_of(*part)).collect();
        let part = draws.pick(&divisors).copied().unwrap_or(1);
        shape.push(part as i64);
        count /= part;
    }
    shape.insert(draws.below(shape.len() + 1), count as i64);
    if draws.percent(25) {
        let open = draws.below(shape.len());
        shape[open] = -1;
    }
    shape
}
