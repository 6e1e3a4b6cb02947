//! One library in the place of Apple's frameworks: e5rt, the Objective-C runtime, the classes of AppleNeuralEngine, IOSurface,
//! CoreFoundation and IOReport, as far as the engine path uses them.
//!
//! It behaves as public sources report these frameworks to behave and counts what is asked of it. It is no evidence about Apple's
//! code: it shows that ours keeps the contract that is reported.
//!
//! Settings come from the variable `FAKE_APPLE` when the library is loaded and through [`control::fake_apple_control`] later.

mod ane;
pub mod control;
pub mod core_foundation;
pub mod counters;
pub mod diagnostics;
pub mod e5rt;
pub mod engine;
pub mod faults;
pub mod foundation;
pub mod interface;
pub mod objc;
pub mod power;
#[cfg(feature = "engine")]
pub mod rules;
pub mod settings;
pub mod surface;
pub mod system;

/// Every class, each after the one above it.
pub(crate) fn class_specs() -> impl Iterator<Item = &'static objc::ClassSpec> {
    foundation::specs().chain(surface::specs()).chain(power::specs()).chain(ane::specs())
}
