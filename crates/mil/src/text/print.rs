//! The printer: one canonical spelling of a program.

use super::Dialect;
use super::number::format_float;
use crate::{Argument, Attribute, Function, Literal, LiteralValue, Port, Program, Statement, Type};
use std::fmt::{self, Write};

/// The text of a program, one statement per line, numbers exact: floats in hex, types as the data says them.
pub fn print(program: &Program) -> String {
    program.to_string()
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program({}.{})", self.version.0, self.version.1)?;
        let mut printer = Printer { out: f, dialect: Dialect::of(self) };
        if !self.attributes.is_empty() {
            printer.attributes(&self.attributes)?;
            printer.out.write_char('\n')?;
        }
        printer.out.write_str("{\n")?;
        for function in &self.functions {
            printer.function(function)?;
        }
        printer.out.write_str("}\n")
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { out: f, dialect: Dialect::Modern }.literal(self)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { out: f, dialect: Dialect::Modern }.statement(self)
    }
}

struct Printer<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    dialect: Dialect,
}

impl Printer<'_, '_> {
    fn function(&mut self, function: &Function) -> fmt::Result {
        write!(self.out, "    func {}<{}>(", function.name, function.opset)?;
        self.list(&function.inputs, Self::port)?;
        self.out.write_str(") ")?;
        if !function.attributes.is_empty() {
            self.attributes(&function.attributes)?;
            self.out.write_char(' ')?;
        }
        self.out.write_str("{\n")?;
        for statement in &function.body {
            self.out.write_str("        ")?;
            self.statement(statement)?;
            self.out.write_char('\n')?;
        }
        self.out.write_str("    } -> (")?;
        self.list(&function.outputs, |printer, name| printer.out.write_str(name))?;
        self.out.write_str(");\n")
    }

    fn port(&mut self, port: &Port) -> fmt::Result {
        write!(self.out, "{} {}", port.ty, port.name)
    }

    fn statement(&mut self, statement: &Statement) -> fmt::Result {
        self.list(&statement.outputs, Self::port)?;
        let equals = if statement.outputs.is_empty() { "" } else { " = " };
        write!(self.out, "{equals}{}(", statement.op)?;
        self.list(&statement.arguments, |printer, (name, value)| {
            write!(printer.out, "{name} = ")?;
            printer.argument(value)
        })?;
        self.out.write_char(')')?;
        if !statement.attributes.is_empty() {
            self.attributes(&statement.attributes)?;
        }
        self.out.write_char(';')
    }

    fn argument(&mut self, argument: &Argument) -> fmt::Result {
        match argument {
            Argument::Name(name) => self.out.write_str(name),
            Argument::Literal(literal) => self.literal(literal),
            Argument::Tuple(parts) => {
                self.out.write_char('(')?;
                self.list(parts, Self::argument)?;
                self.out.write_char(')')
            }
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) -> fmt::Result {
        self.out.write_char('[')?;
        self.list(attributes, |printer, attribute| {
            write!(printer.out, "{} = ", attribute.name)?;
            printer.literal(&attribute.value)
        })?;
        self.out.write_char(']')
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        write!(self.out, "{}(", literal.ty)?;
        self.value(&literal.ty, &literal.value)?;
        self.out.write_char(')')
    }

    /// A value inside a literal of type `ty`, which it does not repeat.
    fn value(&mut self, ty: &Type, value: &LiteralValue) -> fmt::Result {
        match value {
            LiteralValue::Bool(flag) => write!(self.out, "{flag}"),
            LiteralValue::Int(number) => write!(self.out, "{number}"),
            LiteralValue::Float(number) => self.out.write_str(&format_float(*number)),
            LiteralValue::Text(text) => self.text(text),
            LiteralValue::Elements(elements) => self.elements(ty, elements),
            LiteralValue::Pairs(pairs) => {
                self.out.write_char('{')?;
                self.list(pairs, |printer, (first, second)| {
                    let (key, value) = match ty {
                        Type::Dict(key, value) => (Some(&**key), Some(&**value)),
                        _ => (None, None),
                    };
                    printer.out.write_char('{')?;
                    printer.entry(key, first)?;
                    printer.out.write_str(", ")?;
                    printer.entry(value, second)?;
                    printer.out.write_char('}')
                })?;
                self.out.write_char('}')
            }
            LiteralValue::Blob { path, offset } => {
                let (string, number) = match self.dialect {
                    Dialect::Modern => ("string", "uint64"),
                    Dialect::Old => ("tensor<string, []>", "tensor<uint64, []>"),
                };
                write!(self.out, "BLOBFILE(path = {string}(")?;
                self.text(path)?;
                write!(self.out, "), offset = {number}({offset}))")
            }
        }
    }

    fn entry(&mut self, expected: Option<&Type>, literal: &Literal) -> fmt::Result {
        if expected == Some(&literal.ty) { self.value(&literal.ty, &literal.value) } else { self.literal(literal) }
    }

    fn elements(&mut self, ty: &Type, elements: &[LiteralValue]) -> fmt::Result {
        match ty {
            Type::Tensor(tensor) if tensor.checked_count() == Some(elements.len()) && !elements.is_empty() => {
                self.nested(ty, &tensor.shape, elements)
            }
            Type::Tuple(parts) => {
                self.out.write_char('(')?;
                let typed: Vec<_> = parts.iter().zip(elements).collect();
                self.list(&typed, |printer, (part, element)| printer.value(part, element))?;
                self.out.write_char(')')
            }
            _ => {
                let element_type = if let Type::List(element, _) = ty { element } else { ty };
                self.out.write_char('[')?;
                self.list(elements, |printer, element| printer.value(element_type, element))?;
                self.out.write_char(']')
            }
        }
    }

    fn nested(&mut self, ty: &Type, shape: &[usize], elements: &[LiteralValue]) -> fmt::Result {
        let Some((&extent, inner)) = shape.split_first() else {
            return elements.iter().try_for_each(|element| self.value(ty, element));
        };
        let parts: Vec<_> = elements.chunks((elements.len() / extent.max(1)).max(1)).collect();
        self.out.write_char('[')?;
        self.list(&parts, |printer, part| printer.nested(ty, inner, part))?;
        self.out.write_char(']')
    }

    fn text(&mut self, text: &str) -> fmt::Result {
        self.out.write_char('"')?;
        for character in text.chars() {
            match character {
                '"' => self.out.write_str("\\\"")?,
                '\\' => self.out.write_str("\\\\")?,
                '\n' => self.out.write_str("\\n")?,
                '\t' => self.out.write_str("\\t")?,
                '\r' => self.out.write_str("\\r")?,
                other => self.out.write_char(other)?,
            }
        }
        self.out.write_char('"')
    }

    fn list<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T) -> fmt::Result) -> fmt::Result {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.write_str(", ")?;
            }
            print(self, item)?;
        }
        Ok(())
    }
}
