//! Random graphs over the operator table agree on all devices, the graphs that once did not still do, and the search finds faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use aneforge_conform::generate::{Campaign, Case, Draw, Flavour, Mode, Node, Place, Recipe, Tally, generate, shrink};
use aneforge_core::op::{self, Case as Example, GraphOp, direct, drawn};
use aneforge_core::{Attribute, DType, Target, TensorType};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Operators that a program's text can hold: native layers stand in networks of their own.
fn builtin() -> &'static [&'static GraphOp] {
    static TEXT: LazyLock<Vec<&'static GraphOp>> =
        LazyLock::new(|| op::builtin().iter().copied().filter(|op| !op.is_native()).collect());
    &TEXT
}

/// Seed of the graphs below. `make fuzz` takes others.
const SEED: u64 = 20_260_801;

/// Operators with examples that graphs need not reach, each with its reason.
const NOT_REACHED: &[(&str, &str)] = &[];

fn agree(part: u64) {
    let (tally, failures) = Campaign::new(builtin()).run(SEED + part * 500, 500, 1, &mut |_| true);
    for failure in &failures {
        eprintln!("seed {}: {}: {}", failure.seed, failure.finding.stage, failure.finding.problem);
        eprintln!("{}", failure.case.as_deref().unwrap_or(""));
    }
    assert!(failures.is_empty(), "{} findings", failures.len());
    assert!(tally.exact > 1000 && tally.bounded > 500 && tally.edge > 50, "{}", tally.report());
}

#[test]
fn graphs_agree_on_all_devices_first_quarter() {
    agree(0);
}

#[test]
fn graphs_agree_on_all_devices_second_quarter() {
    agree(1);
}

#[test]
fn graphs_agree_on_all_devices_third_quarter() {
    agree(2);
}

#[test]
fn graphs_agree_on_all_devices_last_quarter() {
    agree(3);
}

#[test]
fn every_operator_is_reached() {
    let mut tally = Tally::default();
    for seed in SEED..SEED + 2000 {
        let _ = generate(seed, builtin(), Campaign::mode(seed), &mut tally);
    }
    // An operator without an example is one whose every use is an error that says what to do instead.
    let usable: Vec<&'static GraphOp> = builtin().iter().copied().filter(|op| !op.cases.is_empty()).collect();
    let reasons: Vec<&str> = NOT_REACHED.iter().map(|(name, _)| *name).collect();
    assert_eq!(tally.unreached(&usable), reasons, "the list of operators that are not reached is kept exact");
}

#[test]
fn every_graph_that_once_failed_passes() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/corpus/graphs"));
    let campaign = Campaign::new(builtin());
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "graph") {
            let text = std::fs::read_to_string(&path).unwrap();
            if let Err(finding) = campaign.case(&text, &mut Tally::default()) {
                panic!("{}: {}: {}", path.display(), finding.stage, finding.problem);
            }
            cases += 1;
        }
    }
    assert!(cases > 0);
}

#[test]
fn the_same_seed_draws_the_same_graph() {
    for seed in [1, 2, 10] {
        let text =
            || Case::new(&generate(seed, builtin(), Campaign::mode(seed), &mut Tally::default()), Campaign::mode(seed), chip());
        assert_eq!(text().unwrap().to_string(), text().unwrap().to_string());
    }
}

fn chip() -> &'static aneforge_core::Chip {
    &aneforge_core::chips()[0]
}

#[test]
fn a_case_reads_back_as_it_was_written() {
    let recipe = generate(7, builtin(), Mode::Whole, &mut Tally::default());
    let case = Case::new(&recipe, Mode::Whole, chip()).unwrap();
    let again = Case::parse(&case.to_string()).unwrap();
    assert_eq!((again.mode, again.chip.name, &again.draws), (case.mode, case.chip.name, &case.draws));
    let (inputs, built) = (again.subject(&[]).unwrap().inputs, recipe.build().unwrap());
    assert_eq!(inputs, built.inputs.iter().map(|(name, ty, draw)| (name.clone(), draw.array(ty))).collect::<Vec<_>>());
}

