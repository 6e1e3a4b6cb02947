//! Every rule that a profile holds has a smallest program that it refuses and a neighbour that it lets pass.
#![allow(clippy::unwrap_used)]

use super::{Rule, Setting, Standing, Way, all, check_body, check_surfaces};
use crate::diagnostics::taken;
use crate::engine::compile_file;
use crate::interface::{Options, Route};
use crate::settings;
use aneforge_core::Chip;
use aneforge_mil::{Body, Constant, DType, Operand, TensorType};
use aneforge_native::layer;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A rule's programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    rule: String,
    trips: String,
    passes: String,
}

fn cases() -> Vec<Case> {
    #[derive(Deserialize)]
    struct File {
        case: Vec<Case>,
    }
    toml::from_str::<File>(include_str!("../../rules/cases.toml")).unwrap().case
}

/// The whole text of a program of the file.
fn program(text: &str) -> String {
    if text.starts_with("program") {
        return text.to_string();
    }
    let ones = vec!["1.0"; 1024].join(", ");
    let gamma = format!("tensor<fp16, [1024]> g = const()[name = string(\"g\"), val = tensor<fp16, [1024]>([{ones}])];");
    format!("program(1.3)\n{{\nfunc main<ios18>({text});\n}}\n").replace("GAMMA1024", &gamma)
}

fn route(way: Way) -> Route {
    match way {
        Way::E5rt => Route::E5rt,
        Way::InMemory => Route::InMemory,
        Way::Client => Route::Client,
    }
}

/// A chip of the rule's families.
fn chip(rule: &Rule) -> &'static str {
    match rule.families.first() {
        Some(13) => "m1",
        Some(14) => "m2",
        Some(15) => "m3",
        _ => "m5",
    }
}

fn choose(chip: &str, profile: &str) {
    settings::change(&format!("{{\"chip\": {chip:?}, \"profile\": {profile:?}}}")).unwrap();
    taken();
}

struct Folder(PathBuf);

