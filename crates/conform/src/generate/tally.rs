//! What was reached and what was asked.

use aneforge_core::GraphOp;
use std::collections::BTreeMap;

/// Counts of one or many graphs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Graphs that went the whole way.
    pub graphs: usize,
    /// Uses of each operator in them.
    pub uses: BTreeMap<&'static str, usize>,
    /// Uses that were drawn and dropped, per operator: the builder refused them, or their values were of no use.
    pub dropped: BTreeMap<&'static str, usize>,
    /// Results that were compared bit for bit.
    pub exact: usize,
    /// Results that were compared within a bound.
    pub bounded: usize,
    /// Results that no bound can be given for: small changes on the way to them change them too much.
    pub ill_conditioned: usize,
    /// Results for values at the edges, which only had to come.
    pub edge: usize,
    /// Programs that a chip does not take, per reason.
    pub refused: BTreeMap<String, usize>,
}

impl Tally {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        self.graphs += other.graphs;
        self.exact += other.exact;
        self.bounded += other.bounded;
        self.ill_conditioned += other.ill_conditioned;
        self.edge += other.edge;
        add_all(&mut self.uses, &other.uses);
        add_all(&mut self.dropped, &other.dropped);
        add_all(&mut self.refused, &other.refused);
    }

    /// Operators of a table that no graph has used.
    pub fn unreached(&self, operators: &[&'static GraphOp]) -> Vec<&'static str> {
        operators.iter().map(|op| op.name).filter(|name| !self.uses.contains_key(name)).collect()
    }

    /// The counts as a table for people.
    pub fn report(&self) -> String {
        let mut text = format!(
            "{} graphs; results compared bit for bit: {}, within a bound: {}, too sensitive for one: {}, at edge values: {}\n",
            self.graphs, self.exact, self.bounded, self.ill_conditioned, self.edge
        );
        let names: std::collections::BTreeSet<_> = self.uses.keys().chain(self.dropped.keys()).collect();
        for name in names {
            let count = |map: &BTreeMap<&'static str, usize>| map.get(name).copied().unwrap_or(0);
            text += &format!("{name:28} {:8} used {:9} dropped\n", count(&self.uses), count(&self.dropped));
        }
        for (reason, count) in &self.refused {
            text += &format!("{count:8} programs refused: {reason}\n");
        }
        text
    }
}

pub(super) fn count<K: Ord>(map: &mut BTreeMap<K, usize>, key: K) {
    *map.entry(key).or_default() += 1;
}

fn add_all<K: Ord + Clone>(map: &mut BTreeMap<K, usize>, other: &BTreeMap<K, usize>) {
    for (key, count) in other {
        *map.entry(key.clone()).or_default() += count;
    }
}
