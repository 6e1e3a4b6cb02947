//! Weights in the safetensors format, mapped and checked before a byte of them is used.
//!
//! The format: eight bytes with the little-endian length of a JSON header, the header, the data. The header gives each tensor's
//! `dtype`, `shape` and `data_offsets` from the start of the data. A valid file's tensors lie side by side, without gaps or
//! overlaps, and end where the file ends.

use crate::IoError;
use aneforge_map::Mapping;
use aneforge_mil::{DType, DisplayShape, TensorType, Weight};
use serde::de::{MapAccess, Visitor};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const FORMAT: &str = "safetensors";
const LENGTH_BYTES: usize = 8;
/// The limit that the format's authors set for headers.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// A safetensors file, mapped: tensors are read where they are used.
#[derive(Clone, Debug)]
pub struct SafeTensors {
    mapping: Arc<Mapping>,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: BTreeMap<String, String>,
}

/// What the header says about one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Element type and shape.
    pub ty: TensorType,
    /// Where its bytes start in the file.
    pub offset: usize,
    /// How many bytes it has.
    pub bytes: usize,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl SafeTensors {
    /// Maps a file and checks its whole header.
    ///
    /// # Errors
    /// [`IoError`] that names the file, and the tensor where one is at fault: a cut file, an unknown element type, offsets that
    /// do not fit the shape, overlap another tensor or leave the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let path = path.as_ref();
        let mapping =
            Mapping::open(path).map_err(|error| IoError::File { action: "open", path: error.path, source: error.source })?;
        let mapping = Arc::new(mapping);
        let (header, data_start) = header(path, mapping.bytes())?;
        let parsed: Header = serde_json::from_slice(header)
            .map_err(|error| IoError::format(path, FORMAT, format!("its header is not the JSON expected: {error}")))?;
        if let Some(name) = parsed.repeated {
            return Err(IoError::tensor(path, &name, "is described twice in the header"));
        }
        let held = mapping.bytes().len() - data_start;
        let mut tensors = BTreeMap::new();
        for (name, entry) in parsed.entries {
            let info = checked(path, &name, &entry, data_start, held)?;
            tensors.insert(name, info);
        }
        check_layout(path, &tensors, data_start, mapping.bytes().len())?;
        Ok(Self { mapping, tensors, metadata: parsed.metadata })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.mapping.path()
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> usize {
        self.mapping.bytes().len()
    }

    /// All tensors by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &TensorInfo)> {
        self.tensors.iter().map(|(name, info)| (name.as_str(), info))
    }

    /// The free text pairs of the header.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// What the header says about a tensor.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// The bytes of a tensor as stored.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let info = self.tensors.get(name)?;
        self.mapping.bytes().get(info.offset..info.offset + info.bytes)
    }

    /// A tensor as an fp16 weight of the given shape. fp32 and bf16 are rounded while they are read; nothing is held in memory.
    ///
    /// # Errors
    /// [`IoError::Missing`] where there is none of that name, [`IoError::Tensor`] where its shape or element type is another.
    pub fn weight(&self, name: &str, shape: &[usize]) -> Result<Weight, IoError> {
        let info = self.expect(name, shape)?;
        self.check_float(name, info)?;
        let ty = TensorType::new(DType::Fp16, shape);
        Weight::from_mapping(ty, info.ty.dtype, Arc::clone(&self.mapping), info.offset)
            .map_err(|error| IoError::tensor(self.path(), name, error.to_string()))
    }

    /// `count` rows from row `first` on of a tensor of the given shape, as an fp16 weight `[count, ...]`.
    ///
    /// # Errors
    /// As [`Self::weight`]; [`IoError::Tensor`] where the rows are not all there.
    pub fn rows(&self, name: &str, shape: &[usize], first: usize, count: usize) -> Result<Weight, IoError> {
        let info = self.expect(name, shape)?;
        self.check_float(name, info)?;
        let held = shape.first().copied().unwrap_or(0);
        if first.checked_add(count).is_none_or(|end| end > held) {
            return Err(IoError::tensor(self.path(), name, format!("has {held} rows, expected rows {first} to {first} + {count}")));
        }
        let part: Vec<usize> = std::iter::once(count).chain(shape[1..].iter().copied()).collect();
        let row_bytes = info.bytes / held.max(1);
        Weight::from_mapping(
            TensorType::new(DType::Fp16, part),
            info.ty.dtype,
            Arc::clone(&self.mapping),
            info.offset + first * row_bytes,
        )
        .map_err(|error| IoError::tensor(self.path(), name, error.to_string()))
    }

    /// The whole file.
    pub(crate) fn file_contents(&self) -> &[u8] {
        self.mapping.bytes()
    }

    /// That a tensor holds fp32, fp16 or bf16.
    pub(crate) fn check_float(&self, name: &str, info: &TensorInfo) -> Result<(), IoError> {
        if matches!(info.ty.dtype, DType::Fp32 | DType::Fp16 | DType::Bf16) {
            return Ok(());
        }
        Err(IoError::tensor(self.path(), name, format!("has dtype {}, expected fp32, fp16 or bf16", info.ty.dtype)))
    }

    pub(crate) fn expect(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo, IoError> {
        let info = self
            .tensors
            .get(name)
            .ok_or_else(|| IoError::Missing { path: self.path().to_path_buf(), missing: vec![name.to_string()] })?;
        if info.ty.shape != shape {
            let problem = format!("has shape {}, expected {}", DisplayShape(&info.ty.shape), DisplayShape(shape));
            return Err(IoError::tensor(self.path(), name, problem));
        }
        Ok(info)
    }
}

