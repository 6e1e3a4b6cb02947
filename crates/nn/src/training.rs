//! What a trainer is built from.

use crate::loss::MAX_FP16_CLASSES;
use crate::step::{DataPort, Model};
use crate::{HostTrainer, NnError, Parameters, Recipe, ResidentTrainer};
use aneforge_core::{DType, HostArray, Route, Target, TensorType};
use aneforge_runtime::Device;
use std::borrow::Cow;
use std::sync::Arc;

/// A model, how it is trained, and where: both kinds of trainers are built from it.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// The model's parameters with their first values.
    pub parameters: &'a Parameters,
    /// How they are trained.
    pub recipe: &'a Recipe,
    /// What a batch consists of.
    pub ports: &'a [DataPort],
    /// The model with its loss.
    pub model: &'a Model<'a>,
    /// Where the step runs.
    pub device: &'a Arc<dyn Device>,
    /// What the step is compiled for; the device's own target where it is not given.
    pub target: Option<Target>,
}

impl Training<'_> {
    /// A trainer whose whole step is one program, with all state on the device.
    ///
    /// # Errors
    /// What [`Step::build`](crate::Step::build), the compiler and the device report.
    pub fn resident(&self) -> Result<ResidentTrainer, NnError> {
        ResidentTrainer::new(self)
    }

    /// A trainer that updates on the host, by gradients from the device.
    ///
    /// # Errors
    /// [`NnError::Setting`] for a recipe that unrolls several steps; what [`Step::build`](crate::Step::build), the compiler and the
    /// device report.
    pub fn on_host(&self) -> Result<HostTrainer, NnError> {
        HostTrainer::new(self)
    }

    pub(crate) fn target(&self) -> Target {
        self.target.unwrap_or_else(|| self.device.target())
    }
}

/// The ports as a target takes them: in memory the engine has no ports of integers (Orion, arXiv 2603.06728, hands over floats alone),
/// so labels are numbers of fp16 there, which hold each class.
pub(crate) fn ports_for(ports: &[DataPort], target: Target) -> Result<Vec<DataPort>, NnError> {
    let port = |port: &DataPort| match port.classes {
        Some(classes) if target.route() == Some(Route::InMemory) => {
            if classes > MAX_FP16_CLASSES {
                let rule = "a model in memory takes labels in fp16, which name 2048 classes";
                return Err(NnError::Setting { what: "number of classes", got: classes.to_string(), rule });
            }
            Ok(DataPort { ty: TensorType::new(DType::Fp16, port.ty.shape.clone()), ..port.clone() })
        }
        _ => Ok(port.clone()),
    };
    ports.iter().map(port).collect()
}

/// The bytes of an array for a port of that element type.
pub(crate) fn bytes_for(array: &HostArray, dtype: DType) -> Result<Cow<'_, [u8]>, NnError> {
    if array.dtype() == dtype {
        return Ok(Cow::Borrowed(array.bytes()));
    }
    Ok(Cow::Owned(HostArray::from_f64(dtype, array.shape(), &array.to_array().data)?.into_bytes()))
}
