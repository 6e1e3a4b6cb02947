//! Reads a value through the reshapes and transposes that made it, as strides over an earlier value.

use super::graph::Graph;
use aneforge_mil::{ValueId, strides};

/// A value as strides over the dense elements of another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strided {
    /// The value whose elements are read.
    pub(crate) root: ValueId,
    /// Distance between neighbours along each axis.
    pub(crate) strides: Vec<usize>,
}

/// Follows reshapes and transposes back to the value that holds the elements.
pub(crate) fn trace(graph: &Graph, id: ValueId) -> Strided {
    let plain = || Strided { root: id, strides: strides(graph.shape(id)) };
    let Some(operation) = graph.producer(id).map(|index| &graph.body.operations[index]) else { return plain() };
    let Some(x) = graph.at(operation, "x").filter(|&x| graph.is_fp16(x)) else { return plain() };
    match operation.op.name {
        "transpose" => {
            let source = trace(graph, x);
            let rank = source.strides.len() as i64;
            let perm = graph.attributes(operation, |a| a.ints("perm")).unwrap_or_default();
            let picked: Option<Vec<usize>> = perm
                .iter()
                .map(|&axis| source.strides.get(usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?).copied())
                .collect();
            match picked {
                Some(strides) if strides.len() == graph.shape(id).len() => Strided { root: source.root, strides },
                _ => plain(),
            }
        }
        "reshape" | "expand_dims" | "squeeze" => {
            let source = trace(graph, x);
            match reshaped(graph.shape(x), &source.strides, graph.shape(id)) {
                Some(strides) => Strided { root: source.root, strides },
                None => plain(),
            }
        }
        _ => plain(),
    }
}

/// Strides of the same elements under another shape; `None` where that needs a copy.
fn reshaped(from: &[usize], held: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let mut result = vec![0; to.len()];
    let source: Vec<(usize, usize)> = from.iter().copied().zip(held.iter().copied()).filter(|(extent, _)| *extent != 1).collect();
    let (mut at, mut axis) = (0, 0);
    while at < source.len() {
        // Grow a group of old axes and a group of new ones until they hold equally many elements.
        let (first_old, first_new) = (at, axis);
        let (mut old, mut new) = (source[at].0, 1);
        at += 1;
        while axis < to.len() && (new < old || to[axis] == 1) {
            new *= to[axis];
            axis += 1;
            while new > old && at < source.len() {
                old *= source[at].0;
                at += 1;
            }
        }
        if new != old {
            return None;
        }
        // Within the group the old axes must step evenly.
        let group = &source[first_old..at];
        if group.windows(2).any(|pair| pair[0].1 != pair[1].1 * pair[1].0) {
            return None;
        }
        let mut stride = group.last()?.1;
        for new_axis in (first_new..axis).rev() {
            result[new_axis] = stride;
            stride *= to[new_axis];
        }
    }
    to[axis..].iter().all(|&extent| extent == 1).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::reshaped;

    #[test]
    fn splitting_and_joining_axes_keeps_strides_where_no_copy_is_needed() {
        assert_eq!(reshaped(&[2, 12], &[12, 1], &[2, 3, 4]), Some(vec![12, 4, 1]));
        assert_eq!(reshaped(&[2, 3, 4], &[12, 4, 1], &[6, 4]), Some(vec![4, 1]));
        assert_eq!(reshaped(&[3, 2, 4], &[4, 12, 1], &[6, 4]), None);
        assert_eq!(reshaped(&[5, 1, 7], &[7, 7, 1], &[5, 7]), Some(vec![7, 1]));
        assert_eq!(reshaped(&[7, 5], &[1, 7], &[1, 7, 5, 1]).map(|s| (s[1], s[2])), Some((1, 7)));
    }
}
