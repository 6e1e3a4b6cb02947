//! A place in the text and the tokens from it on.

use crate::Location;

/// Why parsing stopped, before line and column are known.
#[derive(Debug)]
pub(super) struct Failure {
    pub offset: usize,
    pub message: String,
}

pub(super) type Parsed<T> = Result<T, Failure>;

/// Reads tokens from left to right; never goes back, so parsing is linear in the text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    position: usize,
    /// The last place whose line and column were counted: `(offset, location)`.
    counted: (usize, Location),
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        // Some editors leave a byte order mark.
        let position = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, position, counted: (position, Location { line: 1, column: 1 }) }
    }

    /// The next byte that is no blank or comment; `None` at the end.
    pub fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.text.as_bytes().get(self.position).copied()
    }

    /// Offset of the next token.
    pub fn offset(&mut self) -> usize {
        self.skip_blanks();
        self.position
    }

    /// Line and column of the next token; amortised linear over all calls.
    pub fn location(&mut self) -> Location {
        let offset = self.offset();
        let (from, mut location) = self.counted;
        for character in self.text[from..offset].chars() {
            if character == '\n' {
                location = Location { line: location.line.saturating_add(1), column: 1 };
            } else {
                location.column = location.column.saturating_add(1);
            }
        }
        self.counted = (offset, location);
        location
    }

    pub fn fail<T>(&mut self, message: impl Into<String>) -> Parsed<T> {
        let offset = self.offset();
        Err(Failure { offset, message: message.into() })
    }

    /// Fails with `expected ..., found ...`.
    pub fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let found = self.describe();
        self.fail(format!("expected {expected}, found {found}"))
    }

    /// Takes a punctuation mark if it comes next.
    pub fn eat(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(mark);
        self.position += usize::from(found);
        found
    }

    pub fn expect(&mut self, mark: u8, after: &str) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { self.unexpected(&format!("{:?} {after}", char::from(mark))) }
    }

    /// The identifier that comes next, not taken.
    pub fn peek_word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let rest = &self.text.as_bytes()[self.position..];
        if !rest.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'_') {
            return None;
        }
        let length = rest.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        Some(&self.text[self.position..self.position + length])
    }

    /// Takes an identifier.
    pub fn word(&mut self, what: &str) -> Parsed<&'a str> {
        match self.peek_word() {
            Some(word) => {
                self.position += word.len();
                Ok(word)
            }
            None => self.unexpected(what),
        }
    }

    pub fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        if self.peek_word() == Some(keyword) {
            self.position += keyword.len();
            Ok(())
        } else {
            self.unexpected(&format!("{keyword:?}"))
        }
    }

    /// The byte after the identifier that comes next, blanks skipped: tells a literal `fp16(...)` from a name.
    pub fn peek_after_word(&mut self) -> Option<u8> {
        let length = self.peek_word()?.len();
        let here = self.position;
        self.position += length;
        let next = self.peek();
        self.position = here;
        next
    }

    /// The number that comes next with its sign, as written; also `inf` and `nan`.
    pub fn number(&mut self) -> Parsed<&'a str> {
        self.skip_blanks();
        let rest = &self.text.as_bytes()[self.position..];
        let sign = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
        let hex = matches!(rest.get(sign..sign + 2), Some(b"0x" | b"0X"));
        let mut length = sign;
        while let Some(&byte) = rest.get(length) {
            let exponent = if hex { b"pP" } else { b"eE" };
            let signed_exponent = length > sign && exponent.contains(&rest[length - 1]);
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || (matches!(byte, b'-' | b'+') && signed_exponent)) {
                break;
            }
            length += 1;
        }
        if length == sign {
            return self.unexpected("a number");
        }
        let word = &self.text[self.position..self.position + length];
        self.position += length;
        Ok(word)
    }

    /// Takes a quoted string and resolves its escapes.
    pub fn string(&mut self) -> Parsed<String> {
        self.expect(b'"', "that opens a string")?;
        let start = self.position;
        let mut value = String::new();
        let mut characters = self.text[start..].char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.position = start + at + 1;
                    return Ok(value);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, 'r')) => value.push('\r'),
                    Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                    Some((_, other)) => value.extend(['\\', other]),
                    None => break,
                },
                other => value.push(other),
            }
        }
        Err(Failure { offset: start - 1, message: "this string is never closed".to_string() })
    }

    fn describe(&mut self) -> String {
        match self.peek() {
            None => "the end of the text".to_string(),
            Some(_) => match self.peek_word() {
                Some(word) => format!("{:?}", word.get(..60).unwrap_or(word)),
                None => format!("{:?}", self.text[self.position..].chars().next().unwrap_or(' ')),
            },
        }
    }

    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.position).is_some_and(u8::is_ascii_whitespace) {
                self.position += 1;
            }
            let rest = &bytes[self.position..];
            if rest.starts_with(b"//") {
                self.position += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                let end = self.text[self.position + 2..].find("*/").map_or(rest.len(), |at| at + 4);
                self.position += end;
            } else {
                return;
            }
        }
    }
}