impl Folder {
    fn new(text: &str) -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("fake-apple-rules-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("model.mil"), text).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Which rule refused the text, `Some("")` where it was refused by something else.
fn refusal(text: &str, way: Way) -> Option<String> {
    let folder = Folder::new(text);
    let compiled = compile_file(&folder.0.join("model.mil"), route(way), &Options::default());
    let lines = taken().join("\n");
    let named = lines.split("(rule ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string();
    match compiled {
        Ok(_) => None,
        Err(_) if named.is_empty() => Some(format!("no rule: {lines}")),
        Err(_) => Some(named),
    }
}

/// The programs of a case, under every way and both profiles; what is not as it should be.
fn check(case: &Case, rule: &Rule) -> Vec<String> {
    let [trips, passes] = [&case.trips, &case.passes].map(|text| program(text));
    let held = if rule.standing == Standing::Agreed { "agreed" } else { "strict" };
    let mut faults = Vec::new();
    let mut expect = |chip: &str, profile: &str, text: &str, way: Way, wanted: fn(&Option<String>, &str) -> bool| {
        choose(chip, profile);
        let found = refusal(text, way);
        if !wanted(&found, &case.rule) {
            let which = if text == passes { "the neighbour" } else { "the program" };
            faults.push(format!("{} on {chip} through {way:?}, {profile}: {which} got {found:?}", case.rule));
        }
    };
    for &way in &rule.routes {
        expect(chip(rule), held, &trips, way, |found, rule| found.as_deref() == Some(rule));
        expect(chip(rule), held, &passes, way, |found, _| found.is_none());
        if rule.standing == Standing::Disputed {
            expect(chip(rule), "agreed", &trips, way, |found, rule| found.as_deref() != Some(rule));
        }
        if !rule.families.is_empty() {
            expect("m5", "strict", &trips, way, |found, rule| found.as_deref() != Some(rule));
        }
    }
    faults
}

/// Rules that no text of a function shows, each with a test of its own below.
const OTHERS: [&str; 12] = [
    "attention-mask",
    "constants-2-gib",
    "bf16-inputs",
    "small-surface",
    "unequal-inputs",
    "unequal-outputs",
    "top-3-and-4",
    "top-k-m1",
    "sort-m1",
    "dynamic-slice-m1",
    "local-response-norm-m1",
    "dropout-m1-m2",
];

#[test]
fn every_rule_refuses_its_program_and_not_the_neighbour() {
    let rules = all().unwrap();
    let cases = cases();
    let tried: BTreeSet<&str> = cases.iter().map(|case| case.rule.as_str()).chain(OTHERS).collect();
    let held: BTreeSet<&str> = rules.iter().filter(|rule| rule.standing != Standing::Kept).map(|rule| rule.id.as_str()).collect();
    assert_eq!(tried, held);
    let faults: Vec<String> =
        cases.iter().flat_map(|case| check(case, rules.iter().find(|rule| rule.id == case.rule).unwrap())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_rule_says_who_says_so_and_no_two_share_a_name() {
    let rules = all().unwrap();
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(names.len(), rules.len());
    for rule in rules {
        assert!(!rule.source.is_empty() && !rule.routes.is_empty(), "{}", rule.id);
        assert_eq!(rule.why.is_empty(), rule.standing == Standing::Agreed, "{}: why", rule.id);
        assert!(rule.families.iter().all(|family| (13..=18).contains(family)), "{}", rule.id);
    }
}

#[test]
fn rules_that_are_kept_refuse_nothing() {
    choose("m1", "strict");
    let attention = "tensor<fp16, [1, 2, 8, 24]> q, tensor<fp16, [1, 2, 24, 8]> k) {
        bool f = const()[name = string(\"f\"), val = bool(false)];
        int32 a = const()[name = string(\"a\"), val = int32(-1)];
        tensor<fp16, [1, 2, 8, 8]> s = matmul(x = q, y = k, transpose_x = f, transpose_y = f)[name = string(\"s\")];
        tensor<fp16, [1, 2, 8, 8]> p = softmax(x = s, axis = a)[name = string(\"p\")];
    } -> (p";
    for way in [Way::E5rt, Way::InMemory, Way::Client] {
        assert_eq!(refusal(&program(attention), way), None);
    }
}

#[test]
fn surfaces_are_compared_when_a_request_is_evaluated() {
    let broken = |inputs: &[usize], outputs: &[usize], route: Route| {
        check_surfaces(&Setting::new(Chip::find("m4").unwrap(), route), inputs, outputs).err().map(|fault| {
            assert!(fault.text.contains("status=0x1d"), "{fault:?}");
            taken().join("").split("(rule ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string()
        })
    };
    choose("m4", "strict");
    for route in [Route::InMemory, Route::Client] {
        assert_eq!(broken(&[49_152, 49_152], &[65_536, 65_536], route), None);
        assert_eq!(broken(&[49_151], &[49_152], route).as_deref(), Some("small-surface"));
        assert_eq!(broken(&[49_152, 65_536], &[49_152], route).as_deref(), Some("unequal-inputs"));
        assert_eq!(broken(&[49_152], &[65_536, 49_152], route).as_deref(), Some("unequal-outputs"));
    }
    assert_eq!(broken(&[64, 128], &[64], Route::E5rt), None);
    choose("m4", "agreed");
    assert_eq!(broken(&[64, 128], &[64, 32], Route::InMemory), None);
}

/// A function of one native layer.
fn native(name: &str, shape: [usize; 4], numbers: &[(&str, f64)]) -> Body {
    let op = &layer::find(name).unwrap().op;
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let ty = TensorType::new(DType::Fp16, shape);
    let x = body.add_input("x", ty.clone());
    let mut operands = vec![Operand::Absent; op.ports.len()];
    operands[op.port("x").unwrap()] = Operand::One(x);
    for (port, number) in numbers {
        let id = body.add_constant(*port, TensorType::new(DType::Int32, []), Constant::Values(vec![*number]));
        operands[op.port(port).unwrap()] = Operand::One(id);
    }
    let results = body.add_operation(op, operands, vec![("y".to_string(), ty)]);
    body.outputs = vec![aneforge_mil::Output { name: "y".to_string(), value: results[0] }];
    body
}

#[test]
fn native_layers_are_refused_where_they_were_seen_refused() {
    let refused = |chip: &str, body: Body| {
        choose(chip, "strict");
        let refused = check_body(&Setting::new(Chip::find(chip).unwrap(), Route::InMemory), body).err();
        refused.map(|_| {
            taken().join("").split("(rule ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string()
        })
    };
    let shape = [1, 8, 1, 16];
    for chip in ["m1", "m5"] {
        assert_eq!(refused(chip, native("TopK", shape, &[("K", 3.0)])).as_deref(), Some("top-3-and-4"));
    }
    assert_eq!(refused("m1", native("TopK", shape, &[("K", 2.0)])).as_deref(), Some("top-k-m1"));
    assert_eq!(refused("m5", native("TopK", shape, &[("K", 2.0)])), None);
    for (name, rule) in [("Sort", "sort-m1"), ("DynamicSlice", "dynamic-slice-m1"), ("Dropout", "dropout-m1-m2")] {
        assert_eq!(refused("m1", native(name, shape, &[])).as_deref(), Some(rule));
        assert_eq!(refused("m5", native(name, shape, &[])), None, "{name}");
    }
    let lrn = |channels| native("LocalResponseNormalization", [1, channels, 4, 4], &[]);
    assert_eq!(refused("m1", lrn(16)).as_deref(), Some("local-response-norm-m1"));
    assert_eq!((refused("m1", lrn(15)), refused("m5", lrn(16))), (None, None));
}

#[test]
fn constants_of_more_than_two_gib_are_refused() {
    let stored = |rows: usize| {
        let ty = TensorType::new(DType::Fp16, [rows, 32768, 1, 1]);
        let none: aneforge_mil::Compute = std::sync::Arc::new(|_| Ok(()));
        let mut body = native("Dropout", [1, 1, 1, 1], &[]);
        body.add_constant("w", ty.clone(), Constant::Weight(aneforge_mil::Weight::computed(ty.shape.clone(), none)));
        choose("m5", "agreed");
        check_body(&Setting::new(Chip::find("m5").unwrap(), Route::E5rt), body).is_err()
    };
    assert_eq!((stored(32768), stored(32769)), (false, true));
}

#[test]
fn the_mask_of_an_attention_makes_no_difference_in_memory() {
    let op = aneforge_mil::op::builtin().get("scaled_dot_product_attention").unwrap();
    let ty = TensorType::new(DType::Fp16, [1, 2, 8, 32]);
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let x = body.add_input("x", ty.clone());
    let mask = body.add_input("mask", TensorType::new(DType::Fp16, [1, 1, 8, 8]));
    let mut operands = vec![Operand::One(x); 3];
    operands.resize(op.ports.len(), Operand::Absent);
    operands[op.port("attn_mask").unwrap()] = Operand::One(mask);
    body.add_operation(op, operands, vec![("y".to_string(), ty)]);
    choose("m5", "agreed");
    let masked = |route| {
        let body = check_body(&Setting::new(Chip::find("m5").unwrap(), route), body.clone()).unwrap();
        !body.operations[0].arguments[op.port("attn_mask").unwrap()].values().is_empty()
    };
    assert_eq!([Route::E5rt, Route::InMemory, Route::Client].map(masked), [true, false, false]);
}

#[test]
fn bf16_is_no_type_of_a_port() {
    choose("m5", "agreed");
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let x = body.add_input("x", TensorType::new(DType::Bf16, [1, 4]));
    body.outputs = vec![aneforge_mil::Output { name: "y".to_string(), value: x }];
    let fault = check_body(&Setting::new(Chip::find("m5").unwrap(), Route::InMemory), body).unwrap_err();
    assert_eq!(fault.text, "Unsupported function output dtype bf16");
}

#[test]
fn an_operator_that_the_table_refuses_for_a_family_is_refused_by_it() {
    let text = program("tensor<fp16, [1, 4]> x) { tensor<fp16, [1, 4]> y = sin(x = x)[name = string(\"y\")]; } -> (y");
    choose("m1", "agreed");
    assert!(refusal(&text, Way::E5rt).is_some_and(|found| found.contains("sin is gated on A13")));
    choose("m3", "agreed");
    assert_eq!(refusal(&text, Way::E5rt), None);
}
