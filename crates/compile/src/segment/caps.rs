//! Divides segments that hold more than an engine takes in one program.

use super::plan::{Place, Plan, needs};
use crate::CompileError;
use aneforge_core::{DType, Target};
use aneforge_mil::{Body, Constant, EmitOptions, Operand, ValueId, ValueKind};
use std::collections::{HashMap, HashSet};

/// Weights that one program on an engine may hold: about 2 GB (PyPI package aneforge 0.4.0, pull request 254).
const WEIGHT_BYTES: u64 = 2 << 30;
/// Fewest operations on each side of a cut where there is a choice: a program of fewer is over before the next dispatch (its floor is
/// 0.07 to 0.23 ms, ANE guide, arXiv 2606.22283, chapter 2, and a small operation takes some microseconds).
const FEW: usize = 16;
/// Bytes of the header of a weight file, of that of each weight in it, and of the unit of their sizes.
const BLOB: u64 = 64;

/// What a segment may hold at most. Programs that hold more are cut, with values of fp16 between the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the weight file, weights that a segment reads several times counted once; 2 GiB on a chip and no limit elsewhere, where none is
    /// given.
    pub weight_bytes: Option<u64>,
    /// Operations, stored weights not counted. There is no limit where none is given: the reported one, about 31 transformer layers in
    /// a program (aneforge pull request 254), names no number of operations.
    pub operations: Option<usize>,
}

/// Divides the segments of a plan that exceed the limits, in the order of their operations.
///
/// # Errors
/// [`CompileError::Limit`] where one operation alone exceeds them, or no place is found where only fp16 goes from part to part.
pub(super) fn divide(body: &Body, plan: Plan, limits: &Limits, target: &Target) -> Result<Plan, CompileError> {
    let on_chip = target.chip().is_some();
    let most_bytes = limits.weight_bytes.unwrap_or(if on_chip { WEIGHT_BYTES } else { u64::MAX });
    let most_operations = limits.operations.unwrap_or(usize::MAX);
    let mut divided = Plan { places: plan.places.clone(), native: Vec::with_capacity(plan.native.len()) };
    for (segment, &native) in plan.native.iter().enumerate() {
        let own = |&index: &usize| plan.places[index] == Place::Segment(segment);
        let operations: Vec<usize> = (0..plan.places.len()).filter(own).collect();
        let fixed = if on_chip { unfit(body, &plan, &operations) } else { vec![false; operations.len() + 1] };
        let (mut start, mut at, mut last) = (0, 0, None);
        let (mut held, first) = (Held::default(), divided.native.len());
        let mut before = 0;
        while at < operations.len() {
            if held.add(body, &plan, operations[at]) > most_bytes || at - start >= most_operations {
                let Some(cut) = last else {
                    return Err(too_large(body, operations[start], held.bytes, most_bytes, most_operations, target));
                };
                divided.native.push(native);
                before = start;
                (start, at, last) = (cut, cut, None);
                held = Held::default();
                continue;
            }
            divided.places[operations[at]] = Place::Segment(divided.native.len());
            at += 1;
            if !fixed[at] {
                last = Some(at);
            }
        }
        if divided.native.len() > first && operations.len() - start < FEW {
            // An own dispatch for a handful of operations costs more than they do: some of the part before run with them.
            let earlier = (before + FEW..=operations.len().saturating_sub(FEW)).rev().filter(|&cut| !fixed[cut]);
            let fits = |&cut: &usize| {
                let mut held = Held::default();
                let moved = &operations[cut..];
                moved.len() <= most_operations && moved.iter().all(|&index| held.add(body, &plan, index) <= most_bytes)
            };
            if let Some(cut) = earlier.take_while(fits).next() {
                for &index in &operations[cut..start] {
                    divided.places[index] = Place::Segment(divided.native.len());
                }
            }
        }
        divided.native.push(native);
    }
    Ok(divided)
}

/// The weights of a part while it grows.
#[derive(Default)]
struct Held {
    constants: HashSet<ValueId>,
    bytes: u64,
}

impl Held {
    /// Adds an operation's weights, stored ones behind it included, and gives the bytes of all.
    fn add(&mut self, body: &Body, plan: &Plan, operation: usize) -> u64 {
        let mut waiting = vec![operation];
        while let Some(index) = waiting.pop() {
            let operation = &body.operations[index];
            for &id in operation.arguments.iter().flat_map(Operand::values) {
                let ty = body.ty(id);
                let stored = match body.constant(id) {
                    Some(Constant::Weight(_)) => true,
                    Some(Constant::Values(_)) => ty.count() > EmitOptions::default().literal_limit,
                    _ => false,
                };
                if stored && self.constants.insert(id) {
                    let header = if self.bytes == 0 { BLOB } else { 0 };
                    let bytes = (ty.count() as u64 * ty.dtype.bits() as u64).div_ceil(8);
                    self.bytes += header + BLOB + bytes.next_multiple_of(BLOB);
                }
            }
            waiting.extend(needs(body, operation).filter(|&need| plan.places[need] == Place::Stored));
        }
        self.bytes
    }
}

/// For each place between the operations of a segment whether a value that is no fp16 would go over it.
fn unfit(body: &Body, plan: &Plan, operations: &[usize]) -> Vec<bool> {
    let made: HashMap<usize, usize> = operations.iter().enumerate().map(|(place, &index)| (index, place)).collect();
    let mut unfit = vec![false; operations.len() + 1];
    for (user, &index) in operations.iter().enumerate() {
        for &id in body.operations[index].arguments.iter().flat_map(Operand::values) {
            let Some((source, maker)) = source(body, plan, id) else { continue };
            if let (Some(&place), false) = (made.get(&maker), body.ty(source).dtype == DType::Fp16) {
                unfit[place + 1..=user].fill(true);
            }
        }
    }
    unfit
}

/// The value behind moves that are layouts, and the operation that makes it.
fn source(body: &Body, plan: &Plan, id: ValueId) -> Option<(ValueId, usize)> {
    let mut at = id;
    loop {
        let ValueKind::Result { operation, .. } = body.value(at).kind else { return None };
        let operation = operation as usize;
        match plan.places[operation] {
            Place::Layout => at = *body.operations[operation].arguments.first()?.values().first()?,
            _ => return Some((at, operation)),
        }
    }
}

fn too_large(body: &Body, index: usize, bytes: u64, most: u64, operations: usize, target: &Target) -> CompileError {
    let operation = &body.operations[index];
    let id = operation.outputs.first().copied();
    let rule = match bytes > most {
        true => format!("a program has room for {most} bytes of weights, and {bytes} would have to stand in one from here on"),
        false => format!("a program has room for {operations} operations, and more would have to stand in one from here on"),
    };
    CompileError::Limit {
        op: operation.op.name,
        name: id.map(|id| body.value(id).name.clone()).unwrap_or_default(),
        ty: id.map(|id| body.ty(id).to_string()).unwrap_or_default(),
        rule,
        target: target.to_string(),
        remedy: "divide or compress the weight, or cast what goes from part to part to fp16",
        is_size: false,
    }
}
