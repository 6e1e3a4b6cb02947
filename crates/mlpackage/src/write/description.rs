//! What a package says about its inputs and outputs.

use super::WriteError;
use crate::proto;
use aneforge_mil::{DType, Function, TensorType, Type};
use std::collections::HashMap;

/// What a function takes, gives and keeps.
pub struct Features {
    pub inputs: Vec<proto::FeatureDescription>,
    pub outputs: Vec<proto::FeatureDescription>,
    pub states: Vec<proto::FeatureDescription>,
}

/// Inputs, outputs and states of a function as multi-arrays.
pub fn features(function: &Function) -> Result<Features, WriteError> {
    let (states, inputs): (Vec<_>, Vec<_>) = function.inputs.iter().partition(|port| matches!(port.ty, Type::State(_)));
    let states = states.into_iter().map(|port| state(&port.name, port.ty.as_tensor()));
    let inputs = inputs.into_iter().map(|port| {
        let advice = "cast or reshape inside of the program";
        feature("input", &port.name, port.ty.as_tensor(), advice)
    });
    let made = function.body.iter().filter(|statement| statement.op != "const").flat_map(|statement| &statement.outputs);
    let results: HashMap<&str, _> = made.map(|port| (port.name.as_str(), &port.ty)).collect();
    let outputs = function.outputs.iter().map(|name| {
        let ty = results.get(name.as_str()).ok_or_else(|| WriteError::Passed { name: name.clone() })?;
        feature("output", name, ty.as_tensor(), "add a cast or a reshape before it")
    });
    Ok(Features {
        inputs: inputs.collect::<Result<_, _>>()?,
        outputs: outputs.collect::<Result<_, _>>()?,
        states: states.collect::<Result<_, _>>()?,
    })
}

/// A state: Core ML keeps fp16 alone.
fn state(name: &str, ty: Option<TensorType>) -> Result<proto::FeatureDescription, WriteError> {
    let advice = "keep fp16 and cast around reads and writes";
    if let Some(other) = ty.as_ref().filter(|ty| ty.dtype != DType::Fp16) {
        return Err(WriteError::Edge { edge: "state", name: name.to_string(), ty: other.to_string(), advice });
    }
    let mut feature = feature("state", name, ty, advice)?;
    if let Some(kind) = feature.ty.as_mut().map(|ty| &mut ty.kind)
        && let Some(proto::FeatureKind::Array(array)) = kind.take()
    {
        *kind = Some(proto::FeatureKind::State(proto::StateFeature { array: Some(array) }));
    }
    Ok(feature)
}

fn feature(
    edge: &'static str,
    name: &str,
    ty: Option<TensorType>,
    advice: &'static str,
) -> Result<proto::FeatureDescription, WriteError> {
    let shown = ty.as_ref().map_or_else(|| "no tensor".to_string(), ToString::to_string);
    let refuse = || WriteError::Edge { edge, name: name.to_string(), ty: shown.clone(), advice };
    let ty = ty.filter(|ty| matches!(ty.dtype, DType::Fp16 | DType::Fp32 | DType::Int32) && (1..=5).contains(&ty.rank()));
    let ty = ty.ok_or_else(refuse)?;
    let shape = ty.shape.iter().map(|&extent| i64::try_from(extent).map_err(|_| refuse())).collect::<Result<_, _>>()?;
    let data_type = proto::array_type_code(ty.dtype).ok_or_else(refuse)?;
    Ok(proto::FeatureDescription {
        name: name.to_string(),
        short_description: String::new(),
        ty: Some(proto::FeatureType {
            kind: Some(proto::FeatureKind::Array(proto::ArrayType { shape, data_type, flexibility: None })),
            is_optional: false,
        }),
    })
}
