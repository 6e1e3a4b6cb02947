//! Statements about one operator on one family, set side by side.

use super::{Claim, Claims, Route, Verdict};
use crate::published::{PUBLISHED, Published, Status as Reproduced};
use crate::workload::Workload;
use aneforge_core::{Chip, Family};
use serde::{Deserialize, Serialize};

/// How far something said about the hardware is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A source says so, and none says otherwise.
    Reported,
    /// And the emulator of a chip of the family reproduces a published figure of it.
    Emulated,
    /// There is an evidence file from a Mac.
    Measured,
    /// Sources disagree.
    Contradicted,
    /// Nobody says anything.
    Unknown,
}

impl Status {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Emulated => "emulated",
            Self::Measured => "measured",
            Self::Contradicted => "contradicted",
            Self::Unknown => "unknown",
        }
    }
}

/// A published figure that the emulator reproduces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The workload, as `aneforge fingerprint --filter` takes it.
    pub workload: &'static str,
    /// Chips of the family that it is published for.
    pub chips: Vec<&'static str>,
    /// Relative error.
    pub value: f64,
    /// Who published it.
    pub source: &'static str,
}

/// What is known of an operator on a family through a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Support<'a> {
    /// What most of what is known comes down to: an evidence file's word, else that of the source listed first.
    pub verdict: Option<Verdict>,
    /// How far it is known.
    pub status: Status,
    /// Statements about every use of the operator, evidence first.
    pub claims: Vec<&'a Claim>,
    /// Statements about some uses alone.
    pub limits: Vec<&'a Claim>,
    /// Figures that the emulator reproduces.
    pub figures: Vec<Figure>,
}

impl Claims {
    /// Merges what is said of an operator on a family through a route.
    ///
    /// Statements agree where all say that the engine computes the operator or all say that it does not; `bridged` and `gated`
    /// are degrees of the latter. Limits never contradict: they are about other uses.
    pub fn support(&self, operator: &str, family: Family, route: Route) -> Support<'_> {
        let here = |claim: &&Claim| claim.operator == operator && claim.route == route && claim.covers(family);
        let (limits, mut claims): (Vec<&Claim>, Vec<&Claim>) = self.all().iter().filter(here).partition(|claim| claim.is_limit());
        claims.sort_by_key(|claim| !claim.measured);
        let figures = if route == Route::E5rt { figures(operator, family) } else { Vec::new() };
        let agree = claims.windows(2).all(|pair| pair[0].verdict.on_engine() == pair[1].verdict.on_engine());
        let status = match claims.first() {
            None if figures.is_empty() => Status::Unknown,
            Some(first) if first.measured => Status::Measured,
            _ if !agree => Status::Contradicted,
            _ if !figures.is_empty() => Status::Emulated,
            _ => Status::Reported,
        };
        Support { verdict: claims.first().map(|claim| claim.verdict), status, claims, limits, figures }
    }

    /// Operators about which the two sources disagree on a family, by name, whatever others say.
    pub fn disagreements(&self, left: &str, right: &str, family: Family) -> Vec<&str> {
        let word = |operator: &str, source: &str| {
            let of = |claim: &&Claim| claim.source == source && claim.covers(family) && !claim.is_limit();
            self.about(operator).find(of).map(|claim| claim.verdict.on_engine())
        };
        let differs = |operator: &&str| word(operator, left).zip(word(operator, right)).is_some_and(|(left, right)| left != right);
        self.operators().into_iter().filter(differs).collect()
    }
}

/// Published figures of programs made of the operator that our rules reproduce to every digit on chips of the family.
fn figures(operator: &str, family: Family) -> Vec<Figure> {
    let figure = |row: &'static Published| {
        let of_family = |name: &&str| Chip::find(name).is_some_and(|chip| chip.family == family);
        let chips: Vec<&'static str> = row.chips.iter().copied().filter(of_family).collect();
        let of_operator = Workload::find(row.workload)?.computation.operators().contains(&operator);
        let counts = row.status == Reproduced::Exact && of_operator && !chips.is_empty();
        counts.then(|| Figure { workload: row.workload, chips, value: row.value, source: row.source.citation() })
    };
    PUBLISHED.iter().filter_map(figure).collect()
}
