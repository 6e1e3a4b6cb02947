//! Lossless passes leave the exact outputs as they are, bit for bit.

use super::trace::Tracer;
use aneforge_compile::pass::{Context, Effect};
use aneforge_compile::pipeline::{PASSES, ordered, run_one};
use aneforge_compile::{CompileError, Notes, Rewrites};
use aneforge_core::Target;
use aneforge_mil::{Array, Body};

/// Runs the passes that a target needs one by one, and compares the outputs before and after each lossless one.
///
/// # Errors
/// The pass and the output that it changed; `None` inside where a pass refuses the program, which compiling reports.
pub(super) fn check(mut body: Body, target: &Target, inputs: &[(String, Array)]) -> Result<(), String> {
    let context = Context { target, rewrites: Rewrites::default() };
    let passes = ordered(PASSES).map_err(|error| error.to_string())?;
    let mut before = outputs(&body, inputs)?;
    for pass in passes.into_iter().filter(|pass| context.runs(pass)) {
        body = match run_one(pass, body, &context, &mut Notes::default()) {
            Ok(body) => body,
            Err(CompileError::Pass { pass, source }) => return Err(format!("pass {pass} left an illegal program: {source}")),
            Err(_) => return Ok(()),
        };
        let after = outputs(&body, inputs)?;
        let changed =
            before.iter().zip(&after).position(|(a, b)| !a.data.iter().zip(&b.data).all(|(a, b)| a.to_bits() == b.to_bits()));
        if let (Effect::Lossless, Some(output)) = (pass.effect, changed) {
            return Err(format!("pass {} changed output {output}: {:?} became {:?}", pass.name, before[output], after[output]));
        }
        before = after;
    }
    Ok(())
}

/// The outputs of a body as `reference` hands them back.
fn outputs(body: &Body, inputs: &[(String, Array)]) -> Result<Vec<Array>, String> {
    let tracer = Tracer::new(body)?;
    let trace = tracer.run(&ordered_inputs(body, inputs), &mut |_, _| ())?;
    Ok(tracer.outputs(&trace).into_iter().map(Array::rounded).collect())
}

/// Values of the inputs in the order of the body.
pub(super) fn ordered_inputs(body: &Body, inputs: &[(String, Array)]) -> Vec<Array> {
    let named = |name: &str| inputs.iter().find(|(given, _)| given == name).map(|(_, array)| array.clone());
    body.inputs.iter().filter_map(|&id| named(&body.value(id).name)).collect()
}
