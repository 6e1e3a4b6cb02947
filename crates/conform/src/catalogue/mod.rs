//! Everything known of every operator, as data: what `aneforge ops`, the reference and the page of the report print.
//!
//! Nothing stands here that the tables, the lowerings and the claims do not say.

mod graph;
mod lowering;
pub mod markdown;

mod mil;
mod support;

pub use graph::{Alias, Gradient, GraphEntry};
pub use lowering::LoweringText;
pub use mil::{ListedEntry, MilEntry};
pub use support::{FamilySupport, Limit, Side};

use crate::claims::{ClaimError, Claims, Route};
use aneforge_core::GraphOp;
use aneforge_mil::op::{Default, MilOp};
use serde::Serialize;

/// Operators with all that is known of them.
#[derive(Clone, Debug, Serialize)]
pub struct Catalogue {
    /// Operators of the graph, by name.
    pub graph: Vec<GraphEntry>,
    /// Names of other writers for what is no operator of the graph.
    pub nodes: Vec<Alias>,
    /// Operators of MIL, by name.
    pub mil: Vec<MilEntry>,
    /// The engine's own layers, by type name.
    pub native: Vec<MilEntry>,
    /// Operators of the engine's vocabulary that have no record.
    pub listed: Vec<ListedEntry>,
    /// Layers that have no record.
    pub unusable: Vec<ListedEntry>,
}

/// One input, port or attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Name.
    pub name: &'static str,
    /// What may stand there.
    pub takes: String,
    /// What holds where it is left out; `None` where it must be given.
    pub default: Option<String>,
}

/// A labelled rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Its label.
    pub label: &'static str,
    /// The rule.
    pub rule: &'static str,
}

impl Catalogue {
    /// Every operator of these crates, with the committed claims.
    ///
    /// # Errors
    /// [`ClaimError`], which a test rules out.
    pub fn builtin() -> Result<Self, ClaimError> {
        Ok(Self::with(Claims::committed().map_err(Clone::clone)?))
    }

    /// Every operator of these crates, with other claims.
    pub fn with(claims: &Claims) -> Self {
        let native: Vec<_> = aneforge_native::layers().iter().map(|layer| &layer.op).collect();
        let listed = aneforge_mil::op::listed().iter();
        let unusable = aneforge_native::layer::unusable().iter();
        let nodes = aneforge_core::op::nodes().iter().map(|&(name, written)| Alias { name, written });
        Self {
            nodes: nodes.collect(),
            listed: listed.map(|row| ListedEntry::of(row.name, row.summary, row.reason, Route::E5rt, claims)).collect(),
            unusable: unusable.map(|row| ListedEntry::of(row.name, "", row.reason, Route::Native, claims)).collect(),
            ..Self::of(aneforge_core::op::builtin(), &aneforge_mil::op::builtin().all(), &native, claims)
        }
    }

    /// The operators of a caller, with claims.
    pub fn of(graph: &[&'static GraphOp], mil: &[&'static MilOp], native: &[&'static MilOp], claims: &Claims) -> Self {
        let mut graph: Vec<_> = graph.iter().map(|op| GraphEntry::of(op, claims)).collect();
        graph.sort_by_key(|entry| entry.name);
        let entries = |ops: &[&'static MilOp], route| {
            let mut entries: Vec<_> = ops.iter().map(|op| MilEntry::of(op, route, claims)).collect();
            entries.sort_by_key(|entry| entry.name);
            entries
        };
        let (mil, native) = (entries(mil, Route::E5rt), entries(native, Route::Native));
        Self { graph, nodes: Vec::new(), mil, native, listed: Vec::new(), unusable: Vec::new() }
    }

    /// The entries of that name or alias alone.
    #[must_use]
    pub fn only(&self, name: &str) -> Self {
        let mil = |entries: &[MilEntry]| entries.iter().filter(|entry| entry.name == name).cloned().collect();
        let listed = |entries: &[ListedEntry]| entries.iter().filter(|entry| entry.name == name).cloned().collect();
        let here = |entry: &&GraphEntry| entry.name == name || entry.aliases.iter().any(|alias| alias.name == name);
        Self {
            graph: self.graph.iter().filter(here).cloned().collect(),
            nodes: self.nodes.iter().filter(|node| node.name == name).copied().collect(),
            mil: mil(&self.mil),
            native: mil(&self.native),
            listed: listed(&self.listed),
            unusable: listed(&self.unusable),
        }
    }

    /// The entries of several selections, in their order.
    #[must_use]
    pub fn joined(parts: Vec<Self>) -> Self {
        let mut all = Self {
            graph: Vec::new(),
            nodes: Vec::new(),
            mil: Vec::new(),
            native: Vec::new(),
            listed: Vec::new(),
            unusable: Vec::new(),
        };
        for part in parts {
            all.graph.extend(part.graph);
            all.nodes.extend(part.nodes);
            all.mil.extend(part.mil);
            all.native.extend(part.native);
            all.listed.extend(part.listed);
            all.unusable.extend(part.unusable);
        }
        all
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        let records = self.graph.len() + self.mil.len() + self.native.len();
        let names = self.nodes.len() + self.listed.len() + self.unusable.len();
        records + names == 0
    }
}

/// A default as people write it.
fn default_text(default: Default) -> Option<String> {
    match default {
        Default::Required => None,
        Default::Absent => Some("none".to_string()),
        Default::Int(value) => Some(value.to_string()),
        Default::Float(value) => Some(format!("{value:?}")),
        Default::Flag(value) => Some(value.to_string()),
        Default::Text(text) => Some(format!("{text:?}")),
        Default::Ints(values) => Some(format!("{values:?}")),
    }
}

/// Element types as people write them.
fn dtype_list(dtypes: &[aneforge_core::DType]) -> String {
    dtypes.iter().map(|dtype| dtype.keyword()).collect::<Vec<_>>().join(", ")
}
