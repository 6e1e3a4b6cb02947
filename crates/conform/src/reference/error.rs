//! The error measure of the published figures.

/// Sums for ||got - reference|| / ||reference||, fed in pieces so that a workload of 64 million
/// elements never has to be held at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSum {
    difference: f64,
    reference: f64,
}

impl ErrorSum {
    /// Adds pairs of engine result and reference value.
    pub fn add(&mut self, pairs: impl IntoIterator<Item = (f64, f64)>) {
        let (mut difference, mut reference) = (0.0, 0.0);
        for (got, wanted) in pairs {
            difference += (got - wanted) * (got - wanted);
            reference += wanted * wanted;
        }
        self.difference += difference;
        self.reference += reference;
    }

    /// The relative L2 error of everything added; the absolute one where the reference is all zero.
    pub fn relative(&self) -> f64 {
        if self.reference > 0.0 { self.difference.sqrt() / self.reference.sqrt() } else { self.difference.sqrt() }
    }
}

/// ||got - reference||2 / ||reference||2 in f64, over equally long slices.
pub fn relative_error(got: &[f64], reference: &[f64]) -> f64 {
    let mut sum = ErrorSum::default();
    for (got, reference) in got.chunks(4096).zip(reference.chunks(4096)) {
        sum.add(got.iter().copied().zip(reference.iter().copied()));
    }
    sum.relative()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_relative_to_the_reference_and_absolute_where_that_is_zero() {
        assert_eq!(relative_error(&[3.0, 0.0], &[3.0, 4.0]), 0.8);
        assert_eq!(relative_error(&[3.0, 4.0], &[0.0, 0.0]), 5.0);
    }
}
