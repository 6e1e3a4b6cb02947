//! Weights in formats that the engine reads compressed: integers with scales, tables, bitmasks.
//!
//! A format is applied to the weights it is asked for and to no others; what it loses is reported per weight. Which format a
//! weight may have without harm is decided above this crate, where programs can be run.

mod blocks;
mod encode;
mod encoded;
mod error;
mod format;
mod linear;
mod palette;
mod slot;

pub use encode::{encode, read};
pub use encoded::Encoded;
pub use error::CompressError;
pub use format::{Format, Streaming, Tables};
pub use slot::{Slot, WEIGHT_THRESHOLD, slots};

use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_core::Target;
use aneforge_mil::{Body, Operand, ValueId};
use half::f16;
use std::collections::{HashMap, HashSet};

/// Name of the step in reports.
pub const STEP: &str = "compress";

/// What one weight became.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CompressedWeight {
    /// SSA name of the weight.
    pub weight: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Operator that reads it.
    pub op: String,
    /// Name of its format; `fp16` where it was left.
    pub format: String,
    /// Bytes as fp16.
    pub dense_bytes: usize,
    /// Bytes now.
    pub bytes: usize,
    /// Norm of what was lost over the norm of the weight.
    pub relative_error: f64,
    /// Why this format; empty where it was asked for.
    pub reason: String,
}

/// Puts compressed weights in place of the constants they were made from.
///
/// # Errors
/// [`CompileError::Build`] where an operator refuses its data.
pub fn apply(body: &Body, encoded: &HashMap<ValueId, Encoded>) -> Result<Body, CompileError> {
    let mut written: HashSet<ValueId> = HashSet::new();
    rewrite(body, |rewriter, operation| {
        for &id in operation.arguments.iter().flat_map(Operand::values) {
            if let Some(weight) = encoded.get(&id)
                && written.insert(id)
            {
                let name = rewriter.name(id);
                let new = weight.write(rewriter.builder(), name)?;
                rewriter.replace(id, new);
            }
        }
        Ok(false)
    })
}

/// [`compress`] of every weight of at least [`WEIGHT_THRESHOLD`] elements for a target, with a remark where the target is not
/// reported to read the format as it is.
///
/// # Errors
/// [`CompressError::Target`] for targets that have no compressed weights; otherwise as [`compress`].
pub fn compress_for(
    body: &Body,
    format: Format,
    target: &Target,
    notes: &mut Notes,
) -> Result<(Body, Vec<CompressedWeight>), CompileError> {
    let remark = match format.streaming(target) {
        Streaming::Streams => None,
        Streaming::Folds => Some("expanded to fp16 before it runs: the bundle is smaller, the program is no faster"),
        Streaming::Unknown => Some("nobody reports whether it is read compressed or expanded first"),
        Streaming::Refused => {
            return Err(CompressError::Target { target: target.to_string(), format: format.to_string() }.into());
        }
    };
    let result = compress(body, format, WEIGHT_THRESHOLD, notes)?;
    if let Some(remark) = remark {
        notes.missed(&format.to_string(), format!("on {target}: {remark}"));
    }
    Ok(result)
}

/// Compresses every weight of at least `threshold` elements in one format, and says what each lost. Weights that the format cannot
/// hold stay as they are, with the reason.
///
/// # Errors
/// [`CompressError::Read`], and what [`apply`] reports.
pub fn compress(
    body: &Body,
    format: Format,
    threshold: usize,
    notes: &mut Notes,
) -> Result<(Body, Vec<CompressedWeight>), CompileError> {
    let mut encoded = HashMap::new();
    let mut report = Vec::new();
    notes.begin(STEP);
    for slot in slots(body, threshold) {
        let values = read(body, &slot)?;
        let mut row = CompressedWeight::left(body, &slot);
        match encode(body, &slot, &values, format, None) {
            Ok(weight) => {
                row.becomes(&weight, &values);
                notes.applied(&row.weight, row.text());
                encoded.insert(slot.value, weight);
            }
            Err(CompressError::Rule { rule, .. }) => {
                notes.missed(&row.weight, format!("not {format}: {rule}"));
                row.reason = rule;
            }
            Err(error) => return Err(error.into()),
        }
        report.push(row);
    }
    Ok((apply(body, &encoded)?, report))
}

impl CompressedWeight {
    /// The row of a weight that stays fp16.
    pub fn left(body: &Body, slot: &Slot) -> Self {
        let value = body.value(slot.value);
        let dense_bytes = value.ty.count() * 2;
        Self {
            weight: value.name.clone(),
            shape: value.ty.shape.clone(),
            op: slot.op.to_string(),
            format: "fp16".to_string(),
            dense_bytes,
            bytes: dense_bytes,
            relative_error: 0.0,
            reason: String::new(),
        }
    }

    /// One line: the format, the size and what was lost.
    pub fn text(&self) -> String {
        let share = self.bytes as f64 / self.dense_bytes as f64;
        format!("{} of {} {:?}: {share:.3} of fp16, relative error {:.1e}", self.format, self.op, self.shape, self.relative_error)
    }

    /// Notes what it became.
    pub fn becomes(&mut self, encoded: &Encoded, original: &[f16]) {
        self.format = encoded.format.to_string();
        self.bytes = encoded.bytes();
        self.relative_error = encoded.relative_error(original);
    }
}
