//! Arrays in numpy's `.npy` format, versions 1 to 3, little endian and row major.

use crate::{IoError, write_whole};
use aneforge_mil::{DType, DisplayShape, TensorType};
use half::f16;
use std::path::Path;

const FORMAT: &str = "npy";
const MAGIC: &[u8] = b"\x93NUMPY";
/// numpy pads headers so that the data starts at a multiple of this.
const ALIGNMENT: usize = 64;

/// An array as a file holds it: type and packed little-endian bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyArray {
    /// Element type and shape.
    pub ty: TensorType,
    /// Packed elements, row major.
    pub bytes: Vec<u8>,
}

/// Element types: numpy's descriptor, ours.
const DESCRIPTORS: &[(&str, DType)] = &[
    ("<f2", DType::Fp16),
    ("<f4", DType::Fp32),
    ("<f8", DType::Fp64),
    ("<i4", DType::Int32),
    ("<i8", DType::Int64),
    ("<i2", DType::Int16),
    ("|i1", DType::Int8),
    ("|u1", DType::UInt8),
    ("<u2", DType::UInt16),
    ("<u4", DType::UInt32),
    ("|b1", DType::Bool),
];

impl NpyArray {
    /// An f32 array; `values` must fill `shape`.
    pub fn from_f32(shape: impl Into<Vec<usize>>, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { ty: TensorType::new(DType::Fp32, shape), bytes }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`IoError::File`], or [`IoError::Format`] for anything but a whole, little-endian, row-major array of a known type.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(IoError::file("read", path))?;
        Self::decode(&bytes).map_err(|problem| IoError::format(path, FORMAT, problem))
    }

    /// Reads the bytes of a file; the error says what is wrong.
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not start with the format's mark")?;
        let (header, data) = match rest {
            [1, _, a, b, rest @ ..] => split(rest, usize::from(u16::from_le_bytes([*a, *b]))),
            [2 | 3, _, a, b, c, d, rest @ ..] => split(rest, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
            [major, minor, ..] => return Err(format!("its version is {major}.{minor}, expected 1, 2 or 3")),
            _ => None,
        }
        .ok_or("it ends inside its header")?;
        let header = std::str::from_utf8(header).map_err(|_| "its header is not text")?;
        let descriptor = field(header, "descr")?;
        let descriptor = descriptor.trim_matches(['\'', '"']);
        let dtype = DESCRIPTORS.iter().find(|row| row.0 == descriptor).map(|row| row.1).ok_or_else(|| {
            let known: Vec<_> = DESCRIPTORS.iter().map(|row| row.0).collect();
            format!("its element type is {descriptor:?}, expected one of {}", known.join(", "))
        })?;
        if field(header, "fortran_order")? != "False" {
            return Err("it is in column-major order; save np.ascontiguousarray(...)".to_string());
        }
        let ty = TensorType::new(dtype, shape(field(header, "shape")?)?);
        let needed = ty.checked_count().and_then(|count| count.checked_mul(dtype.bits() / 8));
        if needed != Some(data.len()) {
            let needed = needed.map_or("more than memory can hold".to_string(), |needed| needed.to_string());
            return Err(format!("it holds {} bytes of data, but {ty} takes {needed}", data.len()));
        }
        Ok(Self { ty, bytes: data.to_vec() })
    }

    /// The bytes of a version 1 file.
    ///
    /// # Errors
    /// Says so where numpy has no such element type or the bytes do not fill the shape.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let descriptor = DESCRIPTORS.iter().find(|row| row.1 == self.ty.dtype).map(|row| row.0);
        let descriptor = descriptor.ok_or_else(|| format!("numpy has no element type {}", self.ty.dtype))?;
        if Some(self.bytes.len()) != self.ty.checked_count().map(|count| self.ty.dtype.packed_bytes(count)) {
            return Err(format!("{} bytes do not fill {}", self.bytes.len(), self.ty));
        }
        let extents: String = self.ty.shape.iter().map(|extent| format!("{extent}, ")).collect();
        let shape = if self.ty.shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
        let mut header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({shape}), }}");
        let before = MAGIC.len() + 4;
        let padding = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - (before + header.len() + 1);
        header.extend(std::iter::repeat_n(' ', padding));
        header.push('\n');
        let length = u16::try_from(header.len()).map_err(|_| "the shape is too long for a header".to_string())?;
        let mut bytes = Vec::with_capacity(before + header.len() + self.bytes.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&self.bytes);
        Ok(bytes)
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// [`IoError::File`], or [`IoError::Format`] where numpy has no such element type.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), IoError> {
        let path = path.as_ref();
        let bytes = self.encode().map_err(|problem| IoError::format(path, FORMAT, problem))?;
        write_whole(path, &bytes)
    }

    /// The elements as f32, rounded to nearest where f32 is narrower.
    pub fn to_f32(&self) -> Vec<f32> {
        let count = self.ty.count();
        match self.ty.dtype {
            DType::Fp32 => self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            DType::Fp16 => self.bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
            dtype => {
                aneforge_mil::unpack(dtype, &self.bytes, count).unwrap_or_default().into_iter().map(|value| value as f32).collect()
            }
        }
    }
}

fn split(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(at)
}

/// The text of one value of the header, which is a Python dict written on one line.
fn field<'a>(header: &'a str, name: &str) -> Result<&'a str, String> {
    let fail = || format!("its header has no {name:?}: {:?}", header.trim());
    let at = ['\'', '"'].iter().find_map(|quote| {
        let key = format!("{quote}{name}{quote}");
        header.find(&key).map(|at| at + key.len())
    });
    let rest = header[at.ok_or_else(fail)?..].trim_start().strip_prefix(':').ok_or_else(fail)?.trim_start();
    let end = match rest.strip_prefix('(') {
        Some(inner) => inner.find(')').map(|at| at + 2),
        None => rest.find([',', '}']),
    };
    rest.get(..end.ok_or_else(fail)?).map(str::trim_end).ok_or_else(fail)
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let parts = inner.map(|inner| inner.split(',').map(str::trim).filter(|part| !part.is_empty()));
    let shape = parts.and_then(|parts| parts.map(|part| part.parse().ok()).collect::<Option<Vec<usize>>>());
    shape.ok_or_else(|| format!("its shape is {text:?}, expected a tuple of sizes"))
}

impl std::fmt::Display for NpyArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.ty.dtype, DisplayShape(&self.ty.shape))
    }
}
