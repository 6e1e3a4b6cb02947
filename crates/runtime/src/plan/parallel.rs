//! Splits a result into pieces that threads fill.

use crate::kernel::types::Context;
use std::sync::{Mutex, PoisonError};

/// Values below which a second thread costs more than it saves.
pub(crate) const SMALL: usize = 1 << 13;

/// Calls `fill(position, piece)` for consecutive pieces of `out` of `piece` values each (the last one may be shorter), in parallel.
pub(crate) fn pieces<T: Send>(context: Context<'static>, out: &mut [T], piece: usize, fill: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let piece = piece.max(1);
    let jobs = out.len().div_ceil(piece);
    if jobs <= 1 {
        fill(0, out);
        return;
    }
    let queue = Mutex::new(out.chunks_mut(piece).enumerate());
    context.pool.run(jobs, &|_, _| {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        if let Some((index, part)) = next {
            fill(index * piece, part);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_filled_once_at_its_position() {
        for (length, piece) in [(0, 4), (1, 4), (1000, 7), (64, 64), (65, 64)] {
            let mut out = vec![usize::MAX; length];
            pieces(Context::global(), &mut out, piece, &|at, part| {
                part.iter_mut().enumerate().for_each(|(index, value)| *value = at + index);
            });
            assert_eq!(out, (0..length).collect::<Vec<_>>());
        }
    }
}
