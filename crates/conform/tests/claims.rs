//! The committed statements, held against counts that their sources print and against the operator tables.
#![allow(clippy::unwrap_used, reason = "tests")]

use aneforge_conform::claims::{Claim, Claims, Evidence, FAMILIES, Route, Status, Verdict};
use aneforge_core::Family;
use aneforge_mil::op::{Support, builtin, listed};
use aneforge_native::layer::unusable;
use aneforge_native::layers;
use std::collections::{BTreeMap, BTreeSet};

fn claims() -> &'static Claims {
    Claims::committed().unwrap()
}

/// Operators by verdict of one source on a family.
fn count(source: &str, family: Family) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for claim in claims().all().iter().filter(|claim| claim.source == source && claim.covers(family) && !claim.is_limit()) {
        *counts.entry(claim.verdict.word()).or_default() += 1;
    }
    counts
}

#[test]
fn the_tables_have_as_many_rows_of_each_kind_as_their_authors_count() {
    // The package's own summary of its catalogue: native, bridge, walled per chip.
    for (family, native, software, absent) in
        [(Family::A13, 113, 34, 40), (Family::A14, 124, 28, 35), (Family::A15, 131, 21, 35), (Family::A17, 131, 21, 35)]
    {
        let counts = count("catalog", family);
        assert_eq!((counts["native"], counts["bridged"], counts["absent"]), (native, software, absent), "{family}");
    }
    // The sweep counts 166 programs: 97 right, 19 that ran, 50 refused; that of classify and three with limits are not here.
    let counts = count("sweep", Family::A17);
    assert_eq!((counts["computes"], counts["runs"], counts["refused"]), (97, 17, 48));
    // The guide's matrix has 187 operators.
    assert_eq!(FAMILIES.map(|family| count("guide/a", family).values().sum::<usize>()), [187; 6]);
}

#[test]
fn the_sweep_and_the_catalogue_disagree_on_nineteen_operators() {
    let wanted = "argsort cast constexpr_affine_dequantize constexpr_cast constexpr_lut_to_sparse crop_resize cumsum gather \
                  gather_along_axis gather_nd identity random_uniform range_1d read_state reduce_argmax reduce_argmin reshape_like \
                  slice_by_index slice_update";
    assert_eq!(claims().disagreements("sweep", "catalog", Family::A17).join(" "), wanted);
}

#[test]
fn a_disagreement_keeps_every_side() {
    let support = claims().support("gather", Family::A17, Route::E5rt);
    assert_eq!(support.status, Status::Contradicted);
    let mut sides: Vec<_> = support.claims.iter().map(|claim| (claim.source.as_str(), claim.verdict)).collect();
    sides.sort_by_key(|side| side.0);
    assert_eq!(sides, [("catalog", Verdict::Native), ("guide/a", Verdict::Native), ("sweep", Verdict::Refused)]);
    // The same operator where the sweep had no chip: its two sources agree.
    assert_eq!(claims().support("gather", Family::A14, Route::E5rt).status, Status::Reported);
}

#[test]
fn limits_are_kept_apart_and_contradict_nothing() {
    let support = claims().support("cast", Family::A13, Route::E5rt);
    assert_eq!((support.status, support.verdict), (Status::Reported, Some(Verdict::Native)));
    assert!(support.limits.iter().any(|limit| limit.dtype.as_deref() == Some("int32") && limit.verdict == Verdict::Refused));
}

#[test]
fn emulated_means_that_a_published_figure_is_reproduced_for_the_family() {
    let status = |operator, family| claims().support(operator, family, Route::E5rt).status;
    assert_eq!(status("matmul", Family::A13), Status::Emulated);
    assert_eq!(status("conv", Family::A17), Status::Emulated);
    // No figure of an M3 is published, and those of gelu come out at their size alone.
    assert_eq!(status("matmul", Family::A15), Status::Reported);
    assert_eq!(status("gelu", Family::A13), Status::Reported);
    assert_eq!(status("no_such_operator", Family::A13), Status::Unknown);
    let figures = claims().support("matmul", Family::A13, Route::E5rt).figures;
    assert!(figures.iter().any(|figure| figure.workload == "gemm/N=512" && figure.chips == ["m1", "m1max"]));
}

