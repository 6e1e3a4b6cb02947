//! From computation to program: every body a function, every large constant a blob in the weight file.

mod constant;
mod names;
mod state;

use crate::{
    Argument, Attribute, BlobError, BlobWriter, Body, Constant, Dialect, Function, Literal, LiteralValue, Operand, Operation, Port,
    Program, Statement, TensorType, Type, ValueId,
};
use constant::WrittenKey;
pub use constant::pack;
use names::Names;
use std::collections::{HashMap, HashSet};
use std::io::{Seek, Write};

/// How a program is written.
#[derive(Clone, Debug, PartialEq)]
pub struct EmitOptions {
    /// Dialect of the text.
    pub dialect: Dialect,
    /// Op-set of the functions; `None` takes the dialect's.
    pub opset: Option<String>,
    /// How the text names the weight file.
    pub weight_path: String,
    /// Entries of `buildInfo`, which compilers want to see.
    pub build_info: Vec<(String, String)>,
    /// Constants of up to this many elements that do not come from a weight are written into the text.
    pub literal_limit: usize,
}

impl Default for EmitOptions {
    fn default() -> Self {
        let entry = |key: &str, value: &str| (key.to_string(), value.to_string());
        Self {
            dialect: Dialect::default(),
            opset: None,
            weight_path: "@model_path/weights.bin".to_string(),
            // The versions of macOS 26's own compiler, as the package aneforge 0.4 states them.
            build_info: vec![entry("coremlc-component-MIL", "3520.4.1"), entry("coremlc-version", "3520.5.1")],
            literal_limit: 64,
        }
    }
}

/// A body has no form as a program, or its weights could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// Writing the weight file failed.
    #[error("constant {name:?}: {source}")]
    Blob {
        /// The constant.
        name: String,
        /// Why.
        source: BlobError,
    },
    /// A constant whose data do not fit its type.
    #[error("constant {name:?} of type {ty}: {problem}")]
    Constant {
        /// The constant.
        name: String,
        /// Its type.
        ty: String,
        /// What is wrong.
        problem: String,
    },
    /// A state in a dialect that has none.
    #[error("state {name:?}: the older dialect has no states; write the program in the modern one")]
    OldState {
        /// The state.
        name: String,
    },
    /// A parameter of a constexpr operator that is computed.
    #[error("{op} {name:?}: argument {port:?} must be a constant")]
    Computed {
        /// Operator keyword.
        op: &'static str,
        /// First result.
        name: String,
        /// The port.
        port: &'static str,
    },
    /// A result that cannot have a name of its own.
    #[error(
        "output {output:?} is the value that is already called {name:?}; give it an operation of its own, mul by 1 for example"
    )]
    Output {
        /// The output.
        output: String,
        /// The other name of its value.
        name: String,
    },
}

/// Writes a body as a program of one function and its weights to `blob`.
///
/// Every argument that is a constant becomes a named `const` statement before its first use, because compilers refuse some
/// inline literals; floats are written in hex. The two constexpr operators that op-set ios16 brought take their parameters as
/// attributes. A weight that several constants share is written once.
///
/// # Errors
/// [`EmitError`]. The weight file is incomplete then. Where `blob` belongs to a [`BlobFileWriter`](crate::BlobFileWriter), weights
/// are read when that is finished, and what is wrong with them is told then.
pub fn emit<W: Write + Seek>(body: &Body, options: &EmitOptions, blob: &mut BlobWriter<W>) -> Result<Program, EmitError> {
    let mut emitter = Emitter::new(options.clone(), blob);
    emitter.function(body)?;
    Ok(emitter.finish())
}

/// Writes several bodies as the functions of one program that share one weight file.
#[derive(Debug)]
pub struct Emitter<'w, W: Write + Seek> {
    options: EmitOptions,
    blob: &'w mut BlobWriter<W>,
    written: HashMap<WrittenKey, u64>,
    functions: Vec<Function>,
}

impl<'w, W: Write + Seek> Emitter<'w, W> {
    /// Starts a program.
    pub fn new(options: EmitOptions, blob: &'w mut BlobWriter<W>) -> Self {
        Self { options, blob, written: HashMap::new(), functions: Vec::new() }
    }