#[test]
fn a_case_that_cannot_be_read_says_why() {
    for (text, part) in [
        ("#! mood whole", "line 1"),
        ("#! mode whole\n#! chip m0", "line 2"),
        ("#! input \"x\" seed 1 from nan to 2 real", "line 1"),
        ("#! chip m1", "#! mode"),
        ("#! mode edge", "#! chip"),
    ] {
        let error = Case::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let text = "#! mode real\n#! chip m1\n%0 = input \"a\" tensor<fp16, [2]>\noutput \"y\" = %0\n";
    let error = Case::parse(text).unwrap().subject(&[]).unwrap_err().to_string();
    assert!(error.contains("\"a\""), "{error}");
}

/// The magnitude for chips, the positive part for everything else: a fault that only a comparison of targets shows.
static TWO_FACED: GraphOp = GraphOp {
    lower: |lowering, site| {
        let name = if lowering.target() == Target::Generic { "relu" } else { "abs" };
        lowering.ops(name, &[("x", site.value("x")?.into())])
    },
    tolerance: 0.0,
    cases: &[Example::shape("matrix", &[drawn("x", &[2, 3])], &[], &[2, 3])],
    ..direct("two_faced", "Not the same everywhere.")
};

#[test]
fn an_operator_with_two_meanings_is_found_and_the_graph_made_small() {
    let mut operators = builtin().to_vec();
    operators.extend([&TWO_FACED; 20]);
    let (_, failures) = Campaign::new(&operators).run(SEED, 60, 1, &mut |_| true);
    let failure = failures.iter().find(|failure| failure.case.is_some()).expect("found");
    assert!(failure.finding.stage.contains("against the generic program"), "{failure:?}");
    let case = failure.case.clone().unwrap();
    let uses = case.lines().filter(|line| line.contains("->")).count();
    assert!(uses <= 2 && case.contains("two_faced("), "{case}");
    // What was written fails again, and in the same way.
    let again = Campaign::new(&operators).case(&case, &mut Tally::default()).unwrap_err();
    assert_eq!(again.stage, failure.finding.stage);
}

/// Works, but never at the fourth axis.
static PANICS: GraphOp = GraphOp {
    lower: |lowering, site| {
        assert!(lowering.target() == Target::Generic, "a panic on purpose");
        lowering.ops("relu", &[("x", site.value("x")?.into())])
    },
    cases: TWO_FACED.cases,
    ..direct("panics", "Not everywhere.")
};

#[test]
fn a_panic_is_a_finding_and_does_not_end_the_run() {
    let (tally, failures) = Campaign::new(&[&PANICS, &op::RELU]).run(SEED, 10, 1, &mut |_| true);
    assert!(failures.len() > 2 && failures.len() < 11 && tally.graphs + failures.len() == 10, "{failures:?}");
    assert!(failures[0].finding.stage.contains("panic in lowering"), "{failures:?}");
    assert!(failures[0].finding.problem.contains("on purpose"));
}

#[test]
fn shrinking_keeps_what_is_needed_and_nothing_else() {
    let recipe = chain();
    let transposes = |recipe: &Recipe| recipe.operators().any(|op| op.name == "transpose");
    let small = shrink(&recipe, &mut |candidate| transposes(candidate));
    assert_eq!(small.operators().map(|op| op.name).collect::<Vec<_>>(), ["transpose"]);
    let Node::Input { ty, .. } = &small.nodes[0] else { panic!("{small:?}") };
    assert_eq!((ty.shape.as_slice(), small.outputs.len()), (&[1, 1][..], 1));
}

/// relu, transpose, and the sum of both ends of it, on a matrix.
fn chain() -> Recipe {
    let draw = Draw { seed: 1, low: -2.0, high: 2.0, flavour: Flavour::Real };
    let at = |node| Place { node, result: 0 };
    let apply =
        |op, from: &[usize], attributes| Node::Apply { op, inputs: from.iter().map(|&node| vec![at(node)]).collect(), attributes };
    let perm = vec![("perm", Attribute::from(vec![1i64, 0]))];
    Recipe {
        nodes: vec![
            Node::Input { ty: TensorType::new(DType::Fp16, [4, 4]), draw },
            apply(&op::RELU, &[0], vec![]),
            apply(&op::TRANSPOSE, &[1], perm),
            apply(&op::ADD, &[1, 2], vec![]),
        ],
        outputs: vec![at(3), at(1)],
    }
}
