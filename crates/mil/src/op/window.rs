//! Where windows of convolutions and pools lie: output extents and padding.

use super::family::rule;
use super::{Arguments, Constraint};

/// One spatial axis of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Extent of the input.
    pub input: usize,
    /// Number of window positions.
    pub output: usize,
    /// Taps of the window.
    pub kernel: usize,
    /// Step between positions.
    pub stride: usize,
    /// Step between taps.
    pub dilation: usize,
    /// Padding before the first element.
    pub before: usize,
    /// Padding after the last element, as asked for.
    pub after: usize,
}

/// An axis that nothing slides along; fills up to three axes.
pub(super) const POINT: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, before: 0, after: 0 };

impl Axis {
    /// Positions whose tap number `tap` lies inside the input, as a half-open range.
    pub fn inside(&self, tap: usize) -> (usize, usize) {
        let shift = tap * self.dilation;
        let first = self.before.saturating_sub(shift).div_ceil(self.stride);
        let last = (self.input + self.before).saturating_sub(shift).div_ceil(self.stride);
        (first.min(self.output), last.min(self.output))
    }

    /// Index in the input of a tap at a position that [`Axis::inside`] contains.
    pub fn at(&self, position: usize, tap: usize) -> usize {
        position * self.stride + tap * self.dilation - self.before
    }
}

/// Lengths and signs of `strides`, `dilations` and `pad`, where they are given.
pub(super) fn well_formed(a: &Arguments<'_>, spatial: usize) -> bool {
    let limit = i64::from(u32::MAX);
    let list = |port, length: usize, least: i64| {
        a.ints(port).is_none_or(|values| values.len() == length && values.iter().all(|&value| (least..=limit).contains(&value)))
    };
    list("kernel_sizes", spatial, 1) && list("strides", spatial, 1) && list("dilations", spatial, 1) && list("pad", 2 * spatial, 0)
}

/// The rule for the axes of convolutions, forward and transposed.
pub(super) const MAPS: Constraint =
    rule("C1", "x has 3 to 5 axes [batch, channels, spatial...] and weight as many: reshape x", |a| {
        a.shape("x").len() >= 3 && a.shape("weight").len() == a.shape("x").len()
    });

/// The rule for the element types of convolutions.
pub(super) const ONE_DTYPE: Constraint = rule("C2", "x, weight and bias have the same element type: cast them", |a| {
    let same = |port| a.get(port).zip(a.get("x")).is_none_or(|(other, x)| other.ty.dtype == x.ty.dtype);
    same("weight") && same("bias")
});

/// The rule for the attributes of convolutions.
pub(super) const WELL_FORMED: Constraint =
    rule("C5", "strides and dilations have one positive integer per spatial axis, pad two that are not negative", |a| {
        well_formed(a, a.shape("x").len().saturating_sub(2))
    });

/// The rule for the padding of convolutions.
pub(super) const PAD_TYPE: Constraint = rule("C6", "pad_type is valid, custom, same or same_lower", pad_type_known);

/// The number of groups of a convolution.
pub(super) fn groups(a: &Arguments<'_>) -> Option<usize> {
    usize::try_from(a.int("groups")?).ok().filter(|&groups| groups > 0)
}

/// Whether `pad_type` is one that MIL knows.
pub(super) fn pad_type_known(a: &Arguments<'_>) -> bool {
    matches!(a.text("pad_type"), Some("valid" | "custom" | "same" | "same_lower"))
}

/// The axes of a convolution or pool over `input` (spatial extents) with `kernel`; `None` where the window does not fit or an
/// attribute is malformed.
pub(super) fn axes(a: &Arguments<'_>, input: &[usize], kernel: &[usize]) -> Option<Vec<Axis>> {
    if input.len() != kernel.len() || kernel.contains(&0) || !well_formed(a, input.len()) || !pad_type_known(a) {
        return None;
    }
    let ceil = a.flag("ceil_mode");
    let pads = a.ints("pad");
    let list = |port, axis: usize| a.ints(port).map_or(1, |values| values[axis] as usize);
    let one = |axis: usize| {
        let (stride, dilation) = (list("strides", axis), list("dilations", axis));
        let reach = (kernel[axis] - 1).checked_mul(dilation)?.checked_add(1)?;
        let extent = input[axis];
        let (before, after) = match a.text("pad_type") {
            Some("custom") => pads.as_ref().map_or((0, 0), |pads| (pads[2 * axis] as usize, pads[2 * axis + 1] as usize)),
            Some(same @ ("same" | "same_lower")) => {
                let last = (extent.div_ceil(stride).max(1) - 1) * stride;
                let total = last.saturating_add(reach).saturating_sub(extent);
                let small = total / 2;
                if same == "same" { (small, total - small) } else { (total - small, small) }
            }
            _ => (0, 0),
        };
        let room = extent.checked_add(before)?.checked_add(after)?.checked_sub(reach)?;
        let mut output = if ceil { room.div_ceil(stride) + 1 } else { room / stride + 1 };
        // A position that starts behind the last element would see padding alone (PyTorch's rule for ceil mode).
        if ceil && (output - 1) * stride >= extent + before {
            output -= 1;
        }
        Some(Axis { input: extent, output, kernel: kernel[axis], stride, dilation, before, after })
    };
    (0..input.len()).map(one).collect()
}

/// Exactly three axes: points in front where there are fewer.
pub(super) fn three(axes: &[Axis]) -> [Axis; 3] {
    let mut three = [POINT; 3];
    let missing = 3usize.saturating_sub(axes.len());
    for (slot, axis) in three.iter_mut().skip(missing).zip(axes) {
        *slot = *axis;
    }
    three
}