/// The header's bytes and where the data starts.
fn header<'a>(path: &Path, bytes: &'a [u8]) -> Result<(&'a [u8], usize), IoError> {
    let fail = |problem: String| IoError::format(path, FORMAT, problem);
    let length = bytes
        .first_chunk::<LENGTH_BYTES>()
        .map(|raw| u64::from_le_bytes(*raw))
        .ok_or_else(|| fail(format!("it has {} bytes, but its header's length alone takes {LENGTH_BYTES}", bytes.len())))?;
    let room = bytes.len() - LENGTH_BYTES;
    let end = usize::try_from(length).ok().filter(|&length| length <= room && length as u64 <= MAX_HEADER_BYTES);
    match end {
        Some(length) => Ok((&bytes[LENGTH_BYTES..LENGTH_BYTES + length], LENGTH_BYTES + length)),
        None => Err(fail(format!("its header claims {length} bytes, but {room} follow (limit {MAX_HEADER_BYTES})"))),
    }
}

fn checked(path: &Path, name: &str, entry: &Entry, data_start: usize, held: usize) -> Result<TensorInfo, IoError> {
    let fail = |problem: String| IoError::tensor(path, name, problem);
    let dtype = dtype(&entry.dtype).ok_or_else(|| {
        let known: Vec<_> = DTYPES.iter().map(|row| row.0).collect();
        fail(format!("has dtype {:?}, expected one of {}", entry.dtype, known.join(", ")))
    })?;
    let ty = TensorType::new(dtype, entry.shape.clone());
    let (begin, end) = entry.data_offsets;
    let needed = ty.checked_count().and_then(|count| count.checked_mul(dtype.bits() / 8));
    let needed = needed.ok_or_else(|| fail(format!("has shape {}, which no memory can hold", DisplayShape(&ty.shape))))?;
    match end.checked_sub(begin) {
        None => Err(fail(format!("has data_offsets [{begin}, {end}], expected the end not to lie before the start"))),
        Some(_) if end > held => {
            Err(fail(format!("has data_offsets [{begin}, {end}], but the file holds {held} bytes of data: is it cut off?")))
        }
        Some(bytes) if bytes != needed => Err(fail(format!(
            "has data_offsets [{begin}, {end}], that is {bytes} bytes, but {} {} takes {needed}",
            entry.dtype,
            DisplayShape(&ty.shape)
        ))),
        Some(bytes) => Ok(TensorInfo { ty, offset: data_start + begin, bytes }),
    }
}

/// Side by side, from the start of the data to the end of the file.
fn check_layout(path: &Path, tensors: &BTreeMap<String, TensorInfo>, start: usize, end: usize) -> Result<(), IoError> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by_key(|(_, info)| (info.offset, info.bytes));
    let mut at = start;
    let mut before = "the header";
    for (name, info) in order {
        if info.offset != at {
            let what = if info.offset < at { "overlaps" } else { "leaves a gap after" };
            let problem =
                format!("{what} {before}: it starts at byte {} of the data, expected {}", info.offset - start, at - start);
            return Err(IoError::tensor(path, name, problem));
        }
        at = info.offset + info.bytes;
        before = name;
    }
    if at == end {
        return Ok(());
    }
    let problem = format!("its tensors end at byte {} of the data, but the file holds {}", at - start, end - start);
    Err(IoError::format(path, FORMAT, problem))
}

/// Element types: the format's name, ours.
const DTYPES: &[(&str, DType)] = &[
    ("F32", DType::Fp32),
    ("F16", DType::Fp16),
    ("BF16", DType::Bf16),
    ("F64", DType::Fp64),
    ("I64", DType::Int64),
    ("I32", DType::Int32),
    ("I16", DType::Int16),
    ("I8", DType::Int8),
    ("U64", DType::UInt64),
    ("U32", DType::UInt32),
    ("U16", DType::UInt16),
    ("U8", DType::UInt8),
    ("BOOL", DType::Bool),
];

fn dtype(name: &str) -> Option<DType> {
    DTYPES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The header, read so that a name that stands in it twice is seen.
struct Header {
    entries: Vec<(String, Entry)>,
    metadata: BTreeMap<String, String>,
    repeated: Option<String>,
}

impl<'de> serde::Deserialize<'de> for Header {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensor descriptions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header { entries: Vec::new(), metadata: BTreeMap::new(), repeated: None };
                let mut seen = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !seen.insert(name.clone()) {
                        header.repeated.get_or_insert(name.clone());
                    }
                    if name == "__metadata__" {
                        header.metadata = map.next_value()?;
                    } else {
                        let entry =
                            map.next_value().map_err(|error| serde::de::Error::custom(format_args!("tensor {name:?}: {error}")))?;
                        header.entries.push((name, entry));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
