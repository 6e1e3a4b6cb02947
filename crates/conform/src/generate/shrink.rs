//! Making a graph that fails smaller while it fails in the same way.

use super::recipe::{Draw, Flavour, Node, Place, Recipe};
use aneforge_core::{Attribute, TensorType};

/// Most graphs that are tried.
const TRIALS: usize = 600;

/// The smallest graph found for which `fails` still holds, by leaving out outputs, replacing uses by one of their inputs or by a new
/// input, leaving out attributes, and shortening axes.
pub fn shrink(recipe: &Recipe, fails: &mut dyn FnMut(&Recipe) -> bool) -> Recipe {
    let mut smallest = recipe.pruned();
    let mut trials = 0;
    loop {
        let mut progress = false;
        for candidate in candidates(&smallest) {
            let candidate = candidate.pruned();
            if candidate.build().is_err() {
                continue;
            }
            trials += 1;
            if trials > TRIALS {
                return smallest;
            }
            if size(&candidate) < size(&smallest) && fails(&candidate) {
                smallest = candidate;
                progress = true;
                break;
            }
        }
        if !progress {
            return smallest;
        }
    }
}

/// What shrinking makes smaller, the most important first.
fn size(recipe: &Recipe) -> (usize, usize, usize, usize) {
    let leaves = recipe.nodes.iter().filter_map(|node| match node {
        Node::Input { ty, .. } | Node::Constant { ty, .. } => Some(ty.count() + ty.rank()),
        Node::Apply { .. } => None,
    });
    let settings = recipe.nodes.iter().map(|node| match node {
        Node::Apply { inputs, attributes, .. } => attributes.len() + inputs.iter().map(Vec::len).sum::<usize>(),
        _ => 0,
    });
    (recipe.operators().count(), recipe.outputs.len() + recipe.nodes.len(), leaves.sum(), settings.sum())
}

fn candidates(recipe: &Recipe) -> Vec<Recipe> {
    let mut found = Vec::new();
    if recipe.outputs.len() > 1 {
        found.extend(recipe.outputs.iter().map(|&output| Recipe { outputs: vec![output], ..recipe.clone() }));
    }
    let types = types(recipe);
    for node in (0..recipe.nodes.len()).rev() {
        if let Node::Apply { inputs, .. } = &recipe.nodes[node] {
            let same = |place: &Place| types.get(node).is_some_and(|made| made.first() == types[place.node].get(place.result));
            found.extend(inputs.iter().flatten().filter(|place| same(place)).map(|&place| rerouted(recipe, node, place)));
            found.extend(as_leaf(recipe, node, types.get(node).map_or(&[], Vec::as_slice)));
        }
    }
    for node in 0..recipe.nodes.len() {
        found.extend(simpler_use(recipe, node));
    }
    found.extend(shorter(recipe));
    found
}

/// Types of all results; empty where the recipe cannot be built.
fn types(recipe: &Recipe) -> Vec<Vec<TensorType>> {
    let mut all = Vec::new();
    for node in 0..recipe.nodes.len() {
        // Eight results are the most that a use has; those that it lacks are not there.
        let made = (0..8).map_while(|result| {
            let single = Recipe { nodes: recipe.nodes[..=node].to_vec(), outputs: vec![Place { node, result }] };
            let built = single.build().ok()?;
            built.outputs.first().and_then(|(_, tensor)| tensor.ty().ok().cloned())
        });
        all.push(made.collect());
    }
    all
}

/// Every use of the first result of a node becomes a use of another place.
fn rerouted(recipe: &Recipe, node: usize, to: Place) -> Recipe {
    let mut changed = recipe.clone();
    let own = |place: &&mut Place| place.node == node && place.result == 0;
    for other in &mut changed.nodes {
        if let Node::Apply { inputs, .. } = other {
            inputs.iter_mut().flatten().filter(own).for_each(|place| *place = to);
        }
    }
    let is_use = |place: Place, nodes: &[Node]| matches!(nodes[place.node], Node::Apply { .. });
    changed.outputs.iter_mut().filter(own).for_each(|place| *place = to);
    let nodes = &changed.nodes;
    changed.outputs.retain(|&place| is_use(place, nodes));
    changed
}

/// A node of one result becomes an input of the program.
fn as_leaf(recipe: &Recipe, node: usize, types: &[TensorType]) -> Option<Recipe> {
    let [ty] = types else { return None };
    let known = recipe.nodes.iter().find_map(|node| match node {
        Node::Input { draw, ty } if ty.dtype.is_float() => Some(*draw),
        _ => None,
    });
    let draw = known.unwrap_or(Draw { seed: 1, low: -2.0, high: 2.0, flavour: Flavour::Whole });
    let mut changed = recipe.clone();
    changed.nodes[node] = Node::Input { ty: ty.clone(), draw };
    changed.outputs.retain(|place| place.node != node);
    Some(changed)
}

/// A use without one of its attributes, or without one of its tensors.
fn simpler_use(recipe: &Recipe, node: usize) -> Vec<Recipe> {
    let Node::Apply { op, inputs, attributes } = &recipe.nodes[node] else { return Vec::new() };
    let with = |inputs: Vec<Vec<Place>>, attributes: Vec<(&'static str, Attribute)>| {
        let mut changed = recipe.clone();
        changed.nodes[node] = Node::Apply { op, inputs, attributes };
        changed
    };
    let mut found = Vec::new();
    for index in 0..attributes.len() {
        let mut fewer = attributes.clone();
        fewer.remove(index);
        found.push(with(inputs.clone(), fewer));
    }
    for port in 0..inputs.len() {
        for index in 0..inputs[port].len() {
            let mut fewer = inputs.clone();
            fewer[port].remove(index);
            found.push(with(fewer, attributes.clone()));
        }
    }
    found
}

/// All axes of one extent made shorter, in leaves alone and in the attributes too.
fn shorter(recipe: &Recipe) -> Vec<Recipe> {
    let leaf = |node: &Node| match node {
        Node::Input { ty, .. } | Node::Constant { ty, .. } => ty.shape.clone(),
        Node::Apply { .. } => Vec::new(),
    };
    let mut extents: Vec<usize> = recipe.nodes.iter().flat_map(leaf).filter(|&extent| extent > 1).collect();
    extents.sort_unstable();
    extents.dedup();
    let mut found = Vec::new();
    for extent in extents.into_iter().rev() {
        for to in [1, 2, extent / 2, extent - 1] {
            if to >= 1 && to < extent {
                found.extend([false, true].map(|attributes_too| resized(recipe, extent, to, attributes_too)));
            }
        }
    }
    found
}

fn resized(recipe: &Recipe, from: usize, to: usize, attributes_too: bool) -> Recipe {
    let mut changed = recipe.clone();
    let narrow = |ty: &mut TensorType| ty.shape.iter_mut().filter(|extent| **extent == from).for_each(|extent| *extent = to);
    for node in &mut changed.nodes {
        match node {
            Node::Input { ty, .. } => narrow(ty),
            Node::Constant { ty, values } => {
                narrow(ty);
                values.truncate(ty.count());
            }
            Node::Apply { attributes, .. } if attributes_too => {
                for (_, value) in attributes {
                    if let Attribute::Ints(entries) = value {
                        entries.to_mut().iter_mut().filter(|entry| **entry == from as i64).for_each(|entry| *entry = to as i64);
                    }
                }
            }
            Node::Apply { .. } => {}
        }
    }
    changed
}
