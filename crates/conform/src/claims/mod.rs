//! What is claimed about the engine, by whom, and how far the claims agree.
//!
//! Every public statement is one row of a file in `data`: operator, chip families, route, what is claimed and who says so. Nothing is
//! averaged away: [`Claims::support`] merges the statements about one operator on one family and keeps every side of a disagreement.

mod committed;
mod evidence;
mod merge;
mod table;

pub use evidence::{Evidence, EvidenceError};
pub use merge::{Figure, Status, Support};
pub use table::ClaimError;

use aneforge_core::Family;
use serde::{Deserialize, Serialize};

/// Families from the first with MIL on, oldest first.
pub const FAMILIES: [Family; 6] = [Family::A13, Family::A14, Family::A15, Family::A16, Family::A17, Family::A18];

/// The way to the engine that a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Route {
    /// MIL through the e5rt runtime, which compiles a folder.
    #[serde(rename = "e5rt")]
    E5rt,
    /// MIL handed to the in-memory model class.
    #[serde(rename = "in-memory")]
    InMemory,
    /// A net.plist with the engine's own layers.
    #[serde(rename = "native")]
    Native,
}

/// What a statement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The engine has the operator.
    Native,
    /// Composed of other operators, folded away, or done in software around the engine.
    Bridged,
    /// Other families have it, this one lacks the hardware.
    Gated,
    /// No engine has it.
    Absent,
    /// A program with it compiled and ran; its result was not judged.
    Runs,
    /// A program with it compiled, ran and gave the right result, or the one that the note says.
    Computes,
    /// A program with it was refused.
    Refused,
}

impl Verdict {
    /// Whether the engine itself computes the operator.
    pub fn on_engine(self) -> bool {
        matches!(self, Self::Native | Self::Runs | Self::Computes)
    }

    /// The word of the data files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Bridged => "bridged",
            Self::Gated => "gated",
            Self::Absent => "absent",
            Self::Runs => "runs",
            Self::Computes => "computes",
            Self::Refused => "refused",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Native, Self::Bridged, Self::Gated, Self::Absent, Self::Runs, Self::Computes, Self::Refused]
            .into_iter()
            .find(|verdict| verdict.word() == word)
    }
}

impl Route {
    /// All routes.
    pub const ALL: [Self; 3] = [Self::E5rt, Self::InMemory, Self::Native];

    /// The word of the data files.
    pub fn word(self) -> &'static str {
        match self {
            Self::E5rt => "e5rt",
            Self::InMemory => "in-memory",
            Self::Native => "native",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.word() == word)
    }
}

/// Who states something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Short name in the data files.
    pub key: String,
    /// Citation.
    pub citation: String,
    /// Families of the chips that they say they tried; about others they predict.
    pub tried: Vec<Family>,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// MIL keyword, or type of a native layer.
    pub operator: String,
    /// First family it is about.
    pub first: Family,
    /// Last family it is about.
    pub last: Family,
    /// Way to the engine.
    pub route: Route,
    /// Element type it is limited to; `None` says any.
    pub dtype: Option<String>,
    /// Class of uses it is limited to, in words; `None` says any.
    pub shape: Option<String>,
    /// What is claimed.
    pub verdict: Verdict,
    /// Relative error of a minimal program, where one is given.
    pub figure: Option<f64>,
    /// What else the source says, in our words.
    pub note: Option<String>,
    /// Key of the source.
    pub source: String,
    /// Whether it comes from an evidence file, which makes it `measured`.
    pub measured: bool,
}

impl Claim {
    /// Whether it is about a family.
    pub fn covers(&self, family: Family) -> bool {
        (self.first..=self.last).contains(&family)
    }

    /// Whether it is about some uses of the operator alone.
    pub fn is_limit(&self) -> bool {
        self.dtype.is_some() || self.shape.is_some()
    }
}

/// All statements at hand.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    claims: Vec<Claim>,
    sources: Vec<Source>,
}

impl Claims {
    /// The statements of the committed files.
    ///
    /// # Errors
    /// [`ClaimError`] with file, line and field; a test holds that there is none.
    pub fn committed() -> Result<&'static Claims, &'static ClaimError> {
        committed::claims()
    }

    /// The same and what evidence files add.
    #[must_use]
    pub fn with_evidence(mut self, evidence: &[Evidence]) -> Self {
        for item in evidence {
            self.sources.push(item.source());
            self.claims.extend(item.claims());
        }
        self
    }

    /// Every statement, in the order of the files.
    pub fn all(&self) -> &[Claim] {
        &self.claims
    }

    /// Who states them.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The source of that key.
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.key == key)
    }

    /// Statements about an operator, limits included.
    pub fn about<'a>(&'a self, operator: &'a str) -> impl Iterator<Item = &'a Claim> {
        self.claims.iter().filter(move |claim| claim.operator == operator)
    }

    /// The way on which an operator reaches the engine: the engine's own layers by net.plist, all others by e5rt.
    pub fn route_of(&self, operator: &str) -> Route {
        match self.about(operator).all(|claim| claim.route == Route::Native) && self.about(operator).next().is_some() {
            true => Route::Native,
            false => Route::E5rt,
        }
    }

    /// Every operator that some statement is about, by name.
    pub fn operators(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.claims.iter().map(|claim| claim.operator.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
