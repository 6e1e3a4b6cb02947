//! Values that are kept with their axes in another order than the program has them.

use super::pattern::wide;
use crate::CompileError;
use crate::rewrite::Rewriter;
use aneforge_mil::{Constant, ValueId};
use std::collections::HashMap;

/// How a value is kept: for each axis of what is kept the value's axis that it is, or none for an axis of extent one that the value does
/// not have.
pub(super) type Form = Vec<Option<usize>>;

/// The value's own form.
pub(super) fn plain_form(rank: usize) -> Form {
    (0..rank).map(Some).collect()
}

/// Axes of the value in the order in which they are kept.
fn order(form: &[Option<usize>]) -> Vec<usize> {
    form.iter().flatten().copied().collect()
}

/// Values kept in other forms beside those that the rewriter has in their own.
#[derive(Default)]
pub(super) struct Kept {
    forms: HashMap<ValueId, (Form, ValueId)>,
    plain: HashMap<ValueId, ValueId>,
    /// Transposes that were written.
    pub(super) transposes: usize,
}

impl Kept {
    /// The form that a value is kept in, where it is not kept in its own.
    pub(super) fn form(&self, old: ValueId) -> Option<&Form> {
        if self.plain.contains_key(&old) { None } else { self.forms.get(&old).map(|(form, _)| form) }
    }

    /// What is kept of a value in a form of its axes, whether or not it is kept in its own as well.
    pub(super) fn stored(&self, old: ValueId) -> Option<&(Form, ValueId)> {
        self.forms.get(&old)
    }

    /// Keeps a value in a form.
    pub(super) fn keep(&mut self, rewriter: &mut Rewriter<'_>, old: ValueId, form: Form, new: ValueId) {
        if form == plain_form(form.len()) {
            rewriter.replace(old, new);
            self.plain.insert(old, new);
        } else {
            self.forms.insert(old, (form, new));
        }
    }

    /// A value in its own form; transposed back where it is kept in another.
    pub(super) fn plain(&mut self, rewriter: &mut Rewriter<'_>, old: ValueId) -> Result<ValueId, CompileError> {
        if let (None, Some((form, new))) = (self.plain.get(&old), self.forms.get(&old).cloned()) {
            let shape = rewriter.ty(old).shape.clone();
            let kept = order(&form);
            let squeezed: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
            let hint = rewriter.name(old);
            let squeezed = reshaped(rewriter, new, &squeezed, hint)?;
            let back: Vec<i64> =
                (0..shape.len()).filter_map(|axis| kept.iter().position(|&own| own == axis)).map(|at| at as i64).collect();
            let new = self.transposed(rewriter, squeezed, &back, hint)?;
            rewriter.replace(old, new);
            self.plain.insert(old, new);
        }
        rewriter.value(old)
    }

    /// A value in a form; constants and values of lower rank, which broadcast, as if they had ones in front.
    pub(super) fn in_form(
        &mut self,
        rewriter: &mut Rewriter<'_>,
        old: ValueId,
        form: &[Option<usize>],
    ) -> Result<ValueId, CompileError> {
        let rank = form.iter().flatten().count();
        let mut shape = rewriter.ty(old).shape.clone();
        if shape.is_empty() {
            return self.plain(rewriter, old);
        }
        shape.splice(0..0, std::iter::repeat_n(1, rank - shape.len()));
        let target: Vec<usize> = form.iter().map(|axis| axis.map_or(1, |axis| shape[axis])).collect();
        let hint = format!("{}_channels", rewriter.name(old));
        if let Some((own, new)) = self.forms.get(&old).cloned()
            && order(&own) == order(form)
        {
            return reshaped(rewriter, new, &target, &hint);
        }
        // Where at most one axis is longer than one, another order is another shape.
        if shape.iter().filter(|&&extent| extent > 1).count() <= 1 {
            return match rewriter.source().constant(old) {
                Some(Constant::Weight(weight)) => {
                    let weight = weight.reshaped(target).ok_or_else(|| CompileError::internal("a constant changed its size"))?;
                    Ok(rewriter.builder().weight(&hint, weight))
                }
                _ => {
                    let plain = self.plain(rewriter, old)?;
                    reshaped(rewriter, plain, &target, &hint)
                }
            };
        }
        let plain = self.plain(rewriter, old)?;
        let full = reshaped(rewriter, plain, &shape, &hint)?;
        let turned: Vec<i64> = order(form).into_iter().map(|axis| axis as i64).collect();
        let turned = self.transposed(rewriter, full, &turned, &hint)?;
        let new = reshaped(rewriter, turned, &target, &hint)?;
        if rewriter.ty(old).rank() == rank && !self.forms.contains_key(&old) {
            // The next one who wants it so finds it here.
            self.plain.insert(old, plain);
            self.forms.insert(old, (form.to_vec(), new));
        }
        Ok(new)
    }

