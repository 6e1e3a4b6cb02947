//! The suite on the devices: reduced here, whole in the run of all checks.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use aneforge_conform::report::{Outcome, Place, Report, Table};
use aneforge_conform::suite::{Options, Suite, SuiteError};
use aneforge_core::GraphOp;
use aneforge_core::op::{Case, direct, drawn};
use aneforge_mil::op::family::{map, unary};
use aneforge_mil::op::{Arithmetic, MilOp, sample};
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace, Source};
use aneforge_testkit::fake;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

/// Everything that is not as it should be, one line each.
fn faults(report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    for operator in &report.operators {
        for usage in operator.uses.iter().filter(|usage| matches!(usage.outcome, Outcome::Fail | Outcome::Refused)) {
            let reason = usage.reason.as_deref().unwrap_or_default();
            faults.push(format!(
                "{} {}, {} ({:?}), {}: {reason}",
                operator.table.word(),
                operator.name,
                usage.case,
                usage.origin,
                usage.outcome.word()
            ));
        }
    }
    faults
}

#[test]
fn a_run_that_would_go_on_where_nothing_is_does_not_pass() {
    let relu = aneforge_mil::op::builtin().get("relu").unwrap();
    let suite = Suite::of(&[], &[relu]);
    for from in [Place { operator: 1, usage: 0 }, Place { operator: usize::MAX, usage: 0 }, Place { operator: 0, usage: 100_000 }] {
        let error = suite.run("reference", &Options { from, ..Options::default() }, &mut |_| ()).unwrap_err();
        assert!(matches!(error, SuiteError::From { operator, .. } if operator == from.operator), "{error}");
        assert!(error.to_string().contains("counted from 0"), "{error}");
    }
}

/// Runs the suite with fewer generated uses, or the whole one where the environment asks for it.
fn conforms(device: &str) {
    let whole = std::env::var_os("ANEFORGE_WHOLE_SUITE").is_some();
    let options = if whole { Options::default() } else { Options { reseeded: 1, reshaped: 1, ..Options::default() } };
    let report = Suite::builtin().run(device, &options, &mut |_| ()).unwrap();
    println!("{device}: {:?} in {:.1} s", report.totals, report.seconds);
    let faults = faults(&report);
    assert!(faults.is_empty(), "{} faults on {device}:\n{}", faults.len(), faults.join("\n"));
    assert!(report.is_green() && report.totals.passed > 500);
    // Records whose every use is refused have no case; all others are used.
    let refused = |name: &str| aneforge_core::op::find(name).is_some_and(|op| op.cases.is_empty());
    let unused = report.operators.iter().filter(|operator| operator.uses.is_empty());
    let idle: Vec<_> = unused.map(|operator| operator.name.as_str()).filter(|name| !refused(name)).collect();
    assert!(idle.is_empty(), "operators without a use: {idle:?}");
}

#[test]
fn the_reference_conforms() {
    conforms("reference");
}

#[test]
fn the_cpu_conforms() {
    conforms("cpu");
}

#[test]
fn the_emulator_of_m1_conforms() {
    conforms("emulator:m1");
}

#[test]
fn the_emulator_of_m2_conforms() {
    conforms("emulator:m2");
}

#[test]
fn the_emulator_of_m4_conforms() {
    conforms("emulator:m4");
}

#[test]
fn the_emulator_of_m5_conforms() {
    conforms("emulator:m5");
}

/// Runs the suite through the stand-in for Apple's frameworks: everything conforms, with the bits of the emulator of the chip.
fn engine_conforms(route: AneRoute, chip: &str, profile: &str) {
    fake::set(json!({ "chip": chip, "profile": profile, "limits": { "compiles": 1_000_000 } }));
    let cache = tempfile::tempdir().unwrap();
    // The limit of compilations of a process is no part of what is asked here.
    let options = AneOptions {
        source: Source::Library(fake::library()),
        route,
        cache: CachePlace::Folder(cache.path().to_path_buf()),
        compilations: usize::MAX,
        ..AneOptions::default()
    };
    let whole = std::env::var_os("ANEFORGE_WHOLE_SUITE").is_some();
    let twin = Some(format!("emulator:{chip}"));
    let uses = if whole { Options { twin, ..Options::default() } } else { Options { twin, ..Options::written_only() } };
    let report = Suite::builtin().run_on(Arc::new(Ane::open(options).unwrap()), &uses, &mut |_| ()).unwrap();
    println!("{chip} {profile} {route:?}: {:?} in {:.1} s", report.totals, report.seconds);
    let faults = faults(&report);
    assert!(faults.is_empty(), "{} faults on {chip} {profile} {route:?}:\n{}", faults.len(), faults.join("\n"));
    assert!(report.is_green() && report.totals.passed > 200, "{:?}", report.totals);
    assert_eq!(fake::counters()["violations"], json!([]));
}

