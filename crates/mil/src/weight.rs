//! Constant tensors that may be larger than memory should hold: owned, mapped from a file, or computed chunk by chunk.

use crate::{DType, TensorType};
use aneforge_map::Mapping;
use half::f16;
use std::fmt;
use std::sync::Arc;

/// Elements handed over per chunk when a weight is streamed.
pub const CHUNK_ELEMENTS: usize = 64 * 1024;

/// A constant tensor, shared and never cloned per use. Streams as the little-endian bytes of `ty`.
#[derive(Clone)]
pub struct Weight {
    ty: TensorType,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Owned(Arc<Vec<u8>>),
    /// Little-endian in memory, whatever the machine is.
    Floats(Arc<Vec<f32>>),
    Mapped {
        mapping: Arc<Mapping>,
        offset: usize,
        stored: DType,
    },
    Computed(Compute),
}

/// Produces all elements in order as fp16, in chunks of any size, through the sink it is given.
pub type Compute = Arc<dyn Fn(&mut dyn FnMut(&[f16]) -> Result<(), WeightError>) -> Result<(), WeightError> + Send + Sync>;

/// Why a weight could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WeightError {
    /// The bytes behind the weight do not fill its type.
    #[error("weight of type {ty} needs {needed} bytes but its source holds {held}; check the file it comes from")]
    Size {
        /// Declared type.
        ty: String,
        /// Bytes that the type needs.
        needed: usize,
        /// Bytes that are there.
        held: usize,
    },
    /// The stored element type has no conversion to the declared one.
    #[error("weight stored as {stored} cannot be read as {wanted}; convert the file to fp16, bf16 or fp32")]
    Conversion {
        /// Element type in the file.
        stored: DType,
        /// Element type asked for.
        wanted: DType,
    },
    /// A finite number that fp16 cannot hold.
    #[error(
        "weight holds {value} at element {index}, outside fp16's range of +-65504; scale the layer or keep it out of the engine"
    )]
    Range {
        /// Offending value.
        value: f64,
        /// Flat index.
        index: usize,
    },
    /// The sink or an outer source failed.
    #[error("{0}")]
    Other(String),
}

impl Weight {
    /// A weight that owns its packed little-endian bytes.
    ///
    /// # Errors
    /// [`WeightError::Size`] where `bytes` does not fill `ty`.
    pub fn from_bytes(ty: TensorType, bytes: Vec<u8>) -> Result<Self, WeightError> {
        check_size(&ty, ty.dtype, bytes.len())?;
        Ok(Self { ty, source: Source::Owned(Arc::new(bytes)) })
    }

