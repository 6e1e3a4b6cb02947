//! Which operation runs in which segment.
//!
//! Segments alternate between MIL and native. An operation runs in the first segment of its kind behind everything that it needs, which
//! gives the fewest segments for a given first kind: their number is that of the changes of kind along the longest path. Both first
//! kinds are tried. Moves cost nothing and wait to be placed until the others are.

use aneforge_mil::{Body, Operand, Operation, ValueId, ValueKind};

/// How an operation is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the segment of that number.
    Segment(usize),
    /// Nowhere: it is part of the layout of the ports that its result goes to.
    Layout,
    /// In every segment that needs it: it is the stored form of a weight and computes nothing at run time.
    Stored,
}

/// The segments of a body.
#[derive(Debug)]
pub(super) struct Plan {
    /// Place of each operation.
    pub(super) places: Vec<Place>,
    /// Whether each segment is native.
    pub(super) native: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mil,
    Native,
    Move,
    Stored,
}

/// What an operation is to the planner.
fn kind(body: &Body, operation: &Operation) -> Kind {
    let op = operation.op;
    let constant =
        |index: usize| operation.arguments.get(index).is_some_and(|o| o.values().iter().all(|&id| body.constant(id).is_some()));
    match op.name {
        _ if aneforge_native::layer::of(op).is_some() => Kind::Native,
        _ if operation.op.expands_weight() => Kind::Stored,
        "transpose" | "reshape" | "expand_dims" | "squeeze" if !constant(0) => Kind::Move,
        _ => Kind::Mil,
    }
}

/// The operations that make an operation's arguments.
pub(super) fn needs<'a>(body: &'a Body, operation: &'a Operation) -> impl Iterator<Item = usize> + 'a {
    operation.arguments.iter().flat_map(Operand::values).filter_map(|&id| maker(body, id))
}

fn maker(body: &Body, id: ValueId) -> Option<usize> {
    match body.value(id).kind {
        ValueKind::Result { operation, .. } => Some(operation as usize),
        _ => None,
    }
}

/// For each node the earliest phase in which it can run where phases of one kind alternate with those of the other and the first is of
/// kind `first`: `kinds` holds `Some(kind)`, or `None` for nodes that run in any phase; `needs` the nodes that each waits for, all of
/// them earlier ones.
pub fn phases(kinds: &[Option<bool>], needs: &[Vec<usize>], first: bool) -> Vec<usize> {
    let mut phases: Vec<usize> = Vec::with_capacity(kinds.len());
    for (kind, needs) in kinds.iter().zip(needs) {
        let ready = needs.iter().filter_map(|&need| phases.get(need)).copied().max().unwrap_or(0);
        let fits = kind.is_none_or(|kind| (kind == first) == (ready % 2 == 0));
        phases.push(if fits { ready } else { ready + 1 });
    }
    phases
}

pub(super) fn plan(body: &Body) -> Plan {
    let kinds: Vec<Kind> = body.operations.iter().map(|operation| kind(body, operation)).collect();
    let colours: Vec<Option<bool>> = kinds
        .iter()
        .map(|kind| match kind {
            Kind::Native => Some(true),
            Kind::Mil => Some(false),
            Kind::Move | Kind::Stored => None,
        })
        .collect();
    let needed: Vec<Vec<usize>> = body.operations.iter().map(|operation| needs(body, operation).collect()).collect();
    let last = |phases: &[usize]| phases.iter().zip(&colours).filter(|(_, colour)| colour.is_some()).map(|(&phase, _)| phase).max();
    let tried = [false, true].map(|first| {
        let phases = phases(&colours, &needed, first);
        (last(&phases), first, phases)
    });
    let [with_mil, with_native] = tried;
    let (count, first, phases) = if with_native.0 < with_mil.0 { with_native } else { with_mil };
    let native: Vec<bool> = (0..=count.unwrap_or(0)).map(|phase| first == (phase % 2 == 0)).collect();
    let mut places: Vec<Place> = kinds
        .iter()
        .zip(&phases)
        .map(|(kind, &phase)| match kind {
            Kind::Stored => Place::Stored,
            Kind::Move => Place::Layout,
            Kind::Mil | Kind::Native => Place::Segment(phase),
        })
        .collect();
    let wanted = first_uses(&kinds, &needed, &phases);
    for index in 0..kinds.len() {
        if kinds[index] != Kind::Move {
            continue;
        }
        let made_in = needed[index].iter().find_map(|&need| match places[need] {
            Place::Segment(phase) if kinds[need] != Kind::Native => Some(phase),
            _ => None,
        });
        let [mil, native] = wanted[index];
        places[index] = match (made_in, mil) {
            (Some(phase), _) => Place::Segment(phase),
            (None, Some(mil)) if native.is_none_or(|native| native > mil) => Place::Segment(mil),
            _ => Place::Layout,
        };
    }
    Plan { places, native }
}

/// For each operation the first MIL segment and the first native one that read its result, through moves.
fn first_uses(kinds: &[Kind], needed: &[Vec<usize>], phases: &[usize]) -> Vec<[Option<usize>; 2]> {
    let mut first = vec![[None, None]; kinds.len()];
    let earlier = |known: Option<usize>, phase: usize| Some(known.map_or(phase, |known: usize| known.min(phase)));
    for user in (0..kinds.len()).rev() {
        let through: [Option<usize>; 2] = match kinds[user] {
            Kind::Move => first[user],
            Kind::Native => [None, Some(phases[user])],
            _ => [Some(phases[user]), None],
        };
        for &need in &needed[user] {
            for (known, phase) in first[need].iter_mut().zip(through) {
                if let Some(phase) = phase {
                    *known = earlier(*known, phase);
                }
            }
        }
    }
    first
}
