//! What is refused, by whom it was seen refused, and whether anybody saw the opposite: `rules/rules.toml` as data.
//!
//! A rule is one table of that file: a predicate out of the closed set [`What`], where it holds, who says so, and what Apple's side is
//! reported to answer. The profile `agreed` holds the rules that nobody disputes, `strict` those that are disputed as well. Rules that
//! no program could keep together, and observations that another rule explains, stay in the file as `kept`: no profile holds them.
//!
//! Whether a chip family has an operator at all is the operator table's word, not a rule of the file.

mod body;
mod inspect;
mod subject;
#[cfg(test)]
mod tests;
mod what;

pub use what::What;

use crate::engine::failure::{self, compiler_text};
use crate::interface::{Fault, Route};
use crate::settings::{self, Profile};
use aneforge_core::Chip;
use aneforge_mil::op::{FAMILIES, Standing as Presence};
use aneforge_mil::{Body, Operand};
use serde::Deserialize;
use std::sync::OnceLock;
use subject::Subject;

/// The rules' file.
pub const FILE: &str = include_str!("../../rules/rules.toml");

/// Ways to the engine, as the file names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Way {
    E5rt,
    InMemory,
    Client,
}

/// How sources stand to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Nobody says otherwise: both profiles hold it.
    Agreed,
    /// Another source saw the opposite: the strict profile holds it.
    Disputed,
    /// No profile holds it; `why` says why.
    Kept,
}

/// What happens to a program that a rule meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It is refused.
    #[default]
    Refuse,
    /// It runs as if the port had been left out.
    IgnorePort,
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// Name.
    pub id: String,
    /// What it is about.
    pub what: What,
    /// Ways to the engine that it holds for.
    pub routes: Vec<Way>,
    /// A-series numbers of the families that it holds for; all if left out.
    #[serde(default)]
    pub families: Vec<u8>,
    /// Systems that it was seen on, in words.
    #[serde(default)]
    pub systems: String,
    /// How sources stand to it.
    pub standing: Standing,
    /// What it does.
    #[serde(default)]
    pub effect: Effect,
    /// Who says so.
    pub source: String,
    /// Who says otherwise, or why no profile holds it.
    #[serde(default)]
    pub why: String,
    /// What stands in the parentheses of the compiler's text, or the text as a whole where it holds a blank.
    #[serde(default)]
    pub text: String,
    /// Code of the failure.
    #[serde(default)]
    pub code: Option<i64>,
}

/// What a rule's hold depends on beside the program.
#[derive(Clone, Debug)]
pub struct Setting {
    chip: &'static Chip,
    route: Route,
    profile: Profile,
    surface: usize,
}

impl Setting {
    /// The settings as they are now, for a chip and a route.
    pub fn new(chip: &'static Chip, route: Route) -> Self {
        let settings = settings::current();
        Self { chip, route, profile: settings.profile, surface: settings.limits.surface }
    }

    fn holds(&self, rule: &Rule) -> bool {
        let way = match self.route {
            Route::E5rt => Way::E5rt,
            Route::InMemory => Way::InMemory,
            Route::Client => Way::Client,
        };
        let asked = match rule.standing {
            Standing::Agreed => true,
            Standing::Disputed => self.profile == Profile::Strict,
            Standing::Kept => false,
        };
        asked && rule.routes.contains(&way) && (rule.families.is_empty() || rule.families.contains(&self.chip.family.number()))
    }

    /// The first rule that holds here and that the subject breaks, with what is wrong.
    fn broken<'r>(&self, rules: &'r [Rule], subject: &Subject<'_>) -> Option<(&'r Rule, String)> {
        let refusing = rules.iter().filter(|rule| rule.effect == Effect::Refuse && self.holds(rule));
        refusing.filter_map(|rule| rule.what.meets(subject).map(|found| (rule, found))).next()
    }
}

/// All rules.
///
/// # Errors
/// What is wrong with the file.
pub fn all() -> Result<&'static [Rule], &'static str> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        rule: Vec<Rule>,
    }
    static RULES: OnceLock<Result<Vec<Rule>, String>> = OnceLock::new();
    let rules = RULES.get_or_init(|| toml::from_str::<File>(FILE).map(|file| file.rule).map_err(|error| error.to_string()));
    rules.as_deref().map_err(String::as_str)
}

fn known(route: Route) -> Result<&'static [Rule], Fault> {
    all().map_err(|error| failure::compile(route, 1, &compiler_text(""), error))
}

fn refused(route: Route, rule: &Rule, found: &str) -> Fault {
    let text = if rule.text.contains(' ') { rule.text.clone() } else { compiler_text(&rule.text) };
    failure::compile(route, rule.code.unwrap_or(1), &text, format!("{found} (rule {}, {})", rule.id, rule.source))
}

/// Checks what the text alone shows.
///
/// # Errors
/// The refusal of the first rule that is broken.
pub fn check_text(setting: &Setting, program: &aneforge_mil::Program) -> Result<(), Fault> {
    match setting.broken(known(setting.route)?, &Subject::Text(program)) {
        Some((rule, found)) => Err(refused(setting.route, rule, &found)),
        None => Ok(()),
    }
}

/// Checks a function and gives it as it will run.
///
/// # Errors
/// The refusal of the first rule that is broken, or of an operator that the chip's family does not have.
pub fn check_body(setting: &Setting, mut body: Body) -> Result<Body, Fault> {
    let rules = known(setting.route)?;
    if let Some((rule, found)) = setting.broken(rules, &Subject::Body(&body)) {
        return Err(refused(setting.route, rule, &found));
    }
    if let Some(found) = absent(setting, &body) {
        let text = "Some ops are not supported on any of the specified backends";
        return Err(failure::compile(setting.route, 1, text, found));
    }
    for rule in rules.iter().filter(|rule| rule.effect == Effect::IgnorePort && setting.holds(rule)) {
        let What::PortGiven { op, port } = &rule.what else { continue };
        for operation in body.operations.iter_mut().filter(|operation| operation.op.name == op) {
            if let Some(index) = operation.op.port(port) {
                operation.arguments[index] = Operand::Absent;
            }
        }
    }
    Ok(body)
}

/// An operator that the table says the family refuses.
fn absent(setting: &Setting, body: &Body) -> Option<String> {
    let family = setting.chip.family.number();
    let place = FAMILIES.iter().rposition(|&known| known <= family).unwrap_or(0);
    let standing = |operation: &&aneforge_mil::Operation| operation.op.support.families[place];
    let refused = |operation: &&aneforge_mil::Operation| matches!(standing(operation), Presence::Gated | Presence::Absent);
    let found = body.operations.iter().find(refused)?;
    Some(format!("{} is {} on A{family} ({})", found.op.name, standing(&found), found.op.support.source))
}

/// Checks the sizes of the surfaces of an evaluation, in bytes, in the order of the function's ports.
///
/// # Errors
/// What the engine reports.
pub fn check_surfaces(setting: &Setting, inputs: &[usize], outputs: &[usize]) -> Result<(), Fault> {
    let subject = Subject::Surfaces { inputs, outputs, least: setting.surface };
    match setting.broken(known(setting.route)?, &subject) {
        Some((rule, found)) => Err(failure::inference(setting.route, 0x1d, format!("{found} (rule {}, {})", rule.id, rule.source))),
        None => Ok(()),
    }
}
