//! Indexing by ranges and integers.

use crate::graph::Tensor;
use crate::{GraphError, op};
use aneforge_mil::DisplayShape;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// What to take along one axis. Negative bounds count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// One place; the axis disappears.
    At(i64),
    /// From a place up to, not including, another one, every `step`.
    Range {
        /// First place, the axis' beginning where absent.
        from: Option<i64>,
        /// Place behind the last one, the axis' end where absent.
        to: Option<i64>,
        /// Step; only 1 is supported.
        step: i64,
    },
}

/// One to five indices: a tuple, an array or a slice of [`Index`].
pub trait IntoIndices {
    /// The indices, outermost axis first.
    fn into_indices(self) -> Vec<Index>;
}

impl Index {
    fn range(from: Option<i64>, to: Option<i64>) -> Self {
        Self::Range { from, to, step: 1 }
    }
}

impl From<i64> for Index {
    fn from(place: i64) -> Self {
        Self::At(place)
    }
}

impl From<i32> for Index {
    fn from(place: i32) -> Self {
        Self::At(i64::from(place))
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Self {
        Self::range(None, None)
    }
}

/// Ranges of both integer types, so that literals work without a suffix.
macro_rules! ranges {
    ($($number:ty),*) => {$(
        impl From<Range<$number>> for Index {
            fn from(range: Range<$number>) -> Self {
                Self::range(Some(range.start.into()), Some(range.end.into()))
            }
        }
        impl From<RangeFrom<$number>> for Index {
            fn from(range: RangeFrom<$number>) -> Self {
                Self::range(Some(range.start.into()), None)
            }
        }
        impl From<RangeTo<$number>> for Index {
            fn from(range: RangeTo<$number>) -> Self {
                Self::range(None, Some(range.end.into()))
            }
        }
        impl From<RangeInclusive<$number>> for Index {
            fn from(range: RangeInclusive<$number>) -> Self {
                Self::range(Some((*range.start()).into()), behind((*range.end()).into()))
            }
        }
        impl From<RangeToInclusive<$number>> for Index {
            fn from(range: RangeToInclusive<$number>) -> Self {
                Self::range(None, behind(range.end.into()))
            }
        }
    )*};
}
ranges!(i32, i64);

/// The place behind an inclusive end; behind the last element (-1) is the axis' end.
fn behind(end: i64) -> Option<i64> {
    if end == -1 { None } else { Some(end.saturating_add(1)) }
}

impl IntoIndices for &[Index] {
    fn into_indices(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl<const N: usize> IntoIndices for [Index; N] {
    fn into_indices(self) -> Vec<Index> {
        self.to_vec()
    }
}

/// Tuples of anything an index is made from.
macro_rules! tuples {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: Into<Index>),+> IntoIndices for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_indices(self) -> Vec<Index> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    )*};
}
tuples!((A)(A B)(A B C)(A B C D)(A B C D E));

impl Tensor {
    /// A part: `x.get((.., 1..3, 0))` takes everything along the first axis, two places of the second and one of the third, which
    /// disappears. Axes without an index are taken whole.
    ///
    /// Lowers to `slice_by_size`, and `squeeze` for integers. Steps other than 1 are an error: use `reverse` or `take`.
    pub fn get(&self, indices: impl IntoIndices) -> Tensor {
        let Ok(shape) = self.shape() else { return self.clone() };
        match block(shape, &indices.into_indices()) {
            Ok((begin, size, dropped)) => {
                let whole = size.iter().zip(shape).all(|(&size, &extent)| size == extent as i64);
                let part = if whole { self.clone() } else { self.slice_by_size(&begin, &size) };
                if dropped.is_empty() { part } else { part.squeeze(dropped) }
            }
            Err(problem) => {
                let got = format!("x has shape {}", DisplayShape(shape));
                self.graph().failed(GraphError::Attribute {
                    op: op::SLICE_BY_SIZE.name,
                    attribute: "index".to_string(),
                    problem: format!("{problem}; {got}"),
                })
            }
        }
    }
}

type Block = (Vec<i64>, Vec<i64>, Vec<i64>);

/// Where the part begins, its size, and the axes that disappear.
fn block(shape: &[usize], indices: &[Index]) -> Result<Block, String> {
    if indices.len() > shape.len() {
        return Err(format!("has {} entries, the tensor {} axes", indices.len(), shape.len()));
    }
    let (mut begin, mut size, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, &extent) in shape.iter().enumerate() {
        let extent = extent as i64;
        let front = |place: i64| if place < 0 { place + extent } else { place };
        match indices.get(axis).copied().unwrap_or(Index::range(None, None)) {
            Index::At(place) => {
                let at = front(place);
                if !(0..extent).contains(&at) {
                    return Err(format!("{place} is outside axis {axis} of extent {extent}"));
                }
                begin.push(at);
                size.push(1);
                dropped.push(axis as i64);
            }
            Index::Range { step, .. } if step != 1 => {
                return Err(format!("step {step} on axis {axis} is not supported; use reverse, take or a strided pool"));
            }
            Index::Range { from, to, .. } => {
                // Bounds past the end are cut to it, as in Python.
                let from = front(from.unwrap_or(0)).clamp(0, extent);
                let to = to.map_or(extent, front).clamp(0, extent);
                if from >= to {
                    return Err(format!("takes nothing of axis {axis} of extent {extent}"));
                }
                begin.push(from);
                size.push(to - from);
            }
        }
    }
    Ok((begin, size, dropped))
}
