//! Places between pixels: where resizing operators look, and what stands there.

/// Ways to spread the places of a resized axis, as MIL calls them.
pub(super) const SAMPLING_MODES: &[&str] =
    &["DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"];

/// Place of element `index` of `to` when an axis of `from` elements is resized; `from` need not be whole where it is a box.
///
/// Source: the formulas of coremltools 9.0, documentation of resize_bilinear.
pub(super) fn place(mode: Option<&str>, index: usize, from: f64, to: usize) -> f64 {
    let (steps, at) = (to as f64, index as f64);
    match mode {
        Some("ALIGN_CORNERS") if to == 1 => (from - 1.0) / 2.0,
        Some("STRICT_ALIGN_CORNERS" | "ALIGN_CORNERS") => aligned(index, from, to),
        Some("OFFSET_CORNERS") => (from - 1.0).max(1.0) / steps * (at + 0.5),
        Some("UNALIGN_CORNERS") => from / steps * (at + 0.5) - 0.5,
        _ => from / steps * at,
    }
}

/// The place in the input when the first and last elements of both sides coincide.
pub(super) fn aligned(index: usize, from: f64, to: usize) -> f64 {
    if to <= 1 { 0.0 } else { index as f64 * (from - 1.0) / (to as f64 - 1.0) }
}

/// The value of a plane at a place: blended from the four pixels around it, those outside given by `outside`.
pub(super) fn blend(plane: &[f64], [rows, columns]: [usize; 2], y: f64, x: f64, outside: f64) -> f64 {
    if !(y.is_finite() && x.is_finite()) {
        return outside;
    }
    let (top, left) = (y.floor(), x.floor());
    let mut sum = 0.0;
    for (row, down) in [(top, 1.0 - (y - top)), (top + 1.0, y - top)] {
        for (column, across) in [(left, 1.0 - (x - left)), (left + 1.0, x - left)] {
            // A pixel of no weight is not looked at: beside an infinity it would give NaN.
            if down * across != 0.0 {
                sum += down * across * pixel(plane, [rows, columns], row, column).unwrap_or(outside);
            }
        }
    }
    sum
}

/// A pixel by whole coordinates; `None` outside.
pub(super) fn pixel(plane: &[f64], [rows, columns]: [usize; 2], row: f64, column: f64) -> Option<f64> {
    let inside = row >= 0.0 && row < rows as f64 && column >= 0.0 && column < columns as f64;
    inside.then(|| plane[row as usize * columns + column as usize])
}

/// A coordinate folded back into `[low, high]` as often as needed, like light between two mirrors.
pub(super) fn mirrored(at: f64, low: f64, high: f64) -> f64 {
    let span = high - low;
    if span <= 0.0 || !at.is_finite() {
        return low.max(0.0);
    }
    let within = (at - low).abs() % (2.0 * span);
    low + if within > span { 2.0 * span - within } else { within }
}
