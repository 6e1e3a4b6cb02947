//! What tests of whole models share.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code)] // shared by several test programs

pub mod tiny;

use std::path::PathBuf;

/// A folder named by an environment variable: nothing, and a word about it, where the variable is not set; a failure where it is
/// set and names no folder.
pub fn folder(variable: &str) -> Option<PathBuf> {
    let Some(path) = std::env::var_os(variable).map(PathBuf::from) else {
        println!("not run: {variable} is not set (make test sets it)");
        return None;
    };
    assert!(path.is_dir(), "{variable} names {}, which is no folder", path.display());
    Some(path)
}

/// Cosine of the angle between two vectors, in f64.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Length of the difference over the length of `wanted`.
pub fn relative_distance(found: &[f32], wanted: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let difference = square(&mut found.iter().zip(wanted).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    (difference / square(&mut wanted.iter().map(|value| f64::from(*value)))).sqrt()
}
