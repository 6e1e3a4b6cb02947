//! Moves the elements of a tensor between ports.

use aneforge_compile::Move;

/// The copies that a chain of moves needs; reshapes need none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Shape of the tensor and order of its axes, copy by copy.
    copies: Vec<(Vec<usize>, Vec<usize>)>,
    /// Bytes of an element.
    width: usize,
}

impl Layout {
    /// The layout of a tensor of that shape; the moves were checked.
    pub(crate) fn new(shape: &[usize], width: usize, moves: &[Move]) -> Self {
        let mut shape = shape.to_vec();
        let mut copies = Vec::new();
        for step in moves {
            if let Move::Transpose(order) = step {
                copies.push((shape.clone(), order.clone()));
            }
            shape = step.shape(&shape).unwrap_or(shape);
        }
        Self { copies, width }
    }

    /// Whether the bytes stay as they are.
    pub(crate) fn is_identity(&self) -> bool {
        self.copies.is_empty()
    }

    /// The bytes after the moves; `None` where they stay as they are.
    pub(crate) fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut moved: Option<Vec<u8>> = None;
        for (shape, order) in &self.copies {
            moved = Some(transposed(moved.as_deref().unwrap_or(bytes), self.width, shape, order));
        }
        moved
    }
}

fn transposed(bytes: &[u8], width: usize, shape: &[usize], order: &[usize]) -> Vec<u8> {
    let strides = aneforge_mil::strides(shape);
    let (extents, steps): (Vec<usize>, Vec<usize>) = order.iter().map(|&axis| (shape[axis], strides[axis])).unzip();
    let mut made = Vec::with_capacity(bytes.len());
    let mut place = vec![0; order.len()];
    let mut from = 0;
    for _ in 0..shape.iter().product() {
        made.extend_from_slice(&bytes[from * width..(from + 1) * width]);
        // Counts like an odometer, the last axis fastest.
        for axis in (0..place.len()).rev() {
            place[axis] += 1;
            from += steps[axis];
            if place[axis] < extents[axis] {
                break;
            }
            from -= steps[axis] * extents[axis];
            place[axis] = 0;
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use aneforge_mil::{Array, DType};

    #[test]
    fn moves_give_what_arrays_give() {
        let shape = [2, 3, 4];
        let array = Array::new(DType::UInt8, shape, (0..24).map(f64::from).collect());
        let bytes: Vec<u8> = (0..24).collect();
        let moves = [Move::Transpose(vec![2, 0, 1]), Move::Reshape(vec![8, 3]), Move::Transpose(vec![1, 0])];
        let moved = Layout::new(&shape, 1, &moves).apply(&bytes).unwrap_or_default();
        let wanted = array.transposed(&[2, 0, 1]).reshaped([8, 3]).transposed(&[1, 0]);
        assert_eq!(moved.iter().map(|&byte| f64::from(byte)).collect::<Vec<_>>(), wanted.data);
        assert_eq!(Layout::new(&shape, 1, &[Move::Reshape(vec![24])]).apply(&bytes), None);
    }
}
