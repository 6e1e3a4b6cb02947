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
    /// From a place towards another one, which is left out, every `step`.
    Range {
        /// First place; where absent, the axis' beginning, or its end with a negative step.
        from: Option<i64>,
        /// Place behind the last one; where absent, the axis' end, or its beginning with a negative step.
        to: Option<i64>,
        /// Distance of the places taken, negative to go backwards; not 0.
        step: i64,
    },
}

/// One to five indices: a tuple, an array or a slice of [`Index`].
pub trait IntoIndices {
    /// The indices, outermost axis first.
    fn into_indices(self) -> Vec<Index>;
}

impl Index {
    /// The range in steps: `Index::from(..).step_by(-1)` takes an axis backwards, as `::-1` does in Python.
    #[must_use]
    pub fn step_by(self, step: i64) -> Self {
        match self {
            Self::At(_) => self,
            Self::Range { from, to, .. } => Self::Range { from, to, step },
        }
    }

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
    /// Lowers to `slice_by_size`, or `slice_by_index` where a step is not 1, and `squeeze` for integers.
    pub fn get(&self, indices: impl IntoIndices) -> Tensor {
        let Ok(shape) = self.shape() else { return self.clone() };
        match part(shape, &indices.into_indices()) {
            Ok(Part { begin, end, step, dropped }) => {
                let whole =
                    shape.iter().zip(begin.iter().zip(&end)).all(|(&extent, (&begin, &end))| begin == 0 && end == extent as i64);
                let taken = if step.iter().any(|&step| step != 1) {
                    self.slice_by_index(&begin, &end, &step)
                } else if whole {
                    self.clone()
                } else {
                    let size: Vec<i64> = begin.iter().zip(&end).map(|(begin, end)| end - begin).collect();
                    self.slice_by_size(&begin, &size)
                };
                if dropped.is_empty() { taken } else { taken.squeeze(dropped) }
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

/// What is taken of each axis, and the axes that disappear.
struct Part {
    begin: Vec<i64>,
    end: Vec<i64>,
    step: Vec<i64>,
    dropped: Vec<i64>,
}

fn part(shape: &[usize], indices: &[Index]) -> Result<Part, String> {
    if indices.len() > shape.len() {
        return Err(format!("has {} entries, the tensor {} axes", indices.len(), shape.len()));
    }
    let mut part = Part { begin: Vec::new(), end: Vec::new(), step: Vec::new(), dropped: Vec::new() };
    for (axis, &extent) in shape.iter().enumerate() {
        let extent = extent as i64;
        let front = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
        let (begin, end, step) = match indices.get(axis).copied().unwrap_or(Index::range(None, None)) {
            Index::At(place) => {
                let at = front(place);
                if !(0..extent).contains(&at) {
                    return Err(format!("{place} is outside axis {axis} of extent {extent}"));
                }
                part.dropped.push(axis as i64);
                (at, at + 1, 1)
            }
            Index::Range { step: 0, .. } => return Err(format!("has step 0 on axis {axis}")),
            // Bounds past the ends are cut to them, as in Python.
            Index::Range { from, to, step } if step > 0 => {
                (front(from.unwrap_or(0)).clamp(0, extent), to.map_or(extent, front).clamp(0, extent), step)
            }
            Index::Range { from, to, step } => {
                let end = to.map_or(-1, front).clamp(-1, extent - 1);
                // The place before the first one has no index of its own; the open end says the same.
                (front(from.unwrap_or(-1)).clamp(-1, extent - 1), if end == -1 { i64::MIN } else { end }, step)
            }
        };
        if (step > 0 && begin >= end) || (step < 0 && begin <= end.max(-1)) {
            return Err(format!("takes nothing of axis {axis} of extent {extent}"));
        }
        part.begin.push(begin);
        part.end.push(end);
        part.step.push(step);
    }
    Ok(part)
}
