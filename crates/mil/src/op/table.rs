//! The operators that come with this crate, and tables that add one's own.

use super::MilOp;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Operators by keyword.
#[derive(Clone, Debug)]
pub struct OpTable {
    by_name: HashMap<&'static str, &'static MilOp>,
}

impl OpTable {
    /// The operators of this crate plus `extra`; a name that is already there is replaced.
    pub fn with(extra: &[&'static MilOp]) -> Self {
        let mut table = builtin().clone();
        table.by_name.extend(extra.iter().map(|op| (op.name, *op)));
        table
    }

    /// The operator of that name.
    pub fn get(&self, name: &str) -> Option<&'static MilOp> {
        self.by_name.get(name).copied()
    }

    /// All operators, by name.
    pub fn all(&self) -> Vec<&'static MilOp> {
        let mut all: Vec<_> = self.by_name.values().copied().collect();
        all.sort_by_key(|op| op.name);
        all
    }
}

/// The operators of this crate.
pub fn builtin() -> &'static OpTable {
    static TABLE: OnceLock<OpTable> = OnceLock::new();
    TABLE.get_or_init(|| OpTable { by_name: declared().map(|op| (op.name, op)).collect() })
}

/// The records of this crate family by family, as they are written down.
pub fn declared() -> impl Iterator<Item = &'static MilOp> {
    let families = [
        super::elementwise_unary::OPS,
        super::activation::OPS,
        super::elementwise_binary::OPS,
        super::comparison::OPS,
        super::linear::OPS,
        super::attention::OPS,
        super::convolution::OPS,
        super::convolution_transpose::OPS,
        super::pooling::OPS,
        super::reduction::OPS,
        super::normalization::OPS,
        super::shape::OPS,
        super::slice::OPS,
        super::join::OPS,
        super::rearrange::OPS,
        super::gather::OPS,
        super::scatter::OPS,
        super::sort::OPS,
        super::create::OPS,
        super::resize::OPS,
        super::warp::OPS,
        super::cast::OPS,
        super::constexpr::OPS,
        super::constexpr_sparse::OPS,
        super::sequence::OPS,
    ];
    families.into_iter().flatten()
}
