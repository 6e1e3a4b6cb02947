//! Support per family, with every source and every disagreement.

use crate::claims::{Claim, Claims, FAMILIES, Figure, Route, Status, Verdict};
use aneforge_core::Family;
use serde::Serialize;

/// What is known of an operator on a family.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilySupport {
    /// The family.
    pub family: Family,
    /// Way to the engine.
    pub route: Route,
    /// What is claimed; absent where nothing is.
    pub verdict: Option<Verdict>,
    /// How far it is known.
    pub status: Status,
    /// Who says what.
    pub sides: Vec<Side>,
    /// Published figures that the emulator reproduces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// One source's word.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// What it claims.
    pub verdict: Verdict,
    /// Whether it says that it tried a chip of the family; otherwise it predicts.
    pub tried: bool,
    /// Relative error of a minimal program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// What else it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Citation.
    pub source: String,
}

/// A statement about some uses alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// First family.
    pub first: Family,
    /// Last family.
    pub last: Family,
    /// Way to the engine.
    pub route: Route,
    /// Element type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Class of uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<String>,
    /// What is claimed of them.
    pub verdict: Verdict,
    /// What else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Citation.
    pub source: String,
}

impl FamilySupport {
    /// Whether sources disagree.
    pub fn is_contradicted(&self) -> bool {
        self.status == Status::Contradicted
    }
}

/// Support on every family through each route that anything is said about; MIL through e5rt always.
pub(super) fn families(operator: &str, claims: &Claims, always: Route) -> Vec<FamilySupport> {
    let routes =
        Route::ALL.into_iter().filter(|&route| route == always || claims.about(operator).any(|claim| claim.route == route));
    let of = |route| FAMILIES.into_iter().map(move |family| one(operator, family, route, claims));
    routes.flat_map(of).filter(|support| support.route == always || support.status != Status::Unknown).collect()
}

/// Support on a family through a route.
pub(super) fn one(operator: &str, family: Family, route: Route, claims: &Claims) -> FamilySupport {
    let support = claims.support(operator, family, route);
    FamilySupport {
        family,
        route,
        verdict: support.verdict,
        status: support.status,
        sides: support.claims.into_iter().map(|claim| side(claim, family, claims)).collect(),
        figures: support.figures,
    }
}

fn side(claim: &Claim, family: Family, claims: &Claims) -> Side {
    Side {
        verdict: claim.verdict,
        tried: claims.source(&claim.source).is_some_and(|source| source.tried.contains(&family)),
        figure: claim.figure,
        note: claim.note.clone(),
        source: citation(claim, claims),
    }
}

/// Statements about some uses of an operator.
pub(super) fn limits(operator: &str, claims: &Claims) -> Vec<Limit> {
    let limit = |claim: &Claim| Limit {
        first: claim.first,
        last: claim.last,
        route: claim.route,
        dtype: claim.dtype.clone(),
        uses: claim.shape.clone(),
        verdict: claim.verdict,
        note: claim.note.clone(),
        source: citation(claim, claims),
    };
    claims.about(operator).filter(|claim| claim.is_limit()).map(limit).collect()
}

fn citation(claim: &Claim, claims: &Claims) -> String {
    claims.source(&claim.source).map_or_else(|| claim.source.clone(), |source| source.citation.clone())
}
