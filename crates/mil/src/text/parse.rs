//! Parsing of programs, functions and statements.

use super::ParseError;
use super::cursor::{Cursor, Parsed};
use crate::{Argument, Attribute, Function, Port, Program, Statement};
use std::str::FromStr;

/// Reads a program. Accepts both dialects, decimal and hex numbers, any spacing, comments (`//` and `/* */`), attributes in any
/// order, and arguments without a type; [`super::print`] writes one canonical form of all of it.
///
/// Takes time and memory in proportion to the text, whatever it holds.
///
/// # Errors
/// [`ParseError`] at the first place where the text is no program.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    let mut cursor = Cursor::new(text);
    cursor.program().map_err(|failure| ParseError::at(text, failure.offset, failure.message))
}

impl FromStr for Program {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text)
    }
}

impl Cursor<'_> {
    fn program(&mut self) -> Parsed<Program> {
        self.keyword("program")?;
        self.expect(b'(', "after \"program\"")?;
        let version = self.version()?;
        self.expect(b')', "after the version")?;
        let attributes = self.attributes()?;
        self.expect(b'{', "before the functions")?;
        let mut functions = Vec::new();
        while self.peek() != Some(b'}') {
            functions.push(self.function()?);
        }
        self.expect(b'}', "after the functions")?;
        match self.peek() {
            None => Ok(Program { version, attributes, functions }),
            Some(_) => self.unexpected("the end of the text after the program"),
        }
    }

    fn version(&mut self) -> Parsed<(u32, u32)> {
        let word = self.number()?;
        let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Ok((major, minor)),
            _ => self.fail("a version is two numbers, such as program(1.3)"),
        }
    }

    fn attributes(&mut self) -> Parsed<Vec<Attribute>> {
        let mut attributes = Vec::new();
        while self.eat(b'[') {
            while self.peek() != Some(b']') {
                let name = self.word("an attribute's name")?.to_string();
                self.expect(b'=', "after an attribute's name")?;
                attributes.push(Attribute { name, value: self.literal(0)? });
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b']', "after the attributes")?;
        }
        Ok(attributes)
    }

    fn function(&mut self) -> Parsed<Function> {
        self.keyword("func")?;
        let name = self.word("the function's name")?.to_string();
        self.expect(b'<', "before the function's op-set")?;
        let opset = self.word("an op-set such as ios18")?.to_string();
        self.expect(b'>', "after the function's op-set")?;
        self.expect(b'(', "before the function's inputs")?;
        let mut inputs = Vec::new();
        while self.peek() != Some(b')') {
            inputs.push(self.port()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the function's inputs")?;
        let attributes = self.attributes()?;
        self.expect(b'{', "before the statements")?;
        let mut body = Vec::new();
        while self.peek() != Some(b'}') {
            body.push(self.statement()?);
        }
        self.expect(b'}', "after the statements")?;
        self.expect(b'-', "before the outputs (\"-> (y);\")")?;
        self.expect(b'>', "before the outputs (\"-> (y);\")")?;
        self.expect(b'(', "before the outputs")?;
        let mut outputs = Vec::new();
        while self.peek() != Some(b')') {
            outputs.push(self.word("an output's name")?.to_string());
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the outputs")?;
        self.eat(b';');
        Ok(Function { name, opset, inputs, attributes, body, outputs })
    }

    fn port(&mut self) -> Parsed<Port> {
        let ty = self.ty(0)?;
        Ok(Port { name: self.word("a name after the type")?.to_string(), ty })
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let location = self.location();
        let mut outputs = Vec::new();
        // An operator alone has effects and no results: write_state(...).
        if self.peek_after_word() != Some(b'(') {
            outputs.push(self.port()?);
            while self.eat(b',') {
                outputs.push(self.port()?);
            }
            self.expect(b'=', "after the results")?;
        }
        let op = self.word("an operator")?.to_string();
        self.expect(b'(', "after the operator")?;
        let mut arguments = Vec::new();
        while self.peek() != Some(b')') {
            let name = self.word("an argument's name")?.to_string();
            self.expect(b'=', "after an argument's name")?;
            arguments.push((name, self.argument(0)?));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the arguments")?;
        let attributes = self.attributes()?;
        self.expect(b';', "after the statement")?;
        Ok(Statement { outputs, op, arguments, attributes, location })
    }

    fn argument(&mut self, depth: usize) -> Parsed<Argument> {
        if self.eat(b'(') {
            let depth = self.descend(depth)?;
            let mut parts = Vec::new();
            while self.peek() != Some(b')') {
                parts.push(self.argument(depth)?);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')', "after the tuple")?;
            return Ok(Argument::Tuple(parts));
        }
        match self.peek_word() {
            Some("true" | "false") => self.literal(depth).map(Argument::Literal),
            Some(_) if !self.at_typed_literal() => Ok(Argument::Name(self.word("a name")?.to_string())),
            _ => self.literal(depth).map(Argument::Literal),
        }
    }
}
