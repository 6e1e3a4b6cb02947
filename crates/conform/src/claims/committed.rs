//! The files that come with this crate.

use super::table::{parse, parse_sources};
use super::{ClaimError, Claims};
use std::sync::LazyLock;

macro_rules! files {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("../../data/", $name)))),*] };
}

const SOURCES: &str = include_str!("../../data/sources.tsv");
const FILES: &[(&str, &str)] = files!["guide.tsv", "catalog.tsv", "sweep.tsv", "limits.tsv", "native.tsv", "in_memory.tsv"];

static COMMITTED: LazyLock<Result<Claims, ClaimError>> = LazyLock::new(|| {
    let sources = parse_sources("sources.tsv", SOURCES)?;
    let mut claims = Vec::new();
    for (file, text) in FILES {
        claims.extend(parse(file, text, &sources)?);
    }
    Ok(Claims { claims, sources })
});

pub(super) fn claims() -> Result<&'static Claims, &'static ClaimError> {
    COMMITTED.as_ref()
}
