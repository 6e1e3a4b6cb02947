//! Which rows are held out: folds over workloads, chips, and draws of a few rows. The same on every run.

use super::rows::{MACHINES, Row};
use sha2::{Digest, Sha256};

/// Folds of the cross-validation.
pub const FOLDS: usize = 5;
/// Draws of calibration rows.
pub const DRAWS: u64 = 20;
/// Rows in each.
pub const CALIBRATION: usize = 10;
/// Seed of the draws.
const SEED: u64 = 7;

/// Chips left out one after the other, each with the machines that leave with it: where a source does not name the chip exactly, the
/// machine leaves with each chip that it may be.
pub const LEFT_OUT: &[(&str, &[&str])] = &[
    ("M1", &["M1 MacBookPro17,1", "M1 MacBook Air", "M1 (Max?)"]),
    ("M1 Max", &["M1 Max MacBookPro18,2", "M1 (Max?)"]),
    ("M2 Pro", &["M2 Pro Mac14,12", "M2 Pro?"]),
    ("M4", &["M4 Mac16,12"]),
    ("M5 Pro", &["M5 Pro Mac17,8", "M5 Pro, not named"]),
];

/// The fold of each row: rows of one workload and shape are in one fold, on all machines.
pub fn folds(rows: &[Row]) -> Vec<usize> {
    let hash = |row: &Row| Sha256::digest(format!("{}|{}", row.workload, row.shape)).to_vec();
    let hashes: Vec<Vec<u8>> = rows.iter().map(hash).collect();
    let mut distinct = hashes.clone();
    distinct.sort();
    distinct.dedup();
    hashes.iter().map(|hash| distinct.binary_search(hash).unwrap_or_default() % FOLDS).collect()
}

/// Places of machines by their names.
pub fn machines(names: &[&str]) -> Vec<usize> {
    (0..MACHINES.len()).filter(|&at| names.contains(&MACHINES[at].name)).collect()
}

/// `count` of the numbers below `of`, drawn without putting back.
pub fn draw(count: usize, of: usize, number: u64, machine: usize) -> Vec<usize> {
    let mut state = SEED.wrapping_mul(0x0001_0000_0001) ^ (number << 8) ^ machine as u64;
    let mut left: Vec<usize> = (0..of).collect();
    (0..count.min(of))
        .map(|_| {
            // splitmix64, public domain: https://prng.di.unimi.it/splitmix64.c
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            let at = usize::try_from(mixed % left.len() as u64).unwrap_or_default();
            left.swap_remove(at)
        })
        .collect()
}
