//! Named parameters: the model's memory, in full precision on the host.

use crate::{Initialiser, NnError, Random};
use std::collections::HashMap;

/// A handle on one parameter of a [`Parameters`], which modules keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parameter(pub(crate) usize);

/// One parameter: its name, its values in fp32, and what training may do with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
    trainable: bool,
    statistic: bool,
    group: String,
}

impl Entry {
    /// Dotted name, for example `encoder.0.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Whether an optimizer changes it.
    pub fn is_trainable(&self) -> bool {
        self.trainable && !self.statistic
    }

    /// Whether it is a statistic that training passes update without a gradient, such as a running mean.
    pub fn is_statistic(&self) -> bool {
        self.statistic
    }

    /// The group whose settings the optimizer takes; the empty name is the group of all that have no other.
    pub fn group(&self) -> &str {
        &self.group
    }
}

/// All parameters of a model in order of creation, and the generator that draws their first values.
#[derive(Clone, Debug)]
pub struct Parameters {
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
    random: Random,
}

impl Parameters {
    /// No parameters yet; the same seed and the same model give the same values.
    pub fn new(seed: u64) -> Self {
        Self { entries: Vec::new(), places: HashMap::new(), random: Random::new(seed) }
    }

    /// The scope without a name, in which a model is built.
    pub fn root(&mut self) -> Scope<'_> {
        Scope { parameters: self, prefix: String::new() }
    }

    /// All of them, in order of creation.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The parameter of that name.
    ///
    /// # Errors
    /// [`NnError::UnknownName`].
    pub fn get(&self, name: &str) -> Result<&Entry, NnError> {
        self.find(name).map(|place| &self.entries[place])
    }

    /// Replaces the values of a parameter.
    ///
    /// # Errors
    /// [`NnError::UnknownName`], [`NnError::Count`], and [`NnError::Range`] for a value that an fp16 weight cannot hold.
    pub fn set(&mut self, name: &str, values: &[f32]) -> Result<(), NnError> {
        let place = self.find(name)?;
        let entry = &mut self.entries[place];
        if values.len() != entry.values.len() {
            return Err(NnError::Count { name: name.to_string(), needed: entry.values.len(), given: values.len() });
        }
        check_range(name, values)?;
        entry.values.copy_from_slice(values);
        Ok(())
    }

    /// Keeps training from changing the parameters of a module, or one parameter, and gives their number.
    ///
    /// # Errors
    /// [`NnError::UnknownName`] where nothing has that name; the empty name means all.
    pub fn freeze(&mut self, module: &str) -> Result<usize, NnError> {
        self.for_module(module, |entry| entry.trainable = false)
    }

    /// Lets training change them again.
    ///
    /// # Errors
    /// As [`Self::freeze`].
    pub fn unfreeze(&mut self, module: &str) -> Result<usize, NnError> {
        self.for_module(module, |entry| entry.trainable = true)
    }

    /// Puts the parameters of a module, or one parameter, into a group of the optimizer, and gives their number.
    ///
    /// # Errors
    /// As [`Self::freeze`].
    pub fn assign_group(&mut self, module: &str, group: &str) -> Result<usize, NnError> {
        self.for_module(module, |entry| entry.group = group.to_string())
    }

    /// Number of values in all trainable parameters.
    pub fn trainable_count(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_trainable()).map(|entry| entry.values.len()).sum()
    }

    fn for_module(&mut self, module: &str, change: impl Fn(&mut Entry)) -> Result<usize, NnError> {
        let inside = |name: &str| {
            let rest = name.strip_prefix(module);
            module.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut count = 0;
        for entry in self.entries.iter_mut().filter(|entry| inside(&entry.name)) {
            change(entry);
            count += 1;
        }
        if count == 0 && !module.is_empty() { Err(self.unknown(module)) } else { Ok(count) }
    }

    fn find(&self, name: &str) -> Result<usize, NnError> {
        self.places.get(name).copied().ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> NnError {
        let known = self.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        NnError::UnknownName { name: name.to_string(), known }
    }

    fn add(&mut self, name: String, shape: &[usize], values: Vec<f32>, statistic: bool) -> Result<Parameter, NnError> {
        check_range(&name, &values)?;
        let place = self.entries.len();
        if self.places.contains_key(&name) {
            return Err(NnError::DuplicateName { name });
        }
        self.places.insert(name.clone(), place);
        self.entries.push(Entry { name, shape: shape.to_vec(), values, trainable: true, statistic, group: String::new() });
        Ok(Parameter(place))
    }
}

/// A place in the tree of names; modules add their parameters to one.
#[derive(Debug)]
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    prefix: String,
}

