//! Two dumps side by side.

use aneforge_runtime::numerics::{Dump, Halves};
use std::collections::BTreeMap;

/// A question that two dumps answer differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Operator with its arguments, or name of the probe.
    pub what: String,
    /// Results that differ in their bits; all of them where one dump has no answer.
    pub different: usize,
    /// Results in all.
    pub results: usize,
}

/// Every question of `wanted` whose answers in `got` are not the same bit for bit.
pub fn differences(wanted: &Dump, got: &Dump) -> Vec<Difference> {
    let other = answers(got);
    let mut all = Vec::new();
    for (what, results) in answers(wanted) {
        let total: usize = results.iter().map(|result| result.0.len()).sum();
        let different = match other.get(&what) {
            Some(found) if found.len() == results.len() => {
                results.iter().zip(found).map(|(wanted, got)| unlike(wanted, got)).sum::<usize>()
            }
            _ => total,
        };
        if different > 0 {
            all.push(Difference { what, different, results: total });
        }
    }
    all
}

fn unlike(wanted: &Halves, got: &Halves) -> usize {
    if wanted.0.len() != got.0.len() {
        return wanted.0.len();
    }
    wanted.0.iter().zip(&got.0).filter(|(wanted, got)| wanted != got).count()
}

fn answers(dump: &Dump) -> BTreeMap<String, Vec<&Halves>> {
    let tables = dump.tables.iter().map(|table| (format!("{} {:?}", table.op, table.arguments), vec![&table.results]));
    let probes = dump.probes.iter().map(|probe| (probe.name.clone(), probe.results.iter().collect()));
    tables.chain(probes).collect()
}
