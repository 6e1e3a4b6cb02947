//! Strides, dilations and padding of sliding windows, read from an operation.

use super::graph::Graph;
use aneforge_mil::Operation;

/// How a window slides over height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    /// Top, bottom, left, right.
    pub(crate) pads: [usize; 4],
}

/// The window of a convolution or pool; `None` where an attribute is malformed.
pub(crate) fn of(graph: &Graph, operation: &Operation, input: [usize; 2], kernel: [usize; 2]) -> Option<Window> {
    let (strides, dilations, pad, pad_type) = graph
        .attributes(operation, |a| (a.ints("strides"), a.ints("dilations"), a.ints("pad"), a.text("pad_type").map(str::to_string)));
    let pair = |values: Option<Vec<i64>>| match values {
        None => Some([1, 1]),
        Some(values) => Some([usize::try_from(*values.first()?).ok()?, usize::try_from(*values.get(1)?).ok()?]),
    };
    let (stride, dilation) = (pair(strides)?, pair(dilations)?);
    let mut pads = [0; 4];
    match pad_type.as_deref() {
        Some("custom") => {
            for (slot, value) in pads.iter_mut().zip(pad.unwrap_or_else(|| vec![0; 4])) {
                *slot = usize::try_from(value).ok()?;
            }
        }
        Some(same @ ("same" | "same_lower")) => {
            for axis in 0..2 {
                let reach = (kernel[axis].checked_sub(1)?) * dilation[axis] + 1;
                let positions = input[axis].div_ceil(stride[axis]).max(1);
                let total = ((positions - 1) * stride[axis] + reach).saturating_sub(input[axis]);
                let (small, large) = (total / 2, total - total / 2);
                (pads[2 * axis], pads[2 * axis + 1]) = if same == "same" { (small, large) } else { (large, small) };
            }
        }
        _ => {}
    }
    Some(Window { stride, dilation, pads })
}
