//! The two dialects of the text, and moving a program from one to the other.

use crate::{Argument, Attribute, Literal, LiteralValue, Port, Program, Type};

/// A dialect of MIL text. A compiler that takes one may refuse a mixture, so a program is wholly in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `program(1.3)`, op-set `ios18`, scalars as `fp16(0x1p-1)`. What macOS 15 and later compile.
    #[default]
    Modern,
    /// `program(1.0)`, op-set `ios16`, every scalar a rank-0 tensor: `tensor<fp16, []>(0x1p-1)`. Reported to be needed on some
    /// M1 and M2 hosts (maderix/ANE).
    Old,
}

impl Dialect {
    /// The dialect that a program's version belongs to: scalars have a shorthand from 1.3 on.
    pub fn of(program: &Program) -> Self {
        if program.version < (1, 3) { Self::Old } else { Self::Modern }
    }

    /// `program(major.minor)` of the dialect.
    pub fn version(self) -> (u32, u32) {
        match self {
            Self::Modern => (1, 3),
            Self::Old => (1, 0),
        }
    }

    /// Op-set of the dialect.
    pub fn opset(self) -> &'static str {
        match self {
            Self::Modern => "ios18",
            Self::Old => "ios16",
        }
    }
}

impl Program {
    /// The same program in another dialect: version, op-set and the spelling of scalars. Operators are kept as they are, also
    /// where the older op-set lacks them.
    pub fn to_dialect(&self, dialect: Dialect) -> Program {
        let mut program = self.clone();
        program.version = dialect.version();
        program.attributes.iter_mut().for_each(|attribute| convert_attribute(attribute, dialect));
        for function in &mut program.functions {
            function.opset = dialect.opset().to_string();
            function.inputs.iter_mut().for_each(|port| convert_port(port, dialect));
            function.attributes.iter_mut().for_each(|attribute| convert_attribute(attribute, dialect));
            for statement in &mut function.body {
                statement.outputs.iter_mut().for_each(|port| convert_port(port, dialect));
                statement.arguments.iter_mut().for_each(|(_, argument)| convert_argument(argument, dialect));
                statement.attributes.iter_mut().for_each(|attribute| convert_attribute(attribute, dialect));
            }
        }
        program
    }
}

fn convert_attribute(attribute: &mut Attribute, dialect: Dialect) {
    convert_literal(&mut attribute.value, dialect);
}

fn convert_port(port: &mut Port, dialect: Dialect) {
    convert_type(&mut port.ty, dialect);
}

fn convert_argument(argument: &mut Argument, dialect: Dialect) {
    match argument {
        Argument::Name(_) => {}
        Argument::Literal(literal) => convert_literal(literal, dialect),
        Argument::Tuple(parts) => parts.iter_mut().for_each(|part| convert_argument(part, dialect)),
    }
}

fn convert_literal(literal: &mut Literal, dialect: Dialect) {
    convert_type(&mut literal.ty, dialect);
    convert_value(&mut literal.value, dialect);
}

/// Only the entries of dicts carry types of their own inside a literal.
fn convert_value(value: &mut LiteralValue, dialect: Dialect) {
    match value {
        LiteralValue::Pairs(pairs) => {
            for (key, value) in pairs {
                convert_literal(key, dialect);
                convert_literal(value, dialect);
            }
        }
        LiteralValue::Elements(elements) => elements.iter_mut().for_each(|element| convert_value(element, dialect)),
        _ => {}
    }
}

fn convert_type(ty: &mut Type, dialect: Dialect) {
    match ty {
        Type::Scalar(dtype) if dialect == Dialect::Old => *ty = Type::tensor(*dtype, []),
        Type::Tensor(tensor) if dialect == Dialect::Modern && tensor.shape.is_empty() => *ty = Type::Scalar(tensor.dtype),
        Type::Dict(key, value) => {
            convert_type(key, dialect);
            convert_type(value, dialect);
        }
        Type::List(element, _) => convert_type(element, dialect),
        Type::Tuple(parts) => parts.iter_mut().for_each(|part| convert_type(part, dialect)),
        Type::Scalar(_) | Type::Tensor(_) | Type::State(_) => {}
    }
}