#[test]
fn nothing_is_measured_without_an_evidence_file() {
    assert!(claims().all().iter().all(|claim| !claim.measured));
}

/// Differences between the support that a record or row states and the guide's matrix.
fn differences(name: &str, stated: &Support) -> Vec<String> {
    let differs = |family: Family| {
        let own = stated.standing(family.number());
        let guide = |claim: &&Claim| claim.source == "guide/a" && claim.covers(family) && !claim.is_limit();
        let theirs = claims().about(name).find(guide)?.verdict.word();
        (own.to_string() != theirs).then(|| format!("{name} is {own} on {family}, the guide says {theirs}"))
    };
    FAMILIES.into_iter().filter_map(differs).collect()
}

#[test]
fn support_in_the_operator_table_is_that_of_the_guide() {
    let records = builtin().all().into_iter().flat_map(|op| differences(op.name, &op.support));
    let names = listed().iter().flat_map(|row| differences(row.name, &row.support));
    let all: Vec<_> = records.chain(names).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn every_operator_and_layer_has_a_statement_and_every_statement_an_operator() {
    let mil = builtin().all().into_iter().map(|op| op.name).chain(listed().iter().map(|row| row.name));
    let layers = layers().iter().map(|layer| layer.op.name);
    let silent: Vec<_> = mil.clone().chain(layers.clone()).filter(|name| claims().about(name).next().is_none()).collect();
    assert!(silent.is_empty(), "nobody says anything of {silent:?}");
    let known: BTreeSet<&str> = mil.chain(layers).chain(unusable().iter().map(|row| row.name)).collect();
    let lost: Vec<_> = claims().operators().into_iter().filter(|name| !known.contains(name)).collect();
    assert!(lost.is_empty(), "in no table: {lost:?}");
}

fn report(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut report = serde_json::json!({
        "schema": 1, "version": "9.9.9", "device": "ane", "chip": "m3", "family": "A15", "route": "e5rt",
        "machine": {"os": "macos", "arch": "aarch64"}, "seed": 1, "seconds": 2.0,
        "totals": {"passed": 1, "failed": 0, "refused": 0, "unsupported": 0},
        "operators": [{
            "table": "mil", "name": "cumsum", "outcome": "pass",
            "totals": {"passed": 1, "failed": 0, "refused": 0, "unsupported": 0},
            "worst_error": 1e-4, "micros": 90.0, "claim": null, "uses": []
        }]
    });
    change(&mut report);
    report.to_string()
}

#[test]
fn evidence_from_an_engine_makes_an_operator_measured_on_its_family_alone() {
    let evidence = Evidence::parse("m3.json", &report(|_| ())).unwrap();
    let claims = claims().clone().with_evidence(&[evidence]);
    let support = claims.support("cumsum", Family::A15, Route::E5rt);
    assert_eq!((support.status, support.verdict), (Status::Measured, Some(Verdict::Computes)));
    assert!(support.claims.len() > 1, "the other statements stay");
    assert!(claims.source(&support.claims[0].source).unwrap().citation.contains("M3"));
    assert_ne!(claims.support("cumsum", Family::A14, Route::E5rt).status, Status::Measured);
}

#[test]
fn a_report_of_anything_but_an_engine_is_no_evidence() {
    for (change, word) in [
        ((|r| r["device"] = "emulator:m3".into()) as fn(&mut serde_json::Value), "emulator:m3"),
        (|r| r["machine"]["os"] = "linux".into(), "linux"),
        (|r| r["chip"] = "m99".into(), "chip"),
        (|r| r["family"] = "A13".into(), "family"),
        (|r| r["route"] = serde_json::Value::Null, "route"),
        (|r| r["schema"] = 2.into(), "version 2"),
        (|r| r["operators"] = 3.into(), "no report"),
    ] {
        let error = Evidence::parse("file.json", &report(change)).unwrap_err().to_string();
        assert!(error.starts_with("file.json") && error.contains(word), "{error}");
    }
}
