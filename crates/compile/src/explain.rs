//! A program's regions: each product with what follows it, what it costs on the target's chip and what the passes said about it.

use crate::notes::{Note, Notes};
use aneforge_cost::body::items;
use aneforge_cost::{ChipModel, Kind};
use aneforge_mil::{Body, ValueId};
use std::collections::HashMap;

/// Consecutive operations: from one product, convolution or attention to the next.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Region {
    /// SSA name of the first one's result; of the first region of its kind.
    pub name: String,
    /// How often the same operators on the same shapes stand in a row like this.
    pub count: usize,
    /// Operators in order, repeated ones counted: `linear, add, gelu`.
    pub operators: Vec<String>,
    /// Bytes of the weights that all of them read, counted in fp16.
    pub weight_bytes: f64,
    /// Milliseconds of all of them by the cost model; absent where the target is no chip.
    pub milliseconds: Option<f64>,
    /// The engine's millijoules.
    pub millijoules: Option<f64>,
    /// What the passes did in them and nearly did, each with how often.
    pub notes: Vec<(String, usize)>,
}

/// What a program is made of.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Explanation {
    /// The regions in the order of their first appearance, equal ones together.
    pub regions: Vec<Region>,
    /// What the passes said about values that are in none: they were removed, or merged with others.
    pub elsewhere: Vec<(String, usize)>,
}

/// A program's regions, with their cost where `model` is given: that of the target's chip.
pub fn explain(body: &Body, notes: &Notes, model: Option<&ChipModel>) -> Explanation {
    let mut regions: Vec<Region> = Vec::new();
    let mut known: HashMap<Vec<String>, usize> = HashMap::new();
    let mut said: HashMap<&str, Vec<&Note>> = HashMap::new();
    for note in notes.all() {
        said.entry(note.value.as_str()).or_default().push(note);
    }
    let items = items(body);
    let starts = |index: usize| items[index].work.iter().any(|work| matches!(work.kind, Kind::Product | Kind::Convolution));
    let mut from = 0;
    while from < items.len() {
        let to = (from + 1..items.len()).find(|&index| starts(index)).unwrap_or(items.len());
        let own = &items[from..to];
        let result = |index: usize| body.operations[index].outputs.first().copied();
        let shape = |id: Option<ValueId>| id.map(|id| format!("{:?}", body.ty(id).shape)).unwrap_or_default();
        let key: Vec<String> = own.iter().map(|item| format!("{} {}", item.op, shape(result(item.index)))).collect();
        let place = *known.entry(key).or_insert_with(|| {
            regions.push(Region {
                name: own[0].name.clone(),
                count: 0,
                operators: counted(own.iter().map(|item| item.op)),
                weight_bytes: 0.0,
                milliseconds: model.map(|_| 0.0),
                millijoules: model.map(|_| 0.0),
                notes: Vec::new(),
            });
            regions.len() - 1
        });
        let region = &mut regions[place];
        region.count += 1;
        for item in own {
            for work in &item.work {
                region.weight_bytes += work.weight_bytes;
                if let (Some(model), Some(time), Some(energy)) = (model, &mut region.milliseconds, &mut region.millijoules) {
                    let (more, also) = model.operation(work);
                    *time += more;
                    *energy += also;
                }
            }
        }
        // Notes name values; free operations between the first and the last belong here too.
        let last = items.get(to).map_or(body.operations.len(), |item| item.index);
        let names = (own[0].index..last).filter_map(result).map(|id| body.value(id).name.as_str());
        for note in names.filter_map(|name| said.remove(name)).flatten() {
            add(&mut region.notes, note);
        }
        from = to;
    }
    let mut elsewhere = Vec::new();
    for note in notes.all().iter().filter(|note| said.contains_key(note.value.as_str())) {
        add(&mut elsewhere, note);
    }
    Explanation { regions, elsewhere }
}

fn add(notes: &mut Vec<(String, usize)>, note: &Note) {
    let text = note.to_string();
    match notes.iter_mut().find(|(known, _)| *known == text) {
        Some((_, count)) => *count += 1,
        None => notes.push((text, 1)),
    }
}

/// Names in order, those in a row with their number.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut rows: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match rows.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => rows.push((name, 1)),
        }
    }
    rows.into_iter().map(|(name, count)| if count == 1 { name.to_string() } else { format!("{count} {name}") }).collect()
}
