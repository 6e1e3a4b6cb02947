//! Packages under Apple's own reader: coremltools builds every operation again and infers its types.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge_mil::Body;
use aneforge_mlpackage::write;
use serde_json::Value;
use std::collections::BTreeMap;

/// Writes packages and has coremltools check them: problems by package.
fn check(bodies: &BTreeMap<String, Body>) -> Option<BTreeMap<String, Value>> {
    aneforge_testkit::python()?;
    let folder = tempfile::tempdir().unwrap();
    for (name, body) in bodies {
        write(&[body], &folder.path().join(format!("{name}.mlpackage"))).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let answer = aneforge_testkit::oracle("check_packages.py", &[folder.path().to_str().unwrap()], "")?;
    Some(serde_json::from_str(&answer).unwrap())
}

fn problems(answers: &BTreeMap<String, Value>) -> Vec<String> {
    let of = |(name, answer): (&String, &Value)| {
        let problems = answer["problems"].as_array().unwrap();
        (!problems.is_empty()).then(|| format!("{name} ({}): {}", answer["opset"], answer["problems"]))
    };
    answers.iter().filter_map(of).collect()
}

#[test]
fn every_case_of_the_operator_table_is_what_coremltools_infers() {
    let bodies: BTreeMap<String, Body> =
        common::cases().map(|(op, case)| (format!("{}.{}", op.name, case.name), common::case_body(op, case).0)).collect();
    let Some(answers) = check(&bodies) else { return };
    assert_eq!(answers.len(), bodies.len());
    let problems = problems(&answers);
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), bodies.len(), problems.join("\n"));
}
