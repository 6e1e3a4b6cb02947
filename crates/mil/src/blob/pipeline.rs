//! Writing a planned file in one pass: pieces of it are made on several threads, then hashed and written in file order.
//!
//! The system copies a file's data on one thread at a time. So each thread makes a piece in a buffer that its cache holds, waits
//! for its turn to show it, then for its turn to write it, while the other threads make the pieces behind.

use super::BlobError;
use super::format::{RECORD, header};
use super::write::{Plan, Planned, weight_error};
use crate::convert::slice_to_fp16;
use crate::{DType, WeightError};
use half::f16;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that are made and written at once; small enough to stay in a core's cache in between.
const PIECE: u64 = 512 << 10;

/// Threads that make pieces. Writing is what takes longest, so that few keep it busy.
const THREADS: usize = 4;

type Observer<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// Bytes of the file that come from one place. What no part covers is padding.
struct Part<'p> {
    start: u64,
    length: u64,
    content: Content<'p>,
}

enum Content<'p> {
    Record([u8; RECORD]),
    Stored { bytes: &'p [u8], stored: DType, blob: &'p Planned },
    Computed(&'p Planned),
}

impl Part<'_> {
    fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Writes all of `plan` to the empty `file` and shows it to `observer`, both in order.
///
/// # Errors
/// The first in file order of the weights' errors; [`BlobError::Io`].
pub(super) fn write(file: &File, plan: &Plan, observer: Observer<'_>) -> Result<(), BlobError> {
    let mut parts = vec![Part { start: 0, length: RECORD as u64, content: Content::Record(header(plan.count)) }];
    for blob in &plan.blobs {
        parts.push(Part { start: blob.offset, length: RECORD as u64, content: Content::Record(blob.descriptor.to_bytes()) });
        let content = match blob.weight.stored_bytes() {
            Some((bytes, stored)) => Content::Stored { bytes, stored, blob },
            None => Content::Computed(blob),
        };
        parts.push(Part { start: blob.descriptor.data, length: blob.descriptor.size, content });
    }
    let (mut start, mut first) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        if let Content::Computed(blob) = part.content {
            write_stored(file, plan, &parts[first..index], start..part.start, observer)?;
            write_computed(file, plan, blob, observer)?;
            (start, first) = (part.end(), index + 1);
        }
    }
    write_stored(file, plan, &parts[first..], start..plan.length, observer)
}