#[test]
fn the_engine_conforms_through_e5rt_under_strict_rules() {
    engine_conforms(AneRoute::E5rt, "m1", "strict");
}

#[test]
fn the_engine_conforms_through_e5rt_under_agreed_rules() {
    engine_conforms(AneRoute::E5rt, "m5", "agreed");
}

#[test]
fn the_engine_conforms_in_memory_under_strict_rules() {
    engine_conforms(AneRoute::InMemory, "m1", "strict");
}

#[test]
fn the_engine_conforms_in_memory_under_agreed_rules() {
    engine_conforms(AneRoute::InMemory, "m5", "agreed");
}

/// Something of one's own: `max(x, 0) + x`.
static DOUBLED_RELU: GraphOp = GraphOp {
    lower: |lowering, site| {
        let x = site.value("x")?;
        let positive = lowering.op("relu", &[("x", x.into())])?;
        Ok(vec![lowering.op("add", &[("x", positive.into()), ("y", x.into())])?])
    },
    cases: &[Case::shape("on_a_matrix", &[drawn("x", &[3, 5])], &[], &[3, 5])],
    ..direct("doubled_relu", "max(x, 0) + x.")
};

#[test]
fn an_operator_from_outside_passes_the_same_gate() {
    for device in ["reference", "cpu", "emulator:m1", "emulator:m5"] {
        let report = Suite::of(&[&DOUBLED_RELU], &[]).run(device, &Options::default(), &mut |_| ()).unwrap();
        assert!(report.is_green(), "{:?}", faults(&report));
        let origins: HashSet<_> = report.operators[0].uses.iter().map(|usage| usage.origin).collect();
        assert_eq!(origins.len(), 4, "written, reseeded, edges and reshaped: {origins:?}");
    }
}

/// A record that says something else than every device does for that keyword.
static WRONG_RELU: MilOp = MilOp {
    meaning: |a| map(a, |x| if x > 0.0 { x * 1.01 } else { 0.0 }),
    cases: &[aneforge_mil::op::Case::oracle("on_a_matrix", &[("x", sample(&[3, 5], 1))])],
    ..unary("relu", "Wrong by a hundredth.", |a| map(a, |x| x))
};

/// A copy that is not one: off by the smallest step of fp16 near 1.
static NEARLY_COPIED: MilOp = MilOp {
    arithmetic: Arithmetic::Copy,
    meaning: |a| map(a, |x| x * (1.0 + 1.0 / 1024.0)),
    cases: &[aneforge_mil::op::Case::oracle("on_a_matrix", &[("x", sample(&[3, 5], 1))])],
    ..unary("identity", "Nearly x.", |a| map(a, |x| x))
};

#[test]
fn a_result_off_by_more_than_the_tolerance_fails_and_so_does_a_copy_off_by_one_bit() {
    for op in [&WRONG_RELU, &NEARLY_COPIED] {
        let report = Suite::of(&[], &[op]).run("cpu", &Options::default(), &mut |_| ()).unwrap();
        assert!(!report.is_green() && report.totals.passed == 0, "{}: {:?}", op.name, report.totals);
        let reason = report.operators[0].uses[0].reason.as_deref().unwrap();
        assert!(reason.contains("off") && reason.contains("wanted"), "{reason}");
    }
}

#[test]
fn what_a_chip_lacks_by_all_claims_is_not_run_on_it() {
    let options = Options { filter: Some("crop_resize".to_string()), ..Options::default() };
    let outcome = |device: &str| {
        let report = Suite::builtin().run(device, &options, &mut |_| ()).unwrap();
        assert!(report.is_green());
        report.operators.iter().find(|operator| operator.table == Table::Mil).unwrap().outcome
    };
    assert_eq!(
        [outcome("emulator:m1"), outcome("emulator:m2"), outcome("cpu")],
        [Outcome::Unsupported, Outcome::Pass, Outcome::Pass]
    );
}

#[test]
fn a_filter_that_finds_nothing_and_a_device_that_is_not_there_are_errors() {
    let options = Options { filter: Some("frobnicate".to_string()), ..Options::default() };
    let error = Suite::builtin().run("cpu", &options, &mut |_| ()).unwrap_err();
    assert!(matches!(&error, SuiteError::Nothing { .. }) && error.to_string().contains("frobnicate"));
    assert!(matches!(Suite::builtin().run("nowhere", &options, &mut |_| ()), Err(SuiteError::Device(_))));
}
