//! Looks at a property list before it is built in memory: a small file can stand for a very large or a very deep value.

use super::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
use plist::Value;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::Cursor;

/// The value of a property list, XML or binary.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it has {} bytes, the limit is {MAX_BYTES}", bytes.len()));
    }
    if bytes.starts_with(b"bplist00") {
        Objects::new(bytes)?.check()?;
        return Value::from_reader(Cursor::new(bytes)).map_err(|error| error.to_string());
    }
    check_xml(bytes)?;
    Value::from_reader_xml(Cursor::new(bytes)).map_err(|error| error.to_string())
}

fn check_xml(bytes: &[u8]) -> Result<(), String> {
    let mut reader = Reader::from_reader(bytes);
    let (mut depth, mut nodes) = (0usize, 0usize);
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(_) => {
                depth += 1;
                nodes += 1;
            }
            Event::Empty(_) => nodes += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof => return Ok(()),
            _ => {}
        }
        limits(depth, nodes)?;
    }
}

fn limits(depth: usize, nodes: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
    }
    if nodes > MAX_NODES {
        return Err(format!("it has more than {MAX_NODES} elements"));
    }
    Ok(())
}

/// The object table of a binary property list. Containers hold numbers of objects, which may repeat: what the file expands to is
/// counted before it is expanded.
struct Objects<'a> {
    bytes: &'a [u8],
    offsets: Vec<usize>,
    reference_width: usize,
    root: usize,
}

const SHORT: &str = "it ends too early";

impl<'a> Objects<'a> {
    /// Reads the trailer and the table of offsets.
    fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let trailer = bytes.len().checked_sub(32).filter(|&at| at >= 8).ok_or(SHORT)?;
        let width = |at: usize| usize::from(bytes[trailer + at]);
        let (offset_width, reference_width) = (width(6), width(7));
        let [count, root, table] = [8, 16, 24].map(|at| number(&bytes[trailer + at..trailer + at + 8]));
        if !(1..=8).contains(&offset_width) || !(1..=8).contains(&reference_width) {
            return Err("its trailer has no widths".to_string());
        }
        if count > MAX_NODES {
            return Err(format!("it has more than {MAX_NODES} elements"));
        }
        let end = count.checked_mul(offset_width).and_then(|length| length.checked_add(table)).filter(|&end| end <= trailer);
        let entries = bytes.get(table..end.ok_or(SHORT)?).ok_or(SHORT)?;
        let offsets = entries.chunks(offset_width).map(number).collect();
        Ok(Self { bytes, offsets, reference_width, root })
    }

    /// Walks the containers without recursion: a container is on the path once, and every use of it counts.
    fn check(&self) -> Result<(), String> {
        let (mut nodes, mut bytes) = (1usize, 0usize);
        let mut path = vec![(self.root, self.children(self.root)?)];
        while let Some((_, rest)) = path.last_mut() {
            let Some(child) = rest.pop() else {
                path.pop();
                continue;
            };
            nodes += 1;
            limits(path.len(), nodes)?;
            bytes = bytes.saturating_add(self.length(child)?);
            if bytes as u64 > MAX_BYTES {
                return Err(format!("it expands to more than {MAX_BYTES} bytes"));
            }
            if path.iter().any(|(open, _)| *open == child) {
                return Err("an element holds itself".to_string());
            }
            let children = self.children(child)?;
            if !children.is_empty() {
                path.push((child, children));
            }
        }
        Ok(())
    }

    /// Marker of an object, its count, and where its contents begin.
    fn head(&self, object: usize) -> Result<(u8, usize, usize), String> {
        let at = *self.offsets.get(object).ok_or("it names an element that it does not have")?;
        let marker = *self.bytes.get(at).ok_or(SHORT)?;
        let (count, start) = match marker & 0xF {
            0xF => {
                let width = 1usize << (self.bytes.get(at + 1).ok_or(SHORT)? & 0xF).min(4);
                let digits = self.bytes.get(at + 2..at + 2 + width).ok_or(SHORT)?;
                (number(digits), at + 2 + width)
            }
            count => (usize::from(count), at + 1),
        };
        Ok((marker, count, start))
    }

    /// Bytes of a text or of data; 0 for other objects, which are small.
    fn length(&self, object: usize) -> Result<usize, String> {
        let (marker, count, _) = self.head(object)?;
        Ok(match marker >> 4 {
            0x4 | 0x5 => count,
            0x6 => count.saturating_mul(2),
            _ => 0,
        })
    }

    /// Objects that a container holds; none for other objects.
    fn children(&self, object: usize) -> Result<Vec<usize>, String> {
        let (marker, count, start) = self.head(object)?;
        let references = match marker >> 4 {
            0xA | 0xC => 1,
            0xD => 2,
            _ => return Ok(Vec::new()),
        };
        let length = count.checked_mul(references * self.reference_width).ok_or(SHORT)?;
        let entries = start.checked_add(length).and_then(|end| self.bytes.get(start..end)).ok_or(SHORT)?;
        Ok(entries.chunks(self.reference_width).map(number).collect())
    }
}

/// A big-endian number of up to 8 bytes; longer ones keep their last 8.
fn number(digits: &[u8]) -> usize {
    let value = digits.iter().fold(0u64, |value, &digit| value << 8 | u64::from(digit));
    usize::try_from(value).unwrap_or(usize::MAX)
}
