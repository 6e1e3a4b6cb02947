//! Sets of indices.

use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};

/// What says that there is no index: `NSNotFound`.
const NOT_FOUND: usize = isize::MAX.cast_unsigned();

/// Body of a set, in ascending order.
struct Indices(Vec<usize>);

/// A set of these.
pub fn index_set(indices: impl IntoIterator<Item = usize>) -> Strong {
    let mut indices: Vec<usize> = indices.into_iter().collect();
    indices.sort_unstable();
    indices.dedup();
    Id::make("NSIndexSet", Indices(indices))
}

fn indices(id: Id) -> &'static [usize] {
    id.body::<Indices>().map_or(&[], |indices| indices.0.as_slice())
}

extern "C" fn count(this: Id, _: Sel) -> usize {
    indices(this).len()
}

extern "C" fn first(this: Id, _: Sel) -> usize {
    indices(this).first().copied().unwrap_or(NOT_FOUND)
}

extern "C" fn last(this: Id, _: Sel) -> usize {
    indices(this).last().copied().unwrap_or(NOT_FOUND)
}

extern "C" fn after(this: Id, _: Sel, index: usize) -> usize {
    indices(this).iter().copied().find(|other| *other > index).unwrap_or(NOT_FOUND)
}

extern "C" fn contains(this: Id, _: Sel, index: usize) -> bool {
    indices(this).contains(&index)
}

static METHODS: &[Method] = &[
    method!("count", count, 0),
    method!("firstIndex", first, 0),
    method!("lastIndex", last, 0),
    method!("indexGreaterThanIndex:", after, 1),
    method!("containsIndex:", contains, 1),
];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "NSIndexSet", superclass: "NSObject", class_methods: &[], methods: METHODS }];
