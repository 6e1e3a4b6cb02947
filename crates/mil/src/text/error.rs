//! Why a text is not a MIL program, and how a place in a text is shown.

use crate::Location;
use std::fmt;

/// Characters of a source line shown around the caret; longer lines are cut.
const SHOWN: usize = 100;

/// A text is not a MIL program. `Display` gives place, message, and the source line with a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where in the text.
    pub location: Location,
    /// What was expected and what stands there.
    pub message: String,
    excerpt: String,
}

impl ParseError {
    pub(crate) fn at(text: &str, offset: usize, message: String) -> Self {
        let location = locate(text, offset);
        Self { location, message, excerpt: caret(text, location) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)?;
        if !self.excerpt.is_empty() {
            write!(f, "\n{}", self.excerpt)?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

fn locate(text: &str, offset: usize) -> Location {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() as u32 + 1;
    Location { line, column: before[line_start..].chars().count() as u32 + 1 }
}

/// The source line of `location` and below it a caret; empty where the text has no such line.
pub(crate) fn caret(text: &str, location: Location) -> String {
    let Some(line) = (location.line as usize).checked_sub(1).and_then(|index| text.split('\n').nth(index)) else {
        return String::new();
    };
    let column = location.column.saturating_sub(1) as usize;
    // Lines of generated programs can be megabytes long: show a window.
    let start = column.saturating_sub(SHOWN / 2);
    let shown: String =
        line.chars().skip(start).take(SHOWN).map(|character| if character.is_control() { ' ' } else { character }).collect();
    let (cut, width) = if start > 0 { ("...", 3) } else { ("", 0) };
    let gutter = location.line.to_string();
    format!("{gutter} | {cut}{}\n{} | {}^", shown.trim_end(), " ".repeat(gutter.len()), " ".repeat(width + column - start))
}
