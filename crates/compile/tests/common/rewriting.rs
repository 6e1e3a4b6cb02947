//! One rewrite at work on a program's text.

use super::{body, folder, inputs};
use aneforge_compile::pass::Context;
use aneforge_compile::pipeline::{PASSES, run_one};
use aneforge_compile::{Notes, Rewrite, Rewrites};
use aneforge_core::{Target, evaluate};
use aneforge_mil::{Array, Body};

/// A body after one rewrite, and what the rewrite says.
pub fn rewritten(text: &str, rewrite: Rewrite, target: &str, rewrites: Rewrites) -> (Body, Body, Notes) {
    let folder = folder();
    let target: Target = target.parse().expect("a target");
    let pass = PASSES.iter().find(|pass| pass.name == rewrite.name()).expect("a pass");
    let before = body(text, &folder);
    let mut notes = Notes::default();
    let after = run_one(pass, before.clone(), &Context { target: &target, rewrites }, &mut notes).expect("runs");
    after.verify().expect("legal");
    (before, after, notes)
}

/// Its operators in order.
pub fn ops(body: &Body) -> Vec<&'static str> {
    body.operations.iter().map(|operation| operation.op.name).collect()
}

/// Results on ordinary numbers, exact and as a device hands them back.
pub fn results(body: &Body) -> Vec<Array> {
    evaluate(body, &inputs(body)[0]).expect("runs")
}

/// The rewrite leaves the text alone and says why in these words.
pub fn kept(text: &str, rewrite: Rewrite, target: &str, rewrites: Rewrites, words: &str) {
    let (before, after, notes) = rewritten(text, rewrite, target, rewrites);
    assert!(before.same_computation(&after), "{:?}", ops(&after));
    let missed: Vec<_> = notes.all().iter().filter(|note| !note.applied).map(|note| note.text.as_str()).collect();
    match words {
        "" => assert!(missed.is_empty(), "{missed:?}"),
        words => assert!(missed.iter().any(|text| text.contains(words)), "{missed:?} without {words:?}"),
    }
}