    /// Adds a body as a function under its own name, `main` where it has none. A weight that two bodies share is written once
    /// if the first body is still alive when the second is added.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn function(&mut self, body: &Body) -> Result<(), EmitError> {
        if self.options.dialect == Dialect::Old && !body.states.is_empty() {
            return Err(EmitError::OldState { name: body.states[0].name.clone() });
        }
        let names = Names::assign(body)?;
        let mut statements = Vec::with_capacity(body.operations.len() * 2);
        state::reads(body, &names, &mut statements);
        let mut declared = HashSet::new();
        for operation in &body.operations {
            let statement = if takes_attributes(operation) {
                self.constexpr(body, &names, operation)?
            } else {
                self.constants(body, &names, operation.arguments.iter().flat_map(Operand::values), &mut declared, &mut statements)?;
                call(body, &names, operation)
            };
            statements.push(statement);
            state::writes(body, &names, |result| operation.outputs.contains(&result), &mut statements);
        }
        let roots: Vec<_> = body.roots().collect();
        self.constants(body, &names, roots.iter(), &mut declared, &mut statements)?;
        state::writes(body, &names, |result| body.producer(result).is_none(), &mut statements);
        let opset = self.options.opset.clone().unwrap_or_else(|| Dialect::Modern.opset().to_string());
        self.functions.push(Function {
            name: names::identifier(if body.name.is_empty() { "main" } else { &body.name }),
            opset,
            inputs: body.inputs.iter().map(|&id| port(body, &names, id)).chain(state::ports(body, &names)).collect(),
            attributes: Vec::new(),
            body: statements,
            outputs: body.outputs.iter().map(|output| names.of(output.value).to_string()).collect(),
        });
        Ok(())
    }

    /// The program of the functions added so far.
    pub fn finish(self) -> Program {
        let string = Type::Scalar(crate::DType::String);
        let pairs =
            self.options.build_info.iter().map(|(key, value)| (Literal::text(key.clone()), Literal::text(value.clone()))).collect();
        let info = Literal { ty: Type::Dict(Box::new(string.clone()), Box::new(string)), value: LiteralValue::Pairs(pairs) };
        let mut program = Program {
            version: Dialect::Modern.version(),
            attributes: vec![Attribute { name: "buildInfo".to_string(), value: info }],
            functions: self.functions,
        };
        if self.options.dialect == Dialect::Old {
            program = program.to_dialect(Dialect::Old);
            if let Some(opset) = self.options.opset {
                program.functions.iter_mut().for_each(|function| function.opset.clone_from(&opset));
            }
        }
        program
    }

    /// `const` statements for those of `ids` that are constants and not declared yet.
    fn constants<'a>(
        &mut self,
        body: &Body,
        names: &Names,
        ids: impl Iterator<Item = &'a ValueId>,
        declared: &mut HashSet<ValueId>,
        statements: &mut Vec<Statement>,
    ) -> Result<(), EmitError> {
        for &id in ids {
            let Some(constant) = body.constant(id) else { continue };
            if declared.insert(id) {
                let value = self.literal(names.of(id), body.ty(id), constant)?;
                statements.push(Statement {
                    outputs: vec![port(body, names, id)],
                    op: "const".to_string(),
                    arguments: Vec::new(),
                    attributes: vec![label(names.of(id)), Attribute { name: "val".to_string(), value }],
                    location: crate::Location::default(),
                });
            }
        }
        Ok(())
    }

    fn constexpr(&mut self, body: &Body, names: &Names, operation: &Operation) -> Result<Statement, EmitError> {
        let mut statement = call(body, names, operation);
        statement.arguments.clear();
        for (spec, operand) in operation.op.ports.iter().zip(&operation.arguments) {
            for &id in operand.values() {
                let constant = body.constant(id).ok_or_else(|| EmitError::Computed {
                    op: operation.op.name,
                    name: operation.outputs.first().map_or(String::new(), |&id| names.of(id).to_string()),
                    port: spec.name,
                })?;
                let value = self.literal(names.of(id), body.ty(id), constant)?;
                statement.attributes.push(Attribute { name: spec.name.to_string(), value });
            }
        }
        Ok(statement)
    }

    fn literal(&mut self, name: &str, ty: &TensorType, constant: &Constant) -> Result<Literal, EmitError> {
        let limit = self.options.literal_limit;
        match constant::literal(name, ty, constant, limit)? {
            Some(literal) => Ok(literal),
            None => {
                let offset = constant::store(name, ty, constant, self.blob, &mut self.written)?;
                let value = LiteralValue::Blob { path: self.options.weight_path.clone(), offset };
                Ok(Literal { ty: written_type(ty), value })
            }
        }
    }
}

/// Operators whose parameters stand in the attribute list. Later constexpr operators take them as arguments.
fn takes_attributes(operation: &Operation) -> bool {
    matches!(operation.op.name, "constexpr_affine_dequantize" | "constexpr_cast")
}

fn call(body: &Body, names: &Names, operation: &Operation) -> Statement {
    let name = |id: &ValueId| Argument::Name(names.of(*id).to_string());
    let arguments = operation.op.ports.iter().zip(&operation.arguments).filter_map(|(spec, operand)| {
        let argument = match operand {
            Operand::Absent => return None,
            Operand::One(id) => name(id),
            Operand::Many(ids) => Argument::Tuple(ids.iter().map(name).collect()),
        };
        Some((spec.name.to_string(), argument))
    });
    Statement {
        outputs: operation.outputs.iter().map(|&id| port(body, names, id)).collect(),
        op: operation.op.name.to_string(),
        arguments: arguments.collect(),
        attributes: operation.outputs.first().map(|&id| label(names.of(id))).into_iter().collect(),
        location: crate::Location::default(),
    }
}

fn port(body: &Body, names: &Names, id: ValueId) -> Port {
    Port { name: names.of(id).to_string(), ty: written_type(body.ty(id)) }
}

fn label(name: &str) -> Attribute {
    Attribute { name: "name".to_string(), value: Literal::text(name) }
}

/// How the modern dialect spells a type.
fn written_type(ty: &TensorType) -> Type {
    if ty.shape.is_empty() { Type::Scalar(ty.dtype) } else { Type::Tensor(ty.clone()) }
}