impl Scope<'_> {
    /// The scope of a module inside this one.
    pub fn scope(&mut self, name: impl std::fmt::Display) -> Scope<'_> {
        Scope { prefix: self.dotted(&name.to_string()), parameters: self.parameters }
    }

    /// A trainable parameter.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`] and what [`Initialiser::draw`] reports.
    pub fn parameter(&mut self, name: &str, shape: &[usize], initialiser: Initialiser) -> Result<Parameter, NnError> {
        let values = initialiser.draw(shape, &mut self.parameters.random)?;
        self.parameters.add(self.dotted(name), shape, values, false)
    }

    /// A statistic that training passes update, all of one value at first.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn statistic(&mut self, name: &str, shape: &[usize], value: f32) -> Result<Parameter, NnError> {
        let values = vec![value; shape.iter().product()];
        self.parameters.add(self.dotted(name), shape, values, true)
    }

    fn dotted(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_string() } else { format!("{}.{name}", self.prefix) }
    }
}

/// Whether fp16 holds all values.
pub(crate) fn check_range(name: &str, values: &[f32]) -> Result<(), NnError> {
    match values.iter().position(|value| half::f16::from_f32(*value).to_f32().is_infinite() || value.is_nan()) {
        Some(index) => Err(NnError::Range { name: name.to_string(), index, value: f64::from(values[index]) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn two_layers() -> Parameters {
        let mut parameters = Parameters::new(1);
        for layer in ["fc1", "fc10"] {
            let mut root = parameters.root();
            let mut scope = root.scope(layer);
            scope.parameter("weight", &[2, 3], Initialiser::Ones).unwrap();
            scope.statistic("mean", &[3], 0.0).unwrap();
        }
        parameters
    }

    #[test]
    fn names_are_dotted_and_unique_and_freezing_takes_whole_modules() {
        let mut parameters = two_layers();
        assert_eq!(parameters.entries()[2].name(), "fc10.weight");
        assert_eq!(parameters.trainable_count(), 12);
        assert_eq!(parameters.freeze("fc1").unwrap(), 2);
        assert_eq!(parameters.trainable_count(), 6, "fc10 is no part of fc1");
        parameters.unfreeze("").unwrap();
        assert_eq!(parameters.trainable_count(), 12);
        let error = parameters.freeze("fc2").unwrap_err().to_string();
        assert!(error.contains("fc2") && error.contains("fc10.weight"), "{error}");
        let error = parameters.root().scope("fc1").parameter("weight", &[1], Initialiser::Zeros).unwrap_err();
        assert!(matches!(error, NnError::DuplicateName { name } if name == "fc1.weight"));
    }

    #[test]
    fn values_that_fp16_cannot_hold_are_refused() {
        let mut parameters = two_layers();
        assert!(matches!(parameters.set("fc1.mean", &[0.0, f32::NAN, 0.0]), Err(NnError::Range { index: 1, .. })));
        assert!(matches!(parameters.set("fc1.mean", &[65520.0, 0.0, 0.0]), Err(NnError::Range { index: 0, .. })));
        assert!(matches!(parameters.set("fc1.mean", &[0.0]), Err(NnError::Count { needed: 3, given: 1, .. })));
        parameters.set("fc1.mean", &[1.0, 2.0, 65504.0]).unwrap();
        assert_eq!(parameters.get("fc1.mean").unwrap().values(), [1.0, 2.0, 65504.0]);
    }
}
