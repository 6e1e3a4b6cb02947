//! Text to graph.

use super::seeded::seeded;
use super::{Graph, GraphText, Tensor};
use crate::op::{self, GraphOp};
use crate::{Attribute, DType, GraphError, TensorType, Weight};
use aneforge_mil::DisplayShape;
use std::collections::HashMap;

type Parsed<T> = Result<T, GraphError>;

/// Most elements a constant in text may have: stand-ins are computed when they are read, but counted before.
const MAX_ELEMENTS: usize = 1 << 36;

pub(super) fn parse(text: &str, operators: &[&'static GraphOp]) -> Parsed<GraphText> {
    let mut reader = Reader { graph: Graph::new(), operators, nodes: HashMap::new(), outputs: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        let mut cursor = Cursor { text: line, at: 0, line: index + 1 };
        if !cursor.ended() {
            reader.statement(&mut cursor)?;
        }
    }
    Ok(GraphText { graph: reader.graph, outputs: reader.outputs })
}

struct Reader<'a> {
    graph: Graph,
    operators: &'a [&'static GraphOp],
    nodes: HashMap<u32, Vec<Tensor>>,
    outputs: Vec<(String, Tensor)>,
}

impl Reader<'_> {
    fn statement(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        if cursor.eat("output") {
            let start = cursor.at;
            let name = cursor.string()?;
            if self.outputs.iter().any(|(taken, _)| *taken == name) {
                return cursor.fail_at(start, format!("there is already an output {name:?}"));
            }
            cursor.expect("=")?;
            let tensor = self.reference(cursor)?;
            self.outputs.push((name, tensor));
            return cursor.end();
        }
        let start = cursor.at;
        cursor.expect("%").or_else(|_| cursor.fail_at(start, "a line is `%number = ...` or `output \"name\" = %number`"))?;
        let id = cursor.node()?;
        if self.nodes.contains_key(&id) {
            return cursor.fail_at(start, format!("%{id} is defined twice"));
        }
        cursor.expect("=")?;
        let start = cursor.at;
        let results = match cursor.word()? {
            "input" => {
                let name = cursor.string()?;
                let ty = cursor.ty()?;
                vec![self.graph.input(&name, ty.dtype, &ty.shape)]
            }
            "parameter" => {
                let name = cursor.string()?;
                let (weight, seed) = cursor.weight()?;
                self.seeded(self.graph.parameter(&name, weight), seed)
            }
            "constant" => self.constant(cursor)?,
            name => {
                let own = self.operators.iter().copied().find(|op| op.name == name);
                match own.or_else(|| op::find(name)) {
                    Some(op) => self.apply(cursor, op, start)?,
                    None => match op::written_here(name) {
                        Some(here) => return cursor.fail_at(start, format!("{name:?} is written as {here}")),
                        None => return cursor.fail_at(start, format!("there is no operator {name:?}; `aneforge ops` lists them")),
                    },
                }
            }
        };
        for result in &results {
            result.check().or_else(|error| cursor.fail_at(start, error.to_string()))?;
        }
        if cursor.eat("named") {
            let name = cursor.string()?;
            let _ = results[0].named(&name);
        }
        self.nodes.insert(id, results);
        cursor.end()
    }

    /// Remembers the seed of a stand-in, so that the graph prints as it was read.
    fn seeded(&self, tensor: Tensor, seed: Option<u64>) -> Vec<Tensor> {
        if let (Some(seed), Ok(port)) = (seed, tensor.port()) {
            self.graph.write().seeds.insert(port.node.0, seed);
        }
        vec![tensor]
    }

    fn constant(&mut self, cursor: &mut Cursor<'_>) -> Parsed<Vec<Tensor>> {
        let start = cursor.at;
        let ty = cursor.ty()?;
        if cursor.peek() == Some('s') {
            cursor.at = start;
            let (weight, seed) = cursor.weight()?;
            return Ok(self.seeded(self.graph.weight(weight), seed));
        }
        let values = cursor.numbers()?;
        Ok(vec![self.graph.values(ty.dtype, &ty.shape, &values)])
    }

    fn apply(&mut self, cursor: &mut Cursor<'_>, op: &'static GraphOp, start: usize) -> Parsed<Vec<Tensor>> {
        let inputs = self.inputs(cursor, op)?;
        let attributes = attributes(cursor, op)?;
        let results = self.graph.apply_lists(op, &inputs, &attributes);
        for result in &results {
            result.check().or_else(|error| cursor.fail_at(start, error.to_string()))?;
        }
        cursor.expect("->")?;
        for (index, result) in results.iter().enumerate() {
            if index > 0 {
                cursor.expect(",")?;
            }
            let place = cursor.at;
            let (declared, found) = (cursor.ty()?, result.ty()?);
            if declared != *found {
                return cursor.fail_at(place, format!("{} gives {found}, not {declared}", op.name));
            }
        }
        Ok(results)
    }

    fn inputs(&mut self, cursor: &mut Cursor<'_>, op: &'static GraphOp) -> Parsed<Vec<Vec<Tensor>>> {
        let mut inputs: Vec<Vec<Tensor>> = vec![Vec::new(); op.inputs.len()];
        cursor.expect("(")?;
        while !cursor.eat(")") {
            let start = cursor.at;
            let name = cursor.word()?;
            let Some(port) = op.input(name) else {
                let known: Vec<_> = op.inputs.iter().map(|input| input.name).collect();
                return cursor.fail_at(start, format!("{} has no input {name:?}; it takes {}", op.name, known.join(", ")));
            };
            if !inputs[port].is_empty() {
                return cursor.fail_at(start, format!("input {name:?} is given twice"));
            }
            cursor.expect("=")?;
            if cursor.eat("(") {
                loop {
                    let tensor = self.reference(cursor)?;
                    inputs[port].push(tensor);
                    if !cursor.eat(",") {
                        break;
                    }
                }
                cursor.expect(")")?;
            } else {
                let tensor = self.reference(cursor)?;
                inputs[port].push(tensor);
            }
            if cursor.peek() != Some(')') {
                cursor.expect(",")?;
            }
        }
        Ok(inputs)
    }

    fn reference(&self, cursor: &mut Cursor<'_>) -> Parsed<Tensor> {
        cursor.skip();
        let start = cursor.at;
        cursor.expect("%")?;
        let id = cursor.node()?;
        let output = if cursor.rest().starts_with('.') {
            cursor.expect(".")?;
            cursor.number::<usize>("a result number")?
        } else {
            0
        };
        match self.nodes.get(&id) {
            None => cursor.fail_at(start, format!("%{id} is not defined above")),
            Some(results) => match results.get(output) {
                Some(tensor) => Ok(tensor.clone()),
                None => cursor.fail_at(start, format!("%{id} has {} results, counted from 0", results.len())),
            },
        }
    }
}