    fn transposed(
        &mut self,
        rewriter: &mut Rewriter<'_>,
        value: ValueId,
        perm: &[i64],
        hint: &str,
    ) -> Result<ValueId, CompileError> {
        if perm.iter().enumerate().all(|(axis, &source)| axis as i64 == source) {
            return Ok(value);
        }
        self.transposes += 1;
        Ok(rewriter.builder().op_named("transpose", &[("x", value.into()), ("perm", perm.to_vec().into())], hint)?)
    }
}

/// A new value under another shape: one reshape whatever was reshaped before it.
pub(super) fn reshaped(rewriter: &mut Rewriter<'_>, value: ValueId, shape: &[usize], hint: &str) -> Result<ValueId, CompileError> {
    let builder = rewriter.builder();
    let body = builder.body();
    let origin = body.producer(value).filter(|operation| operation.op.name == "reshape");
    let origin = origin.and_then(|operation| crate::rewrite::one(operation, "x")).unwrap_or(value);
    if body.ty(value).shape == shape {
        return Ok(value);
    }
    if body.ty(origin).shape == shape {
        return Ok(origin);
    }
    Ok(builder.op_named("reshape", &[("x", origin.into()), ("shape", wide(shape).into())], hint)?)
}

/// The form of a reshape's result where its operand is kept in `form`: axes that are split or joined stand next to each other there. `None`
/// where they don't.
pub(super) fn through_reshape(form: &[Option<usize>], from: &[usize], to: &[usize]) -> Option<Form> {
    let groups = groups(from, to)?;
    let kept = order(form);
    let mut result: Form = Vec::with_capacity(to.len());
    // Axes of extent one that are new stand in front, where they are in the way of nothing.
    result.extend(groups.iter().filter(|(own, _)| own.is_empty()).flat_map(|(_, new)| new.clone()).map(Some));
    let mut at = 0;
    while at < kept.len() {
        let (own, new) = groups.iter().find(|(own, _)| own.contains(&kept[at]))?;
        let together = own.clone().eq(kept.get(at..at + own.len())?.iter().copied());
        if !together {
            return None;
        }
        result.extend(new.clone().map(Some));
        at += own.len();
    }
    (result.len() == to.len()).then_some(result)
}

type Group = (std::ops::Range<usize>, std::ops::Range<usize>);

/// Neighbouring axes of two shapes that hold the same elements, as few in each group as can be.
fn groups(from: &[usize], to: &[usize]) -> Option<Vec<Group>> {
    let (mut a, mut b, mut groups) = (0, 0, Vec::new());
    while a < from.len() || b < to.len() {
        let (start_a, start_b) = (a, b);
        // An axis of one on one side alone is a group of its own.
        if a < from.len() && from[a] == 1 && to.get(b) != Some(&1) {
            a += 1;
        } else if b < to.len() && to[b] == 1 && from.get(a) != Some(&1) {
            b += 1;
        } else {
            let (mut left, mut right) = (*from.get(a)?, *to.get(b)?);
            (a, b) = (a + 1, b + 1);
            while left != right {
                if left < right {
                    left *= from.get(a)?;
                    a += 1;
                } else {
                    right *= to.get(b)?;
                    b += 1;
                }
            }
        }
        groups.push((start_a..a, start_b..b));
    }
    Some(groups)
}
