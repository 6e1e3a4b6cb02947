//! Parsing of types and literals.

use super::cursor::{Cursor, Parsed};
use super::number::{int_range, parse_float, parse_int};
use crate::{DType, Literal, LiteralValue, TensorType, Type};

/// Levels of nesting that a type, a literal or a tuple may have.
pub(super) const DEPTH: usize = 48;

impl<'a> Cursor<'a> {
    pub fn descend(&mut self, depth: usize) -> Parsed<usize> {
        if depth < DEPTH { Ok(depth + 1) } else { self.fail(format!("nested more than {DEPTH} levels deep")) }
    }

    /// Whether a typed literal or a type comes next, rather than a name that looks like a type's keyword.
    pub fn at_typed_literal(&mut self) -> bool {
        let compound = matches!(self.peek_word(), Some("tensor" | "dict" | "list" | "tuple" | "state"));
        let element = self.peek_word().is_some_and(|word| DType::from_keyword(word).is_some());
        let next = self.peek_after_word();
        compound && next == Some(b'<') || element && next == Some(b'(')
    }

    pub fn ty(&mut self, depth: usize) -> Parsed<Type> {
        let depth = self.descend(depth)?;
        let Some(word) = self.peek_word() else { return self.unexpected("a type") };
        if let Some(dtype) = DType::from_keyword(word) {
            self.word("a type")?;
            return Ok(Type::Scalar(dtype));
        }
        if !matches!(word, "tensor" | "dict" | "list" | "tuple" | "state") {
            return self
                .fail(format!("unknown type {:?}; types are tensor<..>, fp16, fp32, int32, bool, string, ...", short(word)));
        }
        self.word("a type")?;
        self.expect(b'<', "after a compound type's name")?;
        let ty = match word {
            "tensor" => Type::Tensor(self.tensor_parameters()?),
            "state" => match self.ty(depth)? {
                Type::Tensor(tensor) => Type::State(tensor),
                other => return self.fail(format!("a state holds a tensor, not {other}")),
            },
            "dict" => {
                let key = self.ty(depth)?;
                self.expect(b',', "between a dict's key and value type")?;
                Type::Dict(Box::new(key), Box::new(self.ty(depth)?))
            }
            "list" => {
                let element = self.ty(depth)?;
                let length = if self.eat(b',') && !self.eat(b'?') { Some(self.extent()?) } else { None };
                Type::List(Box::new(element), length)
            }
            _ => {
                let mut parts = Vec::new();
                while self.peek() != Some(b'>') {
                    parts.push(self.ty(depth)?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                Type::Tuple(parts)
            }
        };
        self.expect(b'>', "at the end of the type")?;
        Ok(ty)
    }

    fn tensor_parameters(&mut self) -> Parsed<TensorType> {
        let Some(dtype) = self.peek_word().and_then(DType::from_keyword) else {
            return self.unexpected("an element type such as fp16");
        };
        self.word("an element type")?;
        self.expect(b',', "between element type and shape")?;
        self.expect(b'[', "before the shape")?;
        let mut shape = Vec::new();
        while self.peek() != Some(b']') {
            if self.peek() == Some(b'?') || self.peek_word().is_some() {
                return self.fail("dynamic extents are not supported; the engine runs static shapes only");
            }
            shape.push(self.extent()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', "after the shape")?;
        Ok(TensorType { dtype, shape })
    }

    pub fn extent(&mut self) -> Parsed<usize> {
        let offset = self.offset();
        let word = self.number()?;
        match word.parse::<usize>() {
            Ok(extent) => Ok(extent),
            Err(_) => Err(super::cursor::Failure { offset, message: format!("{:?} is no extent or length", short(word)) }),
        }
    }

    /// `TYPE(VALUE)`, or a bare value whose type follows from its spelling.
    pub fn literal(&mut self, depth: usize) -> Parsed<Literal> {
        if !self.at_typed_literal() {
            return self.bare_literal(depth);
        }
        let ty = self.ty(depth)?;
        self.expect(b'(', "after the literal's type")?;
        let value = self.value(&ty, depth)?;
        self.expect(b')', "after the literal's value")?;
        Ok(Literal { ty, value })
    }

    /// A value of a known type; a literal that repeats a type keeps its own.
    fn literal_of(&mut self, ty: &Type, depth: usize) -> Parsed<Literal> {
        if self.at_typed_literal() {
            return self.literal(depth);
        }
        Ok(Literal { ty: ty.clone(), value: self.value(ty, depth)? })
    }

    fn value(&mut self, ty: &Type, depth: usize) -> Parsed<LiteralValue> {
        let depth = self.descend(depth)?;
        if self.peek_word() == Some("BLOBFILE") {
            return match ty {
                Type::Scalar(_) | Type::Tensor(_) => self.blob(depth),
                other => self.fail(format!("a BLOBFILE holds a tensor, not {other}")),
            };
        }
        match ty {
            Type::Scalar(dtype) => self.scalar(*dtype),
            Type::Tensor(tensor) if tensor.shape.is_empty() => self.scalar(tensor.dtype),
            Type::Tensor(tensor) => self.elements(tensor),
            Type::Dict(key, value) => self.pairs(key, value, depth),
            Type::List(element, length) => {
                let values = self.sequence(&mut |cursor, _| cursor.part(element, depth))?;
                match length {
                    Some(length) if *length != values.len() => {
                        self.fail(format!("{ty} needs {length} elements, found {}", values.len()))
                    }
                    _ => Ok(LiteralValue::Elements(values)),
                }
            }
            Type::Tuple(parts) => {
                let values = self.sequence(&mut |cursor, index| match parts.get(index) {
                    Some(part) => cursor.part(part, depth),
                    None => cursor.fail(format!("{ty} has only {} parts", parts.len())),
                })?;
                match values.len() == parts.len() {
                    true => Ok(LiteralValue::Elements(values)),
                    false => self.fail(format!("{ty} needs {} parts, found {}", parts.len(), values.len())),
                }
            }
            Type::State(_) => self.fail("a state has no literal"),
        }
    }

    fn part(&mut self, ty: &Type, depth: usize) -> Parsed<LiteralValue> {
        let literal = self.literal_of(ty, depth)?;
        if literal.ty == *ty { Ok(literal.value) } else { self.fail(format!("expected a {ty}, found a {}", literal.ty)) }
    }

    fn sequence(&mut self, part: &mut dyn FnMut(&mut Self, usize) -> Parsed<LiteralValue>) -> Parsed<Vec<LiteralValue>> {
        let close = if self.eat(b'(') {
            b')'
        } else {
            self.expect(b'[', "before the elements")?;
            b']'
        };
        let mut values = Vec::new();
        while self.peek() != Some(close) {
            values.push(part(self, values.len())?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(close, "after the elements")?;
        Ok(values)
    }

    fn pairs(&mut self, key: &Type, value: &Type, depth: usize) -> Parsed<LiteralValue> {
        self.expect(b'{', "before a dict's entries")?;
        let mut pairs = Vec::new();
        while self.eat(b'{') {
            let first = self.literal_of(key, depth)?;
            self.expect(b',', "between key and value")?;
            let second = self.literal_of(value, depth)?;
            self.expect(b'}', "after a dict's entry")?;
            pairs.push((first, second));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "after a dict's entries")?;
        Ok(LiteralValue::Pairs(pairs))
    }

    fn blob(&mut self, depth: usize) -> Parsed<LiteralValue> {
        self.keyword("BLOBFILE")?;
        self.expect(b'(', "after BLOBFILE")?;
        let (mut path, mut offset) = (None, None);
        while self.peek() != Some(b')') {
            let field = self.word("path or offset")?;
            self.expect(b'=', "after the field's name")?;
            let value = self.literal(depth)?.value;
            match (field, value) {
                ("path", LiteralValue::Text(text)) => path = Some(text),
                ("offset", LiteralValue::Int(number)) => match u64::try_from(number) {
                    Ok(number) => offset = Some(number),
                    Err(_) => return self.fail("a BLOBFILE's offset is an unsigned 64-bit number"),
                },
                _ => return self.fail("a BLOBFILE takes path = string(..) and offset = uint64(..)"),
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after BLOBFILE's fields")?;
        match (path, offset) {
            (Some(path), Some(offset)) => Ok(LiteralValue::Blob { path, offset }),
            _ => self.fail("a BLOBFILE needs both path and offset"),
        }
    }

    fn scalar(&mut self, dtype: DType) -> Parsed<LiteralValue> {
        let offset = self.offset();
        let wrong = |message: String| Err(super::cursor::Failure { offset, message });
        if dtype == DType::String {
            return self.string().map(LiteralValue::Text);
        }
        let word = self.number()?;
        match dtype {
            DType::Bool => match word {
                "true" | "1" => Ok(LiteralValue::Bool(true)),
                "false" | "0" => Ok(LiteralValue::Bool(false)),
                _ => wrong(format!("{:?} is neither true nor false", short(word))),
            },
            _ if dtype.is_float() => match parse_float(word, dtype) {
                Some(value) => Ok(LiteralValue::Float(value)),
                None => wrong(format!("{:?} is no number", short(word))),
            },
            _ => match (parse_int(word), int_range(dtype)) {
                (Some(value), Some((low, high))) if (low..=high).contains(&value) => Ok(LiteralValue::Int(value)),
                (Some(value), _) => wrong(format!("{value} does not fit {dtype}")),
                (None, _) => wrong(format!("{:?} is no integer", short(word))),
            },
        }
    }

    /// Elements of a tensor: lists nested like the shape, or one flat list.
    fn elements(&mut self, tensor: &TensorType) -> Parsed<LiteralValue> {
        let mut values = Vec::new();
        let offset = self.offset();
        self.expect(b'[', "before a tensor's elements")?;
        if tensor.rank() > 1 && self.peek() == Some(b'[') {
            self.nested(tensor, 0, &mut values)?;
        } else {
            self.row(tensor.dtype, &mut values)?;
        }
        if tensor.checked_count() == Some(values.len()) {
            return Ok(LiteralValue::Elements(values));
        }
        let message = format!("{tensor} needs {} elements, found {}", tensor.count(), values.len());
        Err(super::cursor::Failure { offset, message })
    }

    /// The rest of a list whose opening bracket was taken, at nesting level `axis`.
    fn nested(&mut self, tensor: &TensorType, axis: usize, values: &mut Vec<LiteralValue>) -> Parsed<()> {
        self.descend(axis)?;
        let before = values.len();
        if axis + 1 == tensor.rank() {
            self.row(tensor.dtype, values)?;
            let found = values.len() - before;
            return if found == tensor.shape[axis] { Ok(()) } else { self.wrong_extent(tensor, axis, found) };
        }
        let mut found = 0;
        while self.eat(b'[') {
            self.nested(tensor, axis + 1, values)?;
            found += 1;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', "after the elements")?;
        if found == tensor.shape[axis] { Ok(()) } else { self.wrong_extent(tensor, axis, found) }
    }

    fn wrong_extent(&mut self, tensor: &TensorType, axis: usize, found: usize) -> Parsed<()> {
        self.fail(format!("{tensor} has {} elements along axis {axis}, found {found}", tensor.shape[axis]))
    }

    fn row(&mut self, dtype: DType, values: &mut Vec<LiteralValue>) -> Parsed<()> {
        while self.peek() != Some(b']') {
            values.push(self.scalar(dtype)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', "after the elements")
    }

    /// A value without a type: integers are int32, other numbers fp32, entries of a dict what the first one is.
    fn bare_literal(&mut self, depth: usize) -> Parsed<Literal> {
        let depth = self.descend(depth)?;
        match self.peek() {
            Some(b'{') => {
                let string = Type::Scalar(DType::String);
                let value = self.pairs(&string, &string, depth)?;
                Ok(Literal { ty: Type::Dict(Box::new(string.clone()), Box::new(string)), value })
            }
            Some(b'[') => {
                self.eat(b'[');
                let mut parts = Vec::new();
                while self.peek() != Some(b']') {
                    parts.push(self.bare_literal(depth)?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b']', "after the elements")?;
                match stack(parts) {
                    Some(literal) => Ok(literal),
                    None => self.fail("a list without a type needs elements of one type and shape"),
                }
            }
            Some(b'"') => Ok(Literal::text(self.string()?)),
            _ => {
                let offset = self.offset();
                let word = self.number()?;
                match word {
                    "true" => return Ok(Literal::flag(true)),
                    "false" => return Ok(Literal::flag(false)),
                    _ => {}
                }
                if let Some(value) = parse_int(word).filter(|value| i32::try_from(*value).is_ok()) {
                    return Ok(Literal::int(DType::Int32, value));
                }
                match parse_float(word, DType::Fp32) {
                    Some(value) => Ok(Literal::float(DType::Fp32, value)),
                    None => Err(super::cursor::Failure { offset, message: format!("expected a value, found {:?}", short(word)) }),
                }
            }
        }
    }
}

/// One tensor literal from the elements of a list; `None` where they differ in type.
fn stack(parts: Vec<Literal>) -> Option<Literal> {
    let Some(first) = parts.first() else {
        return Some(Literal { ty: Type::tensor(DType::Int32, [0]), value: LiteralValue::Elements(Vec::new()) });
    };
    let inner = first.ty.as_tensor()?;
    if parts.iter().any(|part| part.ty != first.ty) {
        return None;
    }
    let shape: Vec<usize> = std::iter::once(parts.len()).chain(inner.shape.iter().copied()).collect();
    let mut values = Vec::new();
    for part in parts {
        match part.value {
            LiteralValue::Elements(elements) => values.extend(elements),
            scalar => values.push(scalar),
        }
    }
    Some(Literal { ty: Type::tensor(inner.dtype, shape), value: LiteralValue::Elements(values) })
}

/// A word cut to what an error message should hold.
fn short(word: &str) -> &str {
    word.get(..40).unwrap_or(word)
}
