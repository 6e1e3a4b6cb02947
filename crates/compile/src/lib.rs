//! From a tensor graph to one MIL program in a bundle on disk.
//!
//! ```no_run
//! use aneforge_core::{DType, Graph};
//! use aneforge_compile::{CompileOptions, compile};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = Graph::new();
//! let x = graph.input("x", DType::Fp16, &[1, 4]);
//! let compiled = compile(&[("y", &x.relu())], &CompileOptions::default())?;
//! compiled.write("relu.ane".as_ref())?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod bundle;
pub mod canonicalise;
pub mod check;
pub mod compress;
mod error;
pub mod explain;
pub mod fuse;
mod legalise;
mod manifest;
mod notes;
pub mod pass;
pub mod pipeline;
mod rewrite;
pub mod segment;

pub use error::CompileError;
pub use fuse::{Rewrite, Rewrites};
pub use manifest::{FileEntry, FileHash, Manifest, PortEntry, SCHEMA, SegmentEntry};
pub use notes::{Note, Notes};
pub use pipeline::Timing;
pub use rewrite::{Rewriter, alone, rewrite};
pub use segment::{Limits, Link, Move, Segment, SegmentKind, Segments};

use aneforge_core::{Target, Tensor};
use aneforge_mil::{Body, Dialect};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// What a program is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions {
    /// `generic`, or a chip with the workarounds it needs.
    pub target: Target,
    /// Dialect of the text.
    pub dialect: Dialect,
    /// Format of the large weights; as they are where absent.
    pub compress: Option<compress::Format>,
    /// What one program on the target may hold.
    pub limits: Limits,
    /// Which rewrites run.
    pub rewrites: Rewrites,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            target: Target::Generic,
            dialect: Dialect::Modern,
            compress: None,
            limits: Limits::default(),
            rewrites: Rewrites::default(),
        }
    }
}

/// A program after all passes, ready to be written.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub body: Body,
    /// What the passes did and nearly did.
    pub notes: Notes,
    /// What became of each large weight, where a format was asked for.
    pub weights: Vec<compress::CompressedWeight>,
    /// The program cut into segments, where it uses native layers of the engine.
    pub segments: Option<Segments>,
    /// Wall time per step.
    pub timings: Vec<Timing>,
    options: CompileOptions,
}

/// Lowers the named outputs of a graph and runs every pass that the target needs.
///
/// # Errors
/// [`CompileError::Graph`] for faults of the graph, [`CompileError::Name`] for doubled port names, and what passes report.
pub fn compile(outputs: &[(&str, &Tensor)], options: &CompileOptions) -> Result<Compiled, CompileError> {
    let start = Instant::now();
    let named: Vec<(String, Tensor)> = outputs.iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
    let body = aneforge_core::lower(&named, options.target)?;
    let lowering = Timing { pass: "lowering", time: start.elapsed() };
    let mut compiled = compile_body(body, options)?;
    compiled.timings.insert(0, lowering);
    Ok(compiled)
}

/// Runs every pass that the target needs over a body, for example an imported program's.
///
/// # Errors
/// As [`compile`].
pub fn compile_body(body: Body, options: &CompileOptions) -> Result<Compiled, CompileError> {
    let mut names = HashSet::new();
    let inputs = body.inputs.iter().map(|&id| &body.value(id).name);
    // An output that is an input under the same name is one port, not two.
    let outputs = body.outputs.iter().filter(|output| !body.inputs.contains(&output.value)).map(|output| &output.name);
    let states = body.states.iter().map(|state| &state.name);
    if let Some(name) = inputs.chain(states).chain(outputs).find(|name| !names.insert((*name).clone())) {
        return Err(CompileError::Name { name: name.clone() });
    }
    let mut notes = Notes::default();
    let (body, weights, compression) = match options.compress {
        Some(format) => {
            let start = Instant::now();
            let (body, weights) = compress::compress_for(&body, format, &options.target, &mut notes)?;
            (body, weights, Some(Timing { pass: compress::STEP, time: start.elapsed() }))
        }
        None => (body, Vec::new(), None),
    };
    let context = pass::Context { target: &options.target, rewrites: options.rewrites };
    let (body, mut timings) = pipeline::run(body, &context, &mut notes)?;
    timings.splice(0..0, compression);
    let segments = segment::segment(&body, &options.target, &options.limits)?;
    Ok(Compiled { body, notes, weights, segments, timings, options: *options })
}

impl Compiled {
    /// Writes the bundle: `model.mil`, `weights.bin` and `manifest.json` in a folder that appears whole or not at all. A program in
    /// segments has a folder for each, `segments/0` and so on, in place of the first two.
    ///
    /// # Errors
    /// [`CompileError::Emit`] and [`CompileError::Write`].
    pub fn write(&self, folder: &Path) -> Result<Manifest, CompileError> {
        bundle::write(&self.body, self.segments.as_ref(), &self.options, folder)
    }

    /// Writes several programs as the functions of one bundle, whose weights stand in its file once: those that two of them share, too.
    /// Devices load them one by one, by name.
    ///
    /// # Errors
    /// [`CompileError::Function`] where a name cannot be a function's or is given twice, a program is in segments, or two were
    /// compiled for different things; else as [`write`](Self::write).
    pub fn write_functions(functions: &[(&str, &Self)], folder: &Path) -> Result<Manifest, CompileError> {
        bundle::write_functions(functions, folder)
    }

    /// What it was compiled for.
    pub fn options(&self) -> &CompileOptions {
        &self.options
    }
}
