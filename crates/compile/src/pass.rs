//! What a pass is: data that names it, orders it, explains it and shows it at work.

use crate::fuse::{Rewrite, Rewrites};
use crate::{CompileError, Notes};
use aneforge_core::Target;
use aneforge_mil::Body;

/// One rewrite of a body.
#[derive(Debug)]
pub struct Pass {
    /// Name in reports and options.
    pub name: &'static str,
    /// One sentence: what it does and why.
    pub summary: &'static str,
    /// When it runs.
    pub stage: Stage,
    /// What it may change.
    pub effect: Effect,
    /// Passes of the same stage that must have run before it.
    pub after: &'static [&'static str],
    /// Whether a target needs it.
    pub applies: fn(&Target) -> bool,
    /// Rewrites the body, and says what it did and what it nearly did.
    pub run: fn(Body, &Context<'_>, &mut Notes) -> Result<Body, CompileError>,
    /// A program before and after, as MIL text of one function; a test runs it.
    pub example: Example,
}

/// Stages in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Removes what needs no computing.
    Canonicalise,
    /// Puts other forms in place of what the program says, where they run faster or more exactly; each is a choice.
    Fuse,
    /// Replaces what the target's compiler gets wrong.
    Legalise,
    /// Removes what the stages before left unused.
    Clean,
}

/// What a pass may change about results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The `reference` device gives the same bits.
    Lossless,
    /// Results may differ in rounding, within the tolerance that the text states and a test holds.
    Numeric(&'static str),
}

/// What passes know besides the body.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What the program is made for.
    pub target: &'a Target,
    /// Which passes of the stage [`Stage::Fuse`] run.
    pub rewrites: Rewrites,
}

impl Context<'_> {
    /// Whether a pass runs: its target needs it, and where it is a choice it was chosen.
    pub fn runs(&self, pass: &Pass) -> bool {
        let chosen = Rewrite::find(pass.name).is_none_or(|rewrite| self.rewrites.runs(rewrite, self.target));
        (pass.applies)(self.target) && chosen
    }
}

/// A body before and after a pass, in MIL text (the function alone).
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Before.
    pub before: &'static str,
    /// After.
    pub after: &'static str,
}
