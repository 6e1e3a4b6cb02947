//! Printing: data to standard output, the rest to standard error.

use crate::failure::Failure;
use serde::Serialize;
use std::io::Write;

/// Version of the layout of every `--json` object.
pub const SCHEMA: u32 = 1;

/// Prints data in one go.
pub fn data(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints an object with its layout's version first.
pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    bare_json(&Versioned { schema: SCHEMA, value })
}

/// Prints JSON as it is.
pub fn bare_json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::input(&error))?;
    data(&text)
}

/// Prints a line for people; where that is not possible there is nobody to tell.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Lines up columns; all but those in `right` to the left, the last one unpadded.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A shape as people write it.
pub fn shape(shape: &[usize]) -> String {
    aneforge::mil::DisplayShape(shape).to_string()
}

/// A number of bytes with a unit.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
