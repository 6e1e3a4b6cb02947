//! fp16 bit patterns as text: base64 of their little-endian bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use half::f16;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// fp16 numbers by their bits, so that nothing is lost on the way through a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halves(pub Vec<u16>);

impl Halves {
    /// The bits of little-endian bytes; an odd last byte is left out.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_chunks::<2>().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect())
    }

    /// The little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|bits| bits.to_le_bytes()).collect()
    }

    /// The numbers.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f16> + '_ {
        self.0.iter().map(|&bits| f16::from_bits(bits))
    }
}

impl FromIterator<f16> for Halves {
    fn from_iter<T: IntoIterator<Item = f16>>(values: T) -> Self {
        Self(values.into_iter().map(f16::to_bits).collect())
    }
}

impl Serialize for Halves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.to_bytes()))
    }
}

impl<'de> Deserialize<'de> for Halves {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(|error| de::Error::custom(format!("fp16 bits in base64: {error}")))?;
        if bytes.len() % 2 != 0 {
            return Err(de::Error::custom(format!("fp16 bits in base64: {} bytes are no whole numbers", bytes.len())));
        }
        Ok(Self::from_bytes(&bytes))
    }
}
