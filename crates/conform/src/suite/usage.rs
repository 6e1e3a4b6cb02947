//! One use of an operator, ready to be compiled: how it is written down, its inputs and what should come out.

use crate::report::Origin;
use aneforge_core::{Tensor, evaluate};
use aneforge_mil::{Array, Body};

/// A use with its exact results.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) case: String,
    pub(super) origin: Origin,
    pub(super) form: Form,
    /// Inputs by name.
    pub(super) inputs: Vec<(String, Array)>,
    /// Exact results, rounded once to their types.
    pub(super) wanted: Vec<Array>,
    /// Tolerance of the record.
    pub(super) tolerance: f64,
}

/// How a use is written down.
#[derive(Debug)]
pub(super) enum Form {
    /// MIL as it is to be run.
    Body(Body),
    /// A network of the engine's own layers.
    Net(Body),
    /// To be lowered for the target; the body is that of the generic target.
    Graph(Vec<(String, Tensor)>, Body),
    /// It could not even be written down, which a written case must not do.
    Faulty(String),
}

/// Results of this magnitude are infinite on some devices, so no generated use may reach it.
const LARGEST: f64 = 32768.0;

/// The f64 meaning of a body on named inputs.
pub(super) fn meaning(body: &Body, inputs: &[(String, Array)]) -> Result<Vec<Array>, String> {
    let array = |name: &str| inputs.iter().find(|(known, _)| known == name).map(|(_, array)| array.clone());
    let arrays: Option<Vec<Array>> = body.inputs.iter().map(|&id| array(&body.value(id).name)).collect();
    evaluate(body, &arrays.unwrap_or_default()).map_err(|error| error.to_string())
}

impl Use {
    /// A use of a body. `None` for a generated use that tests nothing: an illegal one, one whose results leave the range of the
    /// engine, or one so steep that rounding the inputs alone moves its results by more than the tolerance.
    pub(super) fn of(case: &str, origin: Origin, form: Form, inputs: Vec<(String, Array)>, tolerance: f64) -> Option<Self> {
        let usage = |form, wanted| Self { case: case.to_string(), origin, form, inputs: inputs.clone(), wanted, tolerance };
        let body = match &form {
            Form::Body(body) | Form::Net(body) | Form::Graph(_, body) => body,
            Form::Faulty(_) => return (origin == Origin::Written).then(|| usage(form, Vec::new())),
        };
        let wanted = match meaning(body, &inputs) {
            Ok(wanted) => wanted,
            Err(_) if origin != Origin::Written => return None,
            Err(problem) => return Some(usage(Form::Faulty(problem), Vec::new())),
        };
        if origin != Origin::Written && !(tame(&wanted) && steady(body, &inputs, &wanted, tolerance)) {
            return None;
        }
        Some(usage(form, wanted.into_iter().map(Array::rounded).collect()))
    }
}

fn tame(results: &[Array]) -> bool {
    results.iter().filter(|array| array.ty.dtype.is_float()).all(|array| array.data.iter().all(|value| value.abs() < LARGEST))
}

/// Whether inputs that differ by half a unit of fp16 give results within the tolerance. Exact operators need not be smooth.
fn steady(body: &Body, inputs: &[(String, Array)], wanted: &[Array], tolerance: f64) -> bool {
    if tolerance == 0.0 {
        return true;
    }
    let moved = |sign: f64| -> Vec<(String, Array)> {
        let shifted = |array: &Array| {
            let mut array = array.clone();
            if array.ty.dtype.is_float() {
                let shift =
                    |(index, value): (usize, &mut f64)| *value *= 1.0 + sign * if index % 2 == 0 { 1.0 } else { -1.0 } / 2048.0;
                array.data.iter_mut().enumerate().for_each(shift);
            }
            array
        };
        inputs.iter().map(|(name, array)| (name.clone(), shifted(array))).collect()
    };
    [1.0, -1.0].into_iter().all(|sign| {
        let results = meaning(body, &moved(sign)).unwrap_or_default();
        results.len() == wanted.len()
            && results.iter().zip(wanted).all(|(got, wanted)| super::compare::difference(got, wanted) <= 2.0 * tolerance.max(1e-3))
    })
}