    /// An fp16 weight from its elements, row major.
    ///
    /// # Errors
    /// [`WeightError::Size`] where the element count differs from the shape's.
    pub fn from_fp16(shape: impl Into<Vec<usize>>, values: &[f16]) -> Result<Self, WeightError> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::from_bytes(TensorType::new(DType::Fp16, shape), bytes)
    }

    /// An fp16 weight from fp32 elements, row major, which are kept as they are and rounded, ties to even, while they are read.
    ///
    /// # Errors
    /// [`WeightError::Size`] where the element count differs from the shape's.
    pub fn from_fp32(shape: impl Into<Vec<usize>>, mut values: Vec<f32>) -> Result<Self, WeightError> {
        let ty = TensorType::new(DType::Fp16, shape);
        check_size(&ty, DType::Fp32, values.len().saturating_mul(4))?;
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|value| *value = f32::from_bits(value.to_bits().to_le()));
        }
        Ok(Self { ty, source: Source::Floats(Arc::new(values)) })
    }

    /// A weight of type `ty` read from `mapping` at `offset`, where it is stored as `stored` (the type itself, or fp32, bf16 or
    /// fp16 to be rounded to fp16, ties to even).
    ///
    /// # Errors
    /// [`WeightError::Size`] where the mapping ends too early, [`WeightError::Conversion`] for other pairs of types.
    pub fn from_mapping(ty: TensorType, stored: DType, mapping: Arc<Mapping>, offset: usize) -> Result<Self, WeightError> {
        if stored != ty.dtype && !(ty.dtype == DType::Fp16 && matches!(stored, DType::Fp32 | DType::Bf16)) {
            return Err(WeightError::Conversion { stored, wanted: ty.dtype });
        }
        let held = mapping.bytes().len().saturating_sub(offset);
        let needed = ty.checked_count().and_then(|count| (stored.bits().checked_mul(count)).map(|bits| bits.div_ceil(8)));
        match needed {
            Some(needed) if needed <= held => Ok(Self { ty, source: Source::Mapped { mapping, offset, stored } }),
            other => Err(WeightError::Size { ty: ty.to_string(), needed: other.unwrap_or(usize::MAX), held }),
        }
    }

    /// An fp16 weight computed when it is needed, for example a folded batch norm; nothing is kept between reads.
    pub fn computed(shape: impl Into<Vec<usize>>, compute: Compute) -> Self {
        Self { ty: TensorType::new(DType::Fp16, shape), source: Source::Computed(compute) }
    }

    /// Element type and shape.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The same data under another shape with the same element count.
    pub fn reshaped(&self, shape: impl Into<Vec<usize>>) -> Option<Self> {
        let ty = TensorType::new(self.ty.dtype, shape);
        (ty.checked_count() == self.ty.checked_count()).then(|| Self { ty, source: self.source.clone() })
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    /// [`WeightError::Size`] where they do not fill it, [`WeightError::Conversion`] where the weight is not held in its own type.
    pub fn seen_as(&self, ty: TensorType) -> Result<Self, WeightError> {
        let Some(bytes) = self.direct_bytes() else {
            return Err(WeightError::Conversion { stored: self.ty.dtype, wanted: ty.dtype });
        };
        check_size(&ty, ty.dtype, bytes.len())?;
        let source = match &self.source {
            Source::Mapped { mapping, offset, .. } => {
                Source::Mapped { mapping: mapping.clone(), offset: *offset, stored: ty.dtype }
            }
            source => source.clone(),
        };
        Ok(Self { ty, source })
    }

    /// Something that is equal for two weights that share their data and type, for hash-consing without reading them.
    pub fn identity(&self) -> (usize, usize, DType) {
        match &self.source {
            Source::Owned(bytes) => (Arc::as_ptr(bytes) as usize, 0, self.ty.dtype),
            Source::Floats(values) => (Arc::as_ptr(values) as usize, 0, DType::Fp32),
            Source::Mapped { mapping, offset, stored } => (Arc::as_ptr(mapping) as usize, *offset, *stored),
            Source::Computed(compute) => (Arc::as_ptr(compute).cast::<()>() as usize, 0, self.ty.dtype),
        }
    }

    /// The packed bytes themselves where the weight is held in its own type: no copy.
    pub fn direct_bytes(&self) -> Option<&[u8]> {
        self.stored_bytes().filter(|(_, stored)| *stored == self.ty.dtype).map(|(bytes, _)| bytes)
    }

    /// The packed bytes as they are stored and their element type: the weight's own, or fp32 or bf16 to be rounded to fp16.
    /// `None` where the weight is computed.
    pub(crate) fn stored_bytes(&self) -> Option<(&[u8], DType)> {
        match &self.source {
            Source::Owned(bytes) => Some((bytes.as_slice(), self.ty.dtype)),
            Source::Floats(values) => Some((bytemuck::cast_slice(values.as_slice()), DType::Fp32)),
            Source::Mapped { mapping, offset, stored } => {
                let length = stored.packed_bytes(self.ty.count());
                mapping.bytes().get(*offset..*offset + length).map(|bytes| (bytes, *stored))
            }
            Source::Computed(_) => None,
        }
    }

    /// Hands the packed little-endian bytes to `sink` in order, converting on the way; holds one chunk at a time.
    ///
    /// # Errors
    /// What the source or `sink` reports; [`WeightError::Range`] for a finite number that rounds to infinity in fp16.
    pub fn stream(&self, sink: &mut dyn FnMut(&[u8]) -> Result<(), WeightError>) -> Result<(), WeightError> {
        match (&self.source, self.stored_bytes()) {
            (_, Some((bytes, stored))) if stored == self.ty.dtype => bytes.chunks(CHUNK_ELEMENTS * 2).try_for_each(sink),
            (_, Some((bytes, stored))) => crate::convert::to_fp16(bytes, stored, sink),
            (Source::Computed(compute), None) => {
                let mut seen = 0;
                compute(&mut |values| {
                    seen += values.len();
                    sink(bytemuck::cast_slice(values))
                })?;
                check_size(&self.ty, DType::Fp16, seen * 2)
            }
            // The length was checked when the weight was made.
            (_, None) => check_size(&self.ty, self.ty.dtype, 0),
        }
    }

    /// All elements as fp16.
    ///
    /// # Errors
    /// As [`Self::stream`]; [`WeightError::Conversion`] where the weight is not fp16.
    pub fn to_fp16(&self) -> Result<Vec<f16>, WeightError> {
        if self.ty.dtype != DType::Fp16 {
            return Err(WeightError::Conversion { stored: self.ty.dtype, wanted: DType::Fp16 });
        }
        let mut values = Vec::with_capacity(self.ty.count());
        self.stream(&mut |bytes| {
            values.extend(bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])));
            Ok(())
        })?;
        Ok(values)
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Owned(_) | Source::Floats(_) => "owned",
            Source::Mapped { .. } => "mapped",
            Source::Computed(_) => "computed",
        };
        write!(f, "Weight({}, {source})", self.ty)
    }
}

impl PartialEq for Weight {
    /// Same data by identity, or the same bytes where both are at hand.
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty
            && (self.identity() == other.identity()
                || matches!((self.direct_bytes(), other.direct_bytes()), (Some(a), Some(b)) if a == b))
    }
}

fn check_size(ty: &TensorType, stored: DType, held: usize) -> Result<(), WeightError> {
    let needed = ty.checked_count().and_then(|count| stored.bits().checked_mul(count)).map_or(usize::MAX, |bits| bits.div_ceil(8));
    if needed == held { Ok(()) } else { Err(WeightError::Size { ty: ty.to_string(), needed, held }) }
}
