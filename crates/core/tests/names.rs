//! Names that other programs have for operators lead to ours.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_core::op::{builtin, find, written_here};
use aneforge_testkit::package::GRAPH_OPERATORS;

#[test]
fn every_operator_of_the_python_package_is_a_record_or_says_how_it_is_written() {
    let names: Vec<&str> = GRAPH_OPERATORS.split_whitespace().collect();
    assert_eq!(names.len(), 100);
    let unknown: Vec<_> = names.iter().filter(|name| find(name).is_none() && written_here(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(find("muls").unwrap().name, "mul");
    assert!(written_here("bmm").unwrap().contains("matmul"));
}

#[test]
fn no_alias_hides_a_record_or_another_alias() {
    let aliases = builtin().iter().flat_map(|op| op.aliases.iter().map(|alias| alias.0));
    let mut all: Vec<&str> = builtin().iter().map(|op| op.name).chain(aliases).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