fn attributes(cursor: &mut Cursor<'_>, op: &'static GraphOp) -> Parsed<Vec<(&'static str, Attribute)>> {
    let mut attributes = Vec::new();
    cursor.expect("[")?;
    while !cursor.eat("]") {
        let start = cursor.at;
        let name = cursor.word()?;
        let Some(spec) = op.attribute(name).map(|index| &op.attributes[index]) else {
            let known: Vec<_> = op.attributes.iter().map(|attribute| attribute.name).collect();
            return cursor.fail_at(start, format!("{} has no attribute {name:?}; it takes {}", op.name, known.join(", ")));
        };
        cursor.expect("=")?;
        attributes.push((spec.name, cursor.attribute()?));
        if cursor.peek() != Some(']') {
            cursor.expect(",")?;
        }
    }
    Ok(attributes)
}

/// A place in one line.
struct Cursor<'a> {
    text: &'a str,
    /// Byte offset, always between characters.
    at: usize,
    line: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.rest().chars().next()
    }

    fn ended(&mut self) -> bool {
        matches!(self.peek(), None | Some('#'))
    }

    fn end(&mut self) -> Parsed<()> {
        if self.ended() { Ok(()) } else { self.fail("expected the end of the line") }
    }

    /// Takes `token` if it comes next; a word only where it ends there.
    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let follows = self.rest().get(token.len()..).and_then(|rest| rest.chars().next());
        let whole = !token.ends_with(is_word) || !follows.is_some_and(is_word);
        let found = self.rest().starts_with(token) && whole;
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.fail(format!("expected `{token}`")) }
    }

    fn fail<T>(&mut self, message: impl Into<String>) -> Parsed<T> {
        self.skip();
        self.fail_at(self.at, message)
    }

    fn fail_at<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        let before = self.text.get(..at).unwrap_or(self.text);
        let blanks = self.text.get(at..).map_or(0, |rest| rest.chars().take_while(|c| c.is_whitespace()).count());
        Err(GraphError::Text { line: self.line, column: before.chars().count() + blanks + 1, message: message.into() })
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        self.skip();
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn word(&mut self) -> Parsed<&'a str> {
        let word = self.take(is_word);
        if word.is_empty() { self.fail("expected a word") } else { Ok(word) }
    }

    /// A node number; it ends at the point of `%5.1`.
    fn node(&mut self) -> Parsed<u32> {
        self.skip();
        let start = self.at;
        self.take(|c| c.is_ascii_digit()).parse().or_else(|_| self.fail_at(start, "expected a node number"))
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        self.skip();
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        digits.parse().or_else(|_| self.fail_at(start, format!("expected {what}")))
    }

    fn string(&mut self) -> Parsed<String> {
        self.expect("\"")?;
        let start = self.at;
        let mut text = String::new();
        let mut rest = self.rest().char_indices();
        while let Some((at, c)) = rest.next() {
            match c {
                '"' => {
                    self.at = start + at + 1;
                    return Ok(text);
                }
                '\\' => match rest.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, 'u')) => {
                        let code: String =
                            rest.by_ref().map(|(_, c)| c).skip_while(|&c| c == '{').take_while(|&c| c != '}').collect();
                        match u32::from_str_radix(&code, 16).ok().and_then(char::from_u32) {
                            Some(c) => text.push(c),
                            None => return self.fail_at(start + at, "expected \\u{hex}"),
                        }
                    }
                    _ => return self.fail_at(start + at, "expected one of \\\", \\\\ and \\u{hex}"),
                },
                c => text.push(c),
            }
        }
        self.fail_at(start, "the string does not end on its line")
    }

    fn ty(&mut self) -> Parsed<TensorType> {
        self.expect("tensor")?;
        self.expect("<")?;
        self.skip();
        let start = self.at;
        let word = self.word()?;
        let Some(dtype) = DType::from_keyword(word).filter(|&dtype| dtype != DType::String) else {
            return self.fail_at(start, format!("{word:?} is no element type"));
        };
        self.expect(",")?;
        self.expect("[")?;
        let mut shape = Vec::new();
        while !self.eat("]") {
            shape.push(self.number::<usize>("an extent")?);
            if self.peek() != Some(']') {
                self.expect(",")?;
            }
        }
        self.expect(">")?;
        let ty = TensorType::new(dtype, shape);
        match ty.checked_count() {
            Some(count) if count <= MAX_ELEMENTS => Ok(ty),
            _ => self.fail_at(start, format!("shape {} is too large", DisplayShape(&ty.shape))),
        }
    }

    /// A type and its data.
    fn weight(&mut self) -> Parsed<(Weight, Option<u64>)> {
        let start = self.at;
        let ty = self.ty()?;
        if self.eat("seeded") {
            if ty.dtype != DType::Fp16 && ty.count() > 1 << 28 {
                return self.fail_at(start, "a stand-in of this type is held in memory and too large");
            }
            self.expect("(")?;
            let seed = self.number::<u64>("a seed")?;
            self.expect(")")?;
            let weight = seeded(&ty, seed).or_else(|error| self.fail_at(start, error.to_string()))?;
            return Ok((weight, Some(seed)));
        }
        let place = self.at;
        let values = self.numbers()?;
        let array = crate::HostArray::from_f64(ty.dtype, ty.shape.clone(), &values);
        let weight = array
            .map_err(|error| error.to_string())
            .and_then(|array| Weight::from_bytes(ty, array.into_bytes()).map_err(|error| error.to_string()));
        Ok((weight.or_else(|message| self.fail_at(place, message))?, None))
    }

    fn numbers(&mut self) -> Parsed<Vec<f64>> {
        self.expect("[")?;
        let mut values = Vec::new();
        while !self.eat("]") {
            values.push(self.number::<f64>("a number")?);
            if self.peek() != Some(']') {
                self.expect(",")?;
            }
        }
        Ok(values)
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        match self.peek() {
            Some('"') => Ok(Attribute::from(self.string()?.as_str())),
            Some('[') => {
                self.expect("[")?;
                let mut values = Vec::new();
                while !self.eat("]") {
                    values.push(self.number::<i64>("an integer")?);
                    if self.peek() != Some(']') {
                        self.expect(",")?;
                    }
                }
                Ok(Attribute::from(values))
            }
            _ if self.eat("true") => Ok(Attribute::Flag(true)),
            _ if self.eat("false") => Ok(Attribute::Flag(false)),
            _ => {
                let start = self.at;
                if let Ok(integer) = self.number::<i64>("an integer") {
                    return Ok(Attribute::Int(integer));
                }
                self.at = start;
                self.number::<f64>("a number, a word in quotes, true, false or a list of integers").map(Attribute::Float)
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
