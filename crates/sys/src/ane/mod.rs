//! AppleNeuralEngine's classes: programs given as text or network description in memory, and the client below them.
//!
//! Two ways lead to the same daemon. [`InMemoryModel`] compiles, loads and evaluates by itself; [`Client`] does it with a
//! [`Model`] that stands in a folder. Selectors and their types are those that maderix/ANE, its successors and the PyPI package
//! aneforge 0.4.0 use; none of them needs an entitlement.

mod client;
mod methods;
mod model;
mod request;

use std::sync::Arc;

use crate::library::Search;
use crate::objc::{Dictionary, ObjectiveC};
use crate::surface::Surfaces;
use crate::{Missing, SysError};

pub use client::{Client, Model, Runnable};
pub use model::{Descriptor, InMemoryModel, Weights};
pub use request::{PerformanceStats, Request, SurfaceObject};

/// The classes of the framework.
pub struct AppleNeuralEngine {
    methods: methods::Tables,
    runtime: Arc<ObjectiveC>,
    surfaces: Arc<Surfaces>,
    /// What options are where there are none.
    empty: Dictionary,
}

impl std::fmt::Debug for AppleNeuralEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AppleNeuralEngine")
    }
}

impl AppleNeuralEngine {
    /// The quality of service that public users of the engine run with.
    pub const USUAL_QUALITY: u32 = 21;

    /// The key under which options name the kind of a model.
    pub const MODEL_TYPE: &str = "kANEFModelType";
    /// The kind of a model that is MIL text.
    pub const MODEL_TYPE_MIL: &str = "kANEFModelMIL";
    /// The key under which options name the program's file in the model's folder.
    pub const NETWORK_FILE: &str = "kANEFNetPlistFilenameKey";

    pub(crate) fn load(
        runtime: &Arc<ObjectiveC>,
        surfaces: &Arc<Surfaces>,
        search: &mut Search<'_>,
    ) -> Result<Option<Self>, SysError> {
        let Some(methods) = methods::Tables::load(&runtime.core, search) else { return Ok(None) };
        let empty = runtime.table(&[])?;
        Ok(Some(Self { methods, runtime: runtime.clone(), surfaces: surfaces.clone(), empty }))
    }

    /// The Objective-C runtime of these classes.
    pub fn objective_c(&self) -> &Arc<ObjectiveC> {
        &self.runtime
    }

    /// The surfaces that go with these classes.
    pub fn surfaces(&self) -> &Arc<Surfaces> {
        &self.surfaces
    }

    /// An empty dictionary: no options.
    pub fn no_options(&self) -> &Dictionary {
        &self.empty
    }

    /// The options with which the client compiles a folder that holds `model.mil`.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system has no memory left.
    pub fn mil_options(&self) -> Result<Dictionary, SysError> {
        use crate::objc::Item;
        let text = |value: &str| Item::Text(value.to_string());
        Dictionary::new(&self.runtime, &[(Self::MODEL_TYPE, text(Self::MODEL_TYPE_MIL)), (Self::NETWORK_FILE, text("model.mil"))])
    }

    /// The engine's kind, such as `h13g`: `+[_ANEDeviceInfo aneSubType]`. Nothing where the system knows no engine.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn engine_subtype(&self) -> Result<Option<String>, SysError> {
        let table = self.need(self.methods.device.as_ref(), "+[_ANEDeviceInfo aneSubType]")?;
        let (send, selector) = table.subtype.ready()?;
        self.runtime.with_pool(|| {
            // SAFETY: a class method without arguments; its result lives in this pool.
            let text = unsafe { send(table.class.id(), selector) };
            if text.is_nil() {
                return Ok(None);
            }
            // SAFETY: the result is a text.
            unsafe { self.runtime.read_text(text) }.map(Some)
        })
    }

    /// What some systems have, or the error that says that this one hasn't.
    fn need<'a, T>(&self, found: Option<&'a T>, method: &str) -> Result<&'a T, SysError> {
        found.ok_or_else(|| SysError::Lacking {
            part: "AppleNeuralEngine",
            os_build: self.runtime.os_build.clone(),
            missing: vec![Missing::Method(method.to_string())],
        })
    }
}
