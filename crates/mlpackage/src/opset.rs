//! Op-sets of ML Programs: which operators, ports and element types a deployment target has.

use aneforge_mil::op::MilOp;
use aneforge_mil::{Body, DType, Operand, Operation};
use std::fmt;

/// A version of the language, oldest first, as coremltools 9.0 lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum OpSet {
    Ios15,
    Ios16,
    Ios17,
    Ios18,
    Ios26,
}

/// What each op-set is called in MIL and in a package, and the specification version that brought it.
const NAMES: &[(OpSet, &str, &str, i32)] = &[
    (OpSet::Ios15, "ios15", "CoreML5", 6),
    (OpSet::Ios16, "ios16", "CoreML6", 7),
    (OpSet::Ios17, "ios17", "CoreML7", 8),
    (OpSet::Ios18, "ios18", "CoreML8", 9),
    (OpSet::Ios26, "ios26", "CoreML9", 10),
];

/// Operators of the engine's language that Core ML has in no op-set.
const ABSENT: &[&str] = &["acosh", "asinh"];

/// Ports that came later than their operator, by coremltools' registry.
const LATER_PORTS: &[(&str, OpSet)] = &[
    ("batch_dims", OpSet::Ios16),
    ("half_pixel_centers", OpSet::Ios16),
    ("pad_value", OpSet::Ios16),
    ("return_indices", OpSet::Ios16),
    ("sort", OpSet::Ios16),
    ("validate_indices", OpSet::Ios17),
    ("output_dtype", OpSet::Ios17),
    ("output_indices_dtype", OpSet::Ios17),
    ("boxes", OpSet::Ios17),
    ("box_indices", OpSet::Ios17),
];

impl OpSet {
    fn row(self) -> &'static (OpSet, &'static str, &'static str, i32) {
        NAMES.iter().find(|row| row.0 == self).unwrap_or(&NAMES[0])
    }

    /// MIL's keyword: `ios16`.
    pub fn keyword(self) -> &'static str {
        self.row().1
    }

    /// The name of the op-set in a package: `CoreML6`.
    pub fn package_name(self) -> &'static str {
        self.row().2
    }

    /// The first specification version that has it.
    pub fn specification(self) -> i32 {
        self.row().3
    }

    /// The op-set that a package calls by this name.
    pub fn from_package_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The op-set behind MIL's keyword.
    pub fn from_keyword(keyword: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.1 == keyword).map(|row| row.0)
    }

    /// The oldest op-set in which every operation of a body is legal and its inputs and outputs can be multi-arrays.
    ///
    /// # Errors
    /// The operator that no op-set has.
    pub(crate) fn needed(body: &Body) -> Result<Self, &'static MilOp> {
        let edges = body.inputs.iter().chain(body.outputs.iter().map(|output| &output.value));
        let mut needed = OpSet::Ios15;
        if edges.into_iter().any(|&id| body.ty(id).dtype == DType::Fp16) {
            needed = OpSet::Ios16;
        }
        if !body.states.is_empty() {
            needed = OpSet::Ios18;
        }
        for operation in &body.operations {
            needed = needed.max(Self::of(body, operation)?);
        }
        Ok(needed)
    }

    fn of(body: &Body, operation: &Operation) -> Result<Self, &'static MilOp> {
        let op = operation.op;
        let mut needed = Self::from_keyword(op.opset).filter(|_| !ABSENT.contains(&op.name)).ok_or(op)?;
        for (spec, operand) in op.ports.iter().zip(&operation.arguments) {
            if *operand != Operand::Absent {
                let later = LATER_PORTS.iter().find(|row| row.0 == spec.name);
                needed = needed.max(later.map_or(Self::Ios15, |row| row.1));
            }
        }
        if op.expands_weight() {
            return Ok(needed);
        }
        let used = operation.arguments.iter().flat_map(Operand::values).chain(&operation.outputs);
        let dtypes: Vec<DType> = used.map(|&id| body.ty(id).dtype).collect();
        let narrow = |dtype: &DType| matches!(dtype, DType::Int8 | DType::UInt8 | DType::Int16 | DType::UInt16);
        // From iOS 17 on, operators take small integers and parameters of another float type than their data.
        let mixed = op.name != "cast" && dtypes.contains(&DType::Fp16) && dtypes.contains(&DType::Fp32);
        if mixed || dtypes.iter().any(narrow) {
            needed = needed.max(Self::Ios17);
        }
        Ok(needed)
    }
}

impl fmt::Display for OpSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.keyword())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_op_set_and_versions_rise() {
        let mut last = 5;
        for &(opset, ..) in NAMES {
            assert_eq!(OpSet::from_keyword(opset.keyword()), Some(opset));
            assert_eq!(OpSet::from_package_name(opset.package_name()), Some(opset));
            assert_eq!(opset.specification(), last + 1);
            last = opset.specification();
        }
    }
}
