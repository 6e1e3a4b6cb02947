//! Loading the weights of one model: every missing tensor is reported, not just the first.

use crate::{IoError, SafeTensors};
use aneforge_mil::{Weight, WeightError};
use half::f16;
use std::sync::Arc;

/// Hands out a model's weights by name and remembers which were not there.
///
/// A missing tensor is replaced by a weight that cannot be read, so that a model can be built to its end and
/// [`Self::finish`] can name all that is missing in one error.
#[derive(Debug)]
pub struct Loader<'a> {
    file: &'a SafeTensors,
    prefix: String,
    missing: Vec<String>,
}

impl<'a> Loader<'a> {
    /// A loader for one model out of `file`.
    pub fn new(file: &'a SafeTensors) -> Self {
        Self { file, prefix: String::new(), missing: Vec::new() }
    }

    /// A loader that puts `prefix` before every name.
    pub fn with_prefix(file: &'a SafeTensors, prefix: impl Into<String>) -> Self {
        Self { file, prefix: prefix.into(), missing: Vec::new() }
    }

    /// A tensor as an fp16 weight, see [`SafeTensors::weight`].
    ///
    /// # Errors
    /// [`IoError::Tensor`] where the tensor is there with another shape or element type.
    pub fn weight(&mut self, name: &str, shape: &[usize]) -> Result<Weight, IoError> {
        let name = format!("{}{name}", self.prefix);
        let found = self.file.weight(&name, shape);
        self.or_placeholder(found, shape)
    }

    /// Some rows of a tensor, see [`SafeTensors::rows`].
    ///
    /// # Errors
    /// As [`Self::weight`].
    pub fn rows(&mut self, name: &str, shape: &[usize], first: usize, count: usize) -> Result<Weight, IoError> {
        let name = format!("{}{name}", self.prefix);
        let found = self.file.rows(&name, shape, first, count);
        let part: Vec<usize> = std::iter::once(count).chain(shape.iter().skip(1).copied()).collect();
        self.or_placeholder(found, &part)
    }

    fn or_placeholder(&mut self, found: Result<Weight, IoError>, shape: &[usize]) -> Result<Weight, IoError> {
        match found {
            Err(IoError::Missing { missing, .. }) => {
                let reason = format!("tensor {} is missing", missing.join(", "));
                // A tensor of which several parts are wanted is one missing tensor.
                let new: Vec<_> = missing.into_iter().filter(|name| !self.missing.contains(name)).collect();
                self.missing.extend(new);
                Ok(Weight::computed(shape, Arc::new(move |_| Err(WeightError::Other(reason.clone())))))
            }
            other => other,
        }
    }

    /// A weight computed from the f32 values of several tensors, each `(name, shape)`, when it is read.
    ///
    /// `compute` gets the values in the order of `parts` and hands all elements of `shape` in order to its sink.
    ///
    /// # Errors
    /// As [`Self::weight`].
    pub fn computed<F>(&mut self, shape: &[usize], parts: &[(&str, &[usize])], compute: F) -> Result<Weight, IoError>
    where
        F: Fn(&[Values], &mut dyn FnMut(f64) -> Result<(), WeightError>) -> Result<(), WeightError> + Send + Sync + 'static,
    {
        let mut named = Vec::with_capacity(parts.len());
        for (name, shape) in parts {
            self.weight(name, shape)?;
            named.push((format!("{}{name}", self.prefix), shape.to_vec()));
        }
        let file = self.file.clone();
        Ok(Weight::computed(
            shape,
            Arc::new(move |sink| {
                let other = |error: IoError| WeightError::Other(error.to_string());
                let values = named
                    .iter()
                    .map(|(name, shape)| Values::new(&file, name, shape).map_err(other))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut rounder = Rounder { chunk: Vec::with_capacity(aneforge_mil::CHUNK_ELEMENTS), done: 0, sink };
                compute(&values, &mut |value| rounder.push(value))?;
                rounder.flush()
            }),
        ))
    }

    /// Ends loading.
    ///
    /// # Errors
    /// [`IoError::Missing`] with every name that was asked for in vain.
    pub fn finish(self) -> Result<(), IoError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(IoError::Missing { path: self.file.path().to_path_buf(), missing: self.missing })
    }
}

/// The float elements of one tensor, read from the mapping one at a time.
#[derive(Clone, Debug)]
pub struct Values {
    file: SafeTensors,
    offset: usize,
    count: usize,
    dtype: aneforge_mil::DType,
}

impl Values {
    fn new(file: &SafeTensors, name: &str, shape: &[usize]) -> Result<Self, IoError> {
        let info = file.expect(name, shape)?;
        file.check_float(name, info)?;
        Ok(Self { file: file.clone(), offset: info.offset, count: info.ty.count(), dtype: info.ty.dtype })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Element `index`, row major, exact in f64; 0 behind the end.
    pub fn get(&self, index: usize) -> f64 {
        let width = self.dtype.bits() / 8;
        let start = self.offset + index * width;
        let bytes = self.file.file_contents().get(start..start + width).filter(|_| index < self.count);
        match (bytes, self.dtype) {
            (Some(&[a, b, c, d]), _) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Some(&[a, b]), aneforge_mil::DType::Bf16) => half::bf16::from_le_bytes([a, b]).to_f64(),
            (Some(&[a, b]), _) => f16::from_le_bytes([a, b]).to_f64(),
            _ => 0.0,
        }
    }
}

/// Rounds to fp16 once and passes chunks on.
struct Rounder<'a> {
    chunk: Vec<f16>,
    done: usize,
    sink: &'a mut dyn FnMut(&[f16]) -> Result<(), WeightError>,
}

impl Rounder<'_> {
    fn push(&mut self, value: f64) -> Result<(), WeightError> {
        let rounded = aneforge_mil::round_to_fp16(value);
        if rounded.is_infinite() && value.is_finite() {
            return Err(WeightError::Range { value, index: self.done + self.chunk.len() });
        }
        self.chunk.push(rounded);
        if self.chunk.len() == aneforge_mil::CHUNK_ELEMENTS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), WeightError> {
        (self.sink)(&self.chunk)?;
        self.done += self.chunk.len();
        self.chunk.clear();
        Ok(())
    }
}
