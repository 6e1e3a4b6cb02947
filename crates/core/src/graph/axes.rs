//! Axes as people write them.

/// A list of axes; negative ones count from the end. Made from one number, an array, a slice or a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes(pub(crate) Vec<i64>);

impl Axes {
    /// Axes counted from the front, ascending, so that equal sets give equal nodes; left as they are where one is out of range,
    /// for the operator's rule to name it. No axes at all means every axis.
    pub(crate) fn resolved(self, rank: usize) -> Vec<i64> {
        if self.0.is_empty() {
            return (0..rank as i64).collect();
        }
        let resolve = |&axis: &i64| crate::op::resolve_axis(axis, rank).map(|axis| axis as i64);
        match self.0.iter().map(resolve).collect::<Option<Vec<_>>>() {
            Some(mut axes) => {
                axes.sort_unstable();
                axes
            }
            None => self.0,
        }
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Self {
        Self(vec![axis])
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Self {
        Self(vec![i64::from(axis)])
    }
}

impl From<usize> for Axes {
    fn from(axis: usize) -> Self {
        Self(vec![i64::try_from(axis).unwrap_or(i64::MAX)])
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Self {
        Self(axes.to_vec())
    }
}

impl<const N: usize> From<&[i64; N]> for Axes {
    fn from(axes: &[i64; N]) -> Self {
        Self(axes.to_vec())
    }
}

impl From<&[i64]> for Axes {
    fn from(axes: &[i64]) -> Self {
        Self(axes.to_vec())
    }
}

impl From<&Vec<i64>> for Axes {
    fn from(axes: &Vec<i64>) -> Self {
        Self(axes.clone())
    }
}

impl From<Vec<i64>> for Axes {
    fn from(axes: Vec<i64>) -> Self {
        Self(axes)
    }
}
