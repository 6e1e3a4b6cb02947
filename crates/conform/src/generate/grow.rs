//! Growing a graph use by use.

use super::attributes::{self, Site};
use super::draws::Draws;
use super::recipe::{Draw, Flavour, Node, Place, Recipe, constant, is_port_type};
use super::tally::{Tally, count};
use super::trace::Tracer;
use super::{Mode, whole};
use aneforge_core::op::{Case, InputKind, Sample};
use aneforge_core::{Array, Attribute, DType, Graph, GraphOp, LowerOptions, Target, Tensor, TensorType, lower_with};
use std::collections::HashMap;

/// Most elements of any tensor.
pub const MAX_ELEMENTS: usize = 2000;

/// Most elements of a constant: graph text writes so many out, so that it says the whole graph.
const MAX_CONSTANT: usize = 64;

/// Most results of one use.
const MAX_RESULTS: usize = 8;

/// Most outputs of a graph.
const MAX_OUTPUTS: usize = 5;

/// Uses of an operator that are drawn before another is taken.
const TRIES: usize = 3;

/// Reals stay below this magnitude: far from where chips overflow, which is another question than whether devices agree.
const MAX_REAL: f64 = 1000.0;

/// Draws a graph over some operators, and counts what was drawn and dropped.
pub fn generate(seed: u64, operators: &[&'static GraphOp], mode: Mode, tally: &mut Tally) -> Recipe {
    let mut grower = Grower { draws: Draws::new(seed), recipe: Recipe::default(), facts: Vec::new(), mode };
    let wanted = grower.draws.between(3, 25) as usize;
    let mut uses = 0;
    for _ in 0..wanted * 4 {
        let Some(&op) = grower.draws.pick(operators) else { break };
        // Operators with many rules would be rare if one refusal were enough to go on to the next.
        uses += usize::from((0..TRIES).any(|_| grower.used(op, tally)));
        if uses == wanted {
            break;
        }
    }
    grower.choose_outputs();
    let recipe = grower.recipe.pruned();
    recipe.operators().for_each(|op| count(&mut tally.uses, op.name));
    recipe
}

struct Grower {
    draws: Draws,
    recipe: Recipe,
    /// Values of each node's results.
    facts: Vec<Vec<Array>>,
    mode: Mode,
}

/// What the extents of an example stand for in a use: the same ones for all its tensors, so that what belongs together fits.
struct Extents(HashMap<usize, usize>);

impl Extents {
    /// The extents of `sample`'s shape as those of `shape`; the first meaning of an extent stays.
    fn of(sample: &[usize], shape: &[usize]) -> Self {
        let mut known = HashMap::new();
        for (&extent, &actual) in sample.iter().zip(shape) {
            known.entry(extent).or_insert(actual);
        }
        Self(known)
    }

    fn shape(&mut self, sample: &[usize], draws: &mut Draws) -> Vec<usize> {
        let mut one = |extent: usize| {
            *self.0.entry(extent).or_insert_with(|| match extent {
                1 if draws.percent(90) => 1,
                _ if draws.percent(60) => extent,
                _ => draws.between(1, 6) as usize,
            })
        };
        sample.iter().map(|&extent| one(extent)).collect()
    }
}

impl Grower {
    /// Whether a use of an operator was added; one that is dropped is counted and leaves nothing behind.
    fn used(&mut self, op: &'static GraphOp, tally: &mut Tally) -> bool {
        let (nodes, facts) = (self.recipe.nodes.len(), self.facts.len());
        let used = self.use_once(op).is_some();
        if !used {
            self.recipe.nodes.truncate(nodes);
            self.facts.truncate(facts);
            count(&mut tally.dropped, op.name);
        }
        used
    }

    /// One use of an operator on what is there and on new leaves; `None` where it is illegal or its values are of no use.
    fn use_once(&mut self, op: &'static GraphOp) -> Option<()> {
        let case = self.draws.pick(op.cases).copied()?;
        let inputs = self.inputs(op, &case)?;
        let first = inputs.iter().flatten().next().map(|&place| self.ty(place).shape.clone()).unwrap_or_default();
        let attributes = self.attributes(op, &case, &first);
        let results = self.tried(op, &inputs, &attributes)?;
        self.recipe.nodes.push(Node::Apply { op, inputs, attributes });
        self.facts.push(results);
        Some(())
    }

    fn ty(&self, place: Place) -> &TensorType {
        &self.facts[place.node][place.result].ty
    }

    fn is_constant(&self, place: Place) -> bool {
        matches!(self.recipe.nodes[place.node], Node::Constant { .. })
    }

    /// Places that satisfy a condition, the last ones more often than the others.
    fn known(&mut self, wanted: impl Fn(&Self, Place) -> bool) -> Option<Place> {
        let places =
            self.facts.iter().enumerate().flat_map(|(node, made)| (0..made.len()).map(move |result| Place { node, result }));
        let places: Vec<Place> = places.filter(|&place| wanted(self, place)).collect();
        let recent = places.len().saturating_sub(6);
        let from = if self.draws.percent(60) { &places[recent..] } else { &places[..] };
        self.draws.pick(from).copied()
    }

    fn inputs(&mut self, op: &'static GraphOp, case: &Case) -> Option<Vec<Vec<Place>>> {
        let mut inputs: Vec<Vec<Place>> = vec![Vec::new(); op.inputs.len()];
        let mut extents: Option<Extents> = None;
        let mut dtypes: HashMap<DType, DType> = HashMap::new();
        for sample in case.inputs {
            let at = op.input(sample.input)?;
            let spec = &op.inputs[at];
            if spec.kind == InputKind::Optional && self.draws.percent(15) {
                continue;
            }
            let place = match &mut extents {
                // The first tensor says what the extents of the example stand for.
                None => {
                    let rank = sample.shape.len();
                    let fits = |grower: &Self, place: Place| {
                        let ty = grower.ty(place);
                        spec.dtypes.contains(&ty.dtype) && ty.rank() == rank && (!spec.constant || grower.is_constant(place))
                    };
                    let found = if self.draws.percent(75) { self.known(fits) } else { None };
                    let place = match found {
                        Some(place) => place,
                        None => {
                            let mut fresh = Extents(HashMap::new());
                            let shape = fresh.shape(sample.shape, &mut self.draws);
                            let dtype = self.dtype(spec.dtypes, sample.dtype);
                            self.leaf(op, sample, TensorType::new(dtype, shape), spec.constant)?
                        }
                    };
                    let ty = self.ty(place);
                    dtypes.insert(sample.dtype, ty.dtype);
                    extents = Some(Extents::of(sample.shape, &ty.shape));
                    place
                }
                Some(extents) => {
                    let shape = extents.shape(sample.shape, &mut self.draws);
                    let dtype = dtypes.get(&sample.dtype).copied().filter(|dtype| spec.dtypes.contains(dtype));
                    let ty = TensorType::new(dtype.unwrap_or(sample.dtype), shape);
                    let fits =
                        |grower: &Self, place: Place| *grower.ty(place) == ty && (!spec.constant || grower.is_constant(place));
                    let found = if self.draws.percent(60) { self.known(fits) } else { None };
                    match found {
                        Some(place) => place,
                        None => self.leaf(op, sample, ty, spec.constant)?,
                    }
                }
            };
            inputs[at].push(place);
            while spec.kind == InputKind::Variadic && inputs[at].len() < 5 && self.draws.percent(20) {
                let ty = self.ty(place).clone();
                let more = self.known(|grower, other| *grower.ty(other) == ty)?;
                inputs[at].push(more);
            }
        }
        Some(inputs)
    }

    fn dtype(&mut self, allowed: &[DType], usual: DType) -> DType {
        let others: Vec<DType> = allowed.iter().copied().filter(|&dtype| is_port_type(dtype)).collect();
        if self.draws.percent(80) { usual } else { self.draws.pick(&others).copied().unwrap_or(usual) }
    }

    /// A new input or constant.
    fn leaf(&mut self, op: &GraphOp, sample: &Sample, ty: TensorType, constant: bool) -> Option<Place> {
        let elements = ty.checked_count().filter(|&count| count <= MAX_ELEMENTS)?;
        let draw = self.draw(op, sample, ty.dtype);
        let array = draw.array(&ty);
        let wanted = constant || (sample.constant && self.draws.percent(80)) || self.draws.percent(25);
        let fixed = wanted && elements <= MAX_CONSTANT && self.mode != Mode::Edge;
        if !fixed && (constant || !is_port_type(ty.dtype)) {
            return None;
        }
        let node = if fixed { Node::Constant { ty, values: array.data.clone() } } else { Node::Input { ty, draw } };
        self.recipe.nodes.push(node);
        self.facts.push(vec![array]);
        Some(Place { node: self.facts.len() - 1, result: 0 })
    }

    /// Where the values of a leaf come from: for indices and masks from what the example has, else from the operator's domain.
    fn draw(&mut self, op: &GraphOp, sample: &Sample, dtype: DType) -> Draw {
        let seed = self.draws.bits() >> 40;
        let ends = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            (low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        let (low, high) = match (dtype.is_float(), sample.values) {
            (false, []) => (0.0, 2.0),
            (false, values) => ends(values),
            (true, _) if self.mode == Mode::Whole => (op.domain.low.max(-4.0).floor(), op.domain.high.clamp(2.0, 4.0).ceil()),
            (true, _) => (op.domain.low, op.domain.high),
        };
        let flavour = match self.mode {
            Mode::Whole => Flavour::Whole,
            Mode::Edge if dtype.is_float() => Flavour::Edge,
            _ => Flavour::Real,
        };
        Draw { seed, low, high, flavour }
    }

    fn attributes(&mut self, op: &'static GraphOp, case: &Case, shape: &[usize]) -> Vec<(&'static str, Attribute)> {
        let mut attributes: Vec<(&'static str, Attribute)> = Vec::new();
        let as_shown = self.draws.percent(30);
        for spec in op.attributes {
            let shown = case.attributes.iter().find(|(name, _)| *name == spec.name).map(|(_, value)| Attribute::from(*value));
            let usual = shown.clone().unwrap_or_else(|| Attribute::from(spec.default));
            let keeps = as_shown || (usual != Attribute::Absent && self.draws.percent(40)) || self.draws.percent(20);
            let value = if keeps {
                shown
            } else {
                let site = Site { shape, whole: self.mode == Mode::Whole, earlier: &attributes };
                attributes::draw(spec, usual, &site, &mut self.draws)
            };
            attributes.extend(value.map(|value| (spec.name, value)));
        }
        attributes
    }

    /// The values of a use, computed in a graph of its own.
    fn tried(&self, op: &'static GraphOp, inputs: &[Vec<Place>], attributes: &[(&'static str, Attribute)]) -> Option<Vec<Array>> {
        let graph = Graph::new();
        let (mut made, mut arrays): (HashMap<Place, Tensor>, Vec<Array>) = (HashMap::new(), Vec::new());
        let mut tensors = Vec::with_capacity(inputs.len());
        for places in inputs {
            let mut here = Vec::with_capacity(places.len());
            for &place in places {
                let fact = &self.facts[place.node][place.result];
                here.push(match made.get(&place) {
                    Some(tensor) => tensor.clone(),
                    None if self.is_constant(place) => constant(&graph, &fact.ty, &fact.data),
                    None => {
                        arrays.push(fact.clone());
                        graph.input(&format!("x{}_{}", place.node, place.result), fact.ty.dtype, &fact.ty.shape)
                    }
                });
                here.last().map(|tensor| made.insert(place, tensor.clone()));
            }
            tensors.push(here);
        }
        let results = graph.apply_lists(op, &tensors, attributes);
        let fits = |tensor: &Tensor| tensor.ty().is_ok_and(|ty| ty.count() <= MAX_ELEMENTS);
        if results.is_empty() || results.len() > MAX_RESULTS || !results.iter().all(fits) {
            return None;
        }
        let named: Vec<(String, Tensor)> =
            results.into_iter().enumerate().map(|(index, tensor)| (format!("y{index}"), tensor)).collect();
        let body = lower_with(&named, LowerOptions { target: Target::Generic, keep_unused_inputs: true }).ok()?;
        let tracer = Tracer::new(&body).ok()?;
        let trace = tracer.run(&arrays, &mut |_, _| ()).ok()?;
        let made = || body.operations.iter().flat_map(|operation| &operation.outputs).filter_map(|&id| trace.get(id));
        let useful = match self.mode {
            Mode::Whole => whole::holds(&tracer, &trace, &arrays),
            Mode::Real => made().all(|array| array.data.iter().all(|value| value.abs() <= MAX_REAL)),
            Mode::Edge => true,
        };
        useful.then(|| tracer.outputs(&trace))
    }

    /// Results that nothing uses are outputs, and now and then one that something uses.
    fn choose_outputs(&mut self) {
        let mut used = vec![false; self.facts.len()];
        self.recipe.nodes.iter().flat_map(Node::uses).for_each(|place| used[place.node] = true);
        let mut outputs = Vec::new();
        for (node, made) in self.facts.iter().enumerate() {
            if matches!(self.recipe.nodes[node], Node::Apply { .. }) && (!used[node] || self.draws.percent(8)) {
                outputs.push(Place { node, result: self.draws.below(made.len()) });
            }
        }
        self.draws.shuffle(&mut outputs);
        outputs.truncate(MAX_OUTPUTS);
        self.recipe.outputs = outputs;
    }
}
