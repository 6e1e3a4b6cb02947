//! Packages under Apple's own reader: coremltools builds every operation again and infers its types.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod common;

use aneforge_mil::Body;
use aneforge_mlpackage::{WriteError, write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Writes packages and has coremltools check them. Exactly the listed cases are refused by the writer.
fn check(bodies: &mut BTreeMap<String, Body>) -> Option<BTreeMap<String, Value>> {
    aneforge_testkit::python()?;
    let folder = tempfile::tempdir().unwrap();
    bodies.retain(|name, body| match write(&[body], &folder.path().join(format!("{name}.mlpackage"))) {
        Ok(_) => !common::REFUSED.contains(&name.as_str()) || panic!("{name} was written"),
        Err(WriteError::Limit { .. } | WriteError::Operator { .. }) if common::REFUSED.contains(&name.as_str()) => false,
        Err(error) => panic!("{name}: {error}"),
    });
    let answer = aneforge_testkit::oracle("check_packages.py", &[folder.path().to_str().unwrap()], "")?;
    Some(serde_json::from_str(&answer).unwrap())
}

fn assert_all_are_valid(bodies: &BTreeMap<String, Body>, answers: &BTreeMap<String, Value>) {
    let sum = |field: &str| answers.values().filter_map(|answer| answer[field].as_u64()).sum::<u64>();
    let of = |(name, answer): (&String, &Value)| {
        let problems = answer["problems"].as_array().unwrap();
        (!problems.is_empty()).then(|| format!("{name} ({}): {}", answer["opset"], answer["problems"]))
    };
    let problems: Vec<String> = answers.iter().filter_map(of).collect();
    println!("{} packages, {} operations, {} types, {} blobs", answers.len(), sum("operations"), sum("types"), sum("blobs"));
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), bodies.len(), problems.join("\n"));
    assert_eq!(answers.len(), bodies.len());
    assert!(sum("types") >= bodies.len() as u64 && sum("blobs") > 0);
}

#[test]
fn every_case_of_the_operator_table_is_what_coremltools_infers() {
    let named = |(op, case): (&'static aneforge_mil::op::MilOp, &'static aneforge_mil::op::Case)| {
        (format!("{}.{}", op.name, case.name), common::case_body(op, case).0)
    };
    let mut bodies: BTreeMap<String, Body> = common::cases().map(named).collect();
    let Some(answers) = check(&mut bodies) else { return };
    assert_all_are_valid(&bodies, &answers);
    let opsets: BTreeSet<_> = answers.values().map(|answer| answer["opset"].as_str().unwrap()).collect();
    assert!(opsets.is_superset(&["CoreML6", "CoreML7", "CoreML8"].into()), "{opsets:?}");
}

#[test]
fn every_case_of_the_graph_operators_is_what_coremltools_infers() {
    let mut bodies: BTreeMap<String, Body> = common::graph_cases().into_iter().map(|(name, body, _)| (name, body)).collect();
    let Some(answers) = check(&mut bodies) else { return };
    assert_all_are_valid(&bodies, &answers);
}

#[test]
fn functions_of_one_package_are_what_coremltools_infers() {
    let named = |name: &str, (op, case)| Body { name: name.to_string(), ..common::case_body(op, case).0 };
    let find = |name: &str| common::cases().find(|(op, _)| op.name == name).unwrap();
    let (main, other) = (named("main", find("linear")), named("other", find("relu")));
    let folder = tempfile::tempdir().unwrap();
    let opset = write(&[&main, &other], &folder.path().join("both.mlpackage")).unwrap().opset;
    assert_eq!(opset.package_name(), "CoreML8");
    if aneforge_testkit::python().is_none() {
        return;
    }
    let answer = aneforge_testkit::oracle("check_packages.py", &[folder.path().to_str().unwrap()], "").unwrap();
    let both = &serde_json::from_str::<Value>(&answer).unwrap()["both"];
    assert_eq!(both["problems"], serde_json::json!([]));
    assert_eq!(both["operations"], main.operations.len() + other.operations.len());
}