/// Writes the bytes in `range`, whose parts are `parts`, none of them computed.
fn write_stored(file: &File, plan: &Plan, parts: &[Part<'_>], range: Range<u64>, observer: Observer<'_>) -> Result<(), BlobError> {
    // Pieces end where the file's pages end: the system is slower with halves of them.
    let first = range.start / PIECE;
    let count = (range.end.div_ceil(PIECE) - first) as usize;
    let threads = rayon::current_num_threads().min(THREADS).min(count);
    let next = AtomicUsize::new(0);
    let (shown, written) = (Turns::new(observer), Turns::new(file));
    let work = || {
        let mut buffer = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let start = (first + index as u64) * PIECE;
            let made = make(parts, start.max(range.start)..(start + PIECE).min(range.end), &mut buffer);
            let piece = shown.take(index, |observer| made.inspect(|bytes| observer(bytes)));
            let done = piece.and_then(|bytes| written.take(index, |file| file.write_all(bytes).map_err(|error| io(plan, error))));
            if done.is_none() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    // An error of the other kind may have come later, but both are real.
    shown.into_result().and(written.into_result())
}

/// The bytes of the file in `range`: the weight's own where nothing else is in it, else put together in `buffer`.
fn make<'b>(parts: &[Part<'b>], range: Range<u64>, buffer: &'b mut Vec<f16>) -> Result<&'b [u8], BlobError> {
    let length = (range.end - range.start) as usize;
    let from = parts.partition_point(|part| part.end() <= range.start);
    if let Some(Part { start, length: held, content: Content::Stored { bytes, stored, blob } }) = parts.get(from)
        && (*start <= range.start && range.end <= start + held && *stored == blob.weight.ty().dtype)
    {
        let at = (range.start - start) as usize;
        return bytes.get(at..at + length).ok_or_else(|| failure(blob, short(bytes.len())));
    }
    if buffer.len() < length.div_ceil(2) {
        buffer.resize(length.div_ceil(2), f16::ZERO);
    }
    let mut filled = 0;
    for part in parts[from..].iter().take_while(|part| part.start < range.end) {
        let (low, high) = (part.start.max(range.start), part.end().min(range.end));
        let inside = (low - part.start) as usize..(high - part.start) as usize;
        let place = (low - range.start) as usize..(high - range.start) as usize;
        let target: &mut [u8] = bytemuck::cast_slice_mut(buffer);
        target[filled..place.start].fill(0);
        filled = place.end;
        match &part.content {
            Content::Record(record) => target[place].copy_from_slice(&record[inside]),
            Content::Stored { bytes, stored, blob } if *stored == blob.weight.ty().dtype => {
                let source = bytes.get(inside).ok_or_else(|| failure(blob, short(bytes.len())))?;
                target[place].copy_from_slice(source);
            }
            Content::Stored { bytes, stored, blob } => {
                // Every place is even here: parts start at multiples of 64 and rounded weights are fp16.
                let (first, width) = (inside.start / 2, stored.bits() / 8);
                let wide = bytes.get(first * width..inside.end / 2 * width).ok_or_else(|| failure(blob, short(bytes.len())))?;
                slice_to_fp16(wide, *stored, first, &mut buffer[place.start / 2..place.end / 2])
                    .map_err(|source| failure(blob, source))?;
            }
            Content::Computed(blob) => return Err(failure(blob, WeightError::Other("it is computed".to_string()))),
        }
    }
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(buffer);
    bytes[filled..length].fill(0);
    Ok(&bytes[..length])
}

/// Writes a weight whose elements come one after the other.
fn write_computed(mut file: &File, plan: &Plan, blob: &Planned, observer: Observer<'_>) -> Result<(), BlobError> {
    let mut held = Vec::with_capacity(PIECE.min(blob.descriptor.size) as usize);
    let mut put = |bytes: &[u8]| {
        observer(bytes);
        file.write_all(bytes)
    };
    let mut refused = None;
    let streamed = blob.weight.stream(&mut |bytes| {
        held.extend_from_slice(bytes);
        if held.len() as u64 >= PIECE {
            let result = put(&held);
            held.clear();
            result.map_err(|error| {
                let message = error.to_string();
                refused = Some(error);
                WeightError::Other(message)
            })?;
        }
        Ok(())
    });
    if let Some(error) = refused {
        return Err(io(plan, error));
    }
    streamed.map_err(|source| failure(blob, source))?;
    put(&held).map_err(|error| io(plan, error))
}

/// Something that threads use in the order of their pieces' numbers.
struct Turns<T> {
    state: Mutex<State<T>>,
    passed: Condvar,
}

struct State<T> {
    value: T,
    next: usize,
    failed: Option<BlobError>,
}

impl<T> Turns<T> {
    fn new(value: T) -> Self {
        Self { state: Mutex::new(State { value, next: 0, failed: None }), passed: Condvar::new() }
    }

    /// Waits for the turn of piece `index`, then works. `None` where this work or an earlier one failed.
    fn take<R>(&self, index: usize, work: impl FnOnce(&mut T) -> Result<R, BlobError>) -> Option<R> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State<T>| state.next != index && state.failed.is_none();
        let mut state = self.passed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        if state.failed.is_some() {
            return None;
        }
        let result = work(&mut state.value);
        state.next += 1;
        let done = match result {
            Ok(done) => Some(done),
            Err(error) => {
                state.failed = Some(error);
                None
            }
        };
        drop(state);
        self.passed.notify_all();
        done
    }

    fn into_result(self) -> Result<(), BlobError> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).failed.map_or(Ok(()), Err)
    }
}

fn failure(blob: &Planned, source: WeightError) -> BlobError {
    let source = weight_error(blob.weight.ty(), source);
    match blob.name.is_empty() {
        true => source,
        false => BlobError::Constant { name: blob.name.clone(), source: Box::new(source) },
    }
}

fn short(held: usize) -> WeightError {
    WeightError::Other(format!("its source ends after {held} bytes"))
}

fn io(plan: &Plan, source: std::io::Error) -> BlobError {
    BlobError::Io { action: "write", path: plan.path.clone(), source }
}
