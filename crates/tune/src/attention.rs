//! How many tiles the queries of attention are best cut into.

use crate::lowering::{Bench, TuneOptions, fastest};
use crate::trial::{Trial, compile_all};
use crate::variant::Variant;
use crate::{Calibration, TuneError};
use aneforge_compile::{CompileOptions, Rewrite};
use aneforge_core::{DType, Graph, attention, lower};

/// Extents of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AttentionShape {
    /// Heads.
    pub heads: usize,
    /// Queries.
    pub queries: usize,
    /// Keys.
    pub keys: usize,
    /// Features of a head.
    pub width: usize,
}

/// The best number of tiles, and what is known of each number.
#[derive(Clone, Debug)]
pub struct AttentionTiles {
    /// Tiles.
    pub tiles: usize,
    /// All numbers that were looked at, the best first.
    pub trials: Vec<Trial>,
}

/// Numbers of tiles that are tried; those of the PyPI package aneforge 0.4.0.
pub const TILES: &[usize] = &[1, 2, 3, 4, 5, 6, 8];

/// Compiles attention of that shape with each number of tiles, ranks and times as [`tune`](crate::tune) does, and gives the fastest. Without
/// a chip and without a device to time on that is the usual number.
///
/// # Errors
/// As [`tune`](crate::tune).
pub fn tune_attention(
    shape: AttentionShape,
    options: &CompileOptions,
    limits: &TuneOptions,
    bench: Bench<'_>,
) -> Result<AttentionTiles, TuneError> {
    let graph = Graph::new();
    let AttentionShape { heads, queries, keys, width } = shape;
    let input = |name: &str, rows: usize| graph.input(name, DType::Fp16, &[1, heads, rows, width]);
    let y = attention(&input("q", queries), &input("k", keys), &input("v", keys), None, None);
    let body = lower(&[("y".to_string(), y)], options.target).map_err(aneforge_compile::CompileError::from)?;
    let usual = options.rewrites.tiles(queries);
    let rewrites = options.rewrites.with(Rewrite::QueryTiles, true);
    let numbers = std::iter::once(usual).chain(TILES.iter().copied().filter(|&tiles| tiles != usual && tiles <= queries));
    let variant = |tiles: usize| Variant { name: name(tiles), rewrites: rewrites.with_tiles(tiles), format: None };
    let calibration = Calibration::generated(&body, 2, 0)?;
    let (candidates, refused) = compile_all(&body, options, numbers.map(variant).collect())?;
    let limits = TuneOptions { budget: limits.budget.max(TILES.len() + 1), ..*limits };
    let tuned = fastest(candidates, refused, &limits, &calibration, bench)?;
    let tiles = tuned.variant.rewrites.tiles(queries);
    Ok(AttentionTiles { tiles, trials: tuned.trials })
}

fn name(tiles: usize) -> String {
    if tiles == 1 { "1 tile".to_string() } else { format!("{tiles} tiles") }
}
