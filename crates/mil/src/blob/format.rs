//! The bytes of the format: header, descriptor, element type codes.

use crate::DType;

/// Boundary of descriptors and data.
pub(super) const ALIGNMENT: u64 = 64;
/// Bytes of the file header and of a descriptor.
pub(super) const RECORD: usize = 64;
/// First word of a descriptor.
pub(super) const SENTINEL: u32 = 0xDEAD_BEEF;
/// The only version.
pub(super) const VERSION: u32 = 2;

/// Element types by their code in the format. Codes 16 and 17 are 8-bit floats, which no MIL program here uses.
const CODES: &[(u32, DType)] = &[
    (1, DType::Fp16),
    (2, DType::Fp32),
    (3, DType::UInt8),
    (4, DType::Int8),
    (5, DType::Bf16),
    (6, DType::Int16),
    (7, DType::UInt16),
    (8, DType::Int4),
    (9, DType::UInt1),
    (10, DType::UInt2),
    (11, DType::UInt4),
    (12, DType::UInt3),
    (13, DType::UInt6),
    (14, DType::Int32),
    (15, DType::UInt32),
];

/// The code of an element type, if the format has one.
pub(super) fn code(dtype: DType) -> Option<u32> {
    CODES.iter().find(|row| row.1 == dtype).map(|row| row.0)
}

/// The element type of a code.
pub(super) fn dtype(code: u32) -> Option<DType> {
    CODES.iter().find(|row| row.0 == code).map(|row| row.1)
}

/// A descriptor as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub sentinel: u32,
    pub code: u32,
    /// Bytes of data.
    pub size: u64,
    /// Offset of the data from the start of the file.
    pub data: u64,
    /// Unused bits of the last byte, for elements narrower than a byte.
    pub padding_bits: u64,
}

impl Descriptor {
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0..4].copy_from_slice(&self.sentinel.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.data.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.padding_bits.to_le_bytes());
        bytes
    }

    /// `None` where fewer than 64 bytes are left.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= RECORD).then_some(())?;
        Some(Self {
            sentinel: word(bytes, 0)?,
            code: word(bytes, 4)?,
            size: double(bytes, 8)?,
            data: double(bytes, 16)?,
            padding_bits: double(bytes, 24)?,
        })
    }
}

/// The file header for a number of blobs.
pub(super) fn header(count: u32) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[0..4].copy_from_slice(&count.to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Little-endian u32 at an offset.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}
