//! Compute on the Apple Neural Engine (ANE) without Core ML, and anywhere else with the same program.
//!
//! A lazy tensor [`Graph`] becomes one program in MIL, the language that Apple's model compiler reads; a device executes that
//! program. Where there is no engine, the same program runs on a fast CPU engine or on an emulator of the engine's published
//! arithmetic.
//!
//! ```
//! use aneforge::{CompileOptions, DType, Graph, HostArray, IntoProgram, compile, open};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = Graph::new();
//! let x = graph.input("x", DType::Fp16, &[2, 4]);
//! let y = (x.softmax(-1) * 2.0 - 1.0).relu();
//! let program = compile(&[("y", &y)], &CompileOptions::default())?.into_program()?;
//! let x = HostArray::fp16_from_f32([2, 4], &[0.0, 0.0, 9.0, 0.0, 1.0, 1.0, 1.0, 1.0])?;
//! let y = open("cpu")?.load(&program)?.run(&[&x])?;
//! assert_eq!(y[0].to_f32()[3..], [0.0; 5]);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go from here
//!
//! | you want to | look at |
//! |---|---|
//! | build a model | [`Graph`] and the methods of [`Tensor`] |
//! | see what is emitted | [`compile()`], [`Compiled::write`], [`mil::print`] |
//! | run a program | [`open`], [`Device::load`], [`Executable`] |
//! | know what a chip would answer | `open("emulator:m1")` and the labels in [`Executable::report`] |
//! | train a model | [`nn`]; [`train`] for whole runs with data, log and checkpoints |
//! | use a pretrained model | [`io::Embedder`], [`io::models`] |
//! | add an operator | [`core::GraphOp`], a record that you can write outside of these crates |
//!
//! # What is exact
//!
//! Nobody behind this version has run it on a Mac. `emulator:<chip>` reproduces published figures of matrix products and
//! convolutions to every digit (see the `fingerprint` command); operators without such figures are modelled and labelled so in
//! [`Report`]. A named device that cannot run here is an error; nothing moves to another device by itself.
#![forbid(unsafe_code)]

mod program;

pub use program::{IntoProgram, ProgramError};

pub use aneforge_compile as compile;
pub use aneforge_conform as conform;
pub use aneforge_core as core;
pub use aneforge_cost as cost;
pub use aneforge_io as io;
pub use aneforge_mil as mil;
pub use aneforge_mlpackage as mlpackage;
pub use aneforge_native as native;
pub use aneforge_nn as nn;
pub use aneforge_runtime as runtime;
pub use aneforge_train as train;
pub use aneforge_tune as tune;

pub use aneforge_compile::{CompileError, CompileOptions, Compiled, Manifest, compile};
pub use aneforge_core::{
    Array, Axes, Chip, DType, Graph, GraphError, HostArray, HostError, Target, TargetError, Tensor, TensorType, Weight, Window,
    attention, backward, chips, concat, cross_attention, einsum, geglu, mha, sdpa, stack,
};
pub use aneforge_mil::Dialect;
pub use aneforge_runtime::{Device, DeviceError, DeviceInfo, Executable, Label, Port, Program, Report, States, devices, open};
