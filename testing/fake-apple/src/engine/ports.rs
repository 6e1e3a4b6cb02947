//! Ports in the memory of a caller: packed for programs of text, padded rows for networks of native layers.

use crate::interface::{Element, Port};
use aneforge_mil::{DType, TensorType};

/// Rows of a network's ports begin at multiples of this many bytes (eiln/ane: row stride = round up (width x 2, 64)).
const ROW: usize = 64;

/// The element types that a port can have.
fn element(dtype: DType) -> Option<Element> {
    Some(match dtype {
        DType::Fp16 => Element::F16,
        DType::Fp32 => Element::F32,
        DType::Int8 => Element::I8,
        DType::Int16 => Element::I16,
        DType::Int32 => Element::I32,
        DType::UInt8 => Element::U8,
        DType::UInt16 => Element::U16,
        DType::Bool => Element::Bool,
        _ => return None,
    })
}

/// A port whose elements lie one after the other; `None` where its element type is none of a port's.
pub fn packed(name: &str, ty: &TensorType) -> Option<Port> {
    let element = element(ty.dtype)?;
    let strides = aneforge_mil::strides(&ty.shape).iter().map(|stride| stride * element.size()).collect();
    Some(Port { name: name.to_string(), element, shape: ty.shape.clone(), strides, bytes: ty.count() * element.size() })
}

/// A port of a network: batch, channels, depth, height and width, rows padded.
pub fn padded(name: &str, ty: &TensorType) -> Option<Port> {
    let element = element(ty.dtype)?;
    let [batch, channels, height, width] = ty.shape[..] else { return None };
    let row = (width * element.size()).next_multiple_of(ROW);
    // One plane per channel; a depth of one has the planes of all channels, as the layer's order N, D, C, H, W has it.
    let plane = row * height;
    let strides = vec![plane * channels, plane, plane * channels, row, element.size()];
    let bytes = plane * channels * batch;
    Some(Port { name: name.to_string(), element, shape: vec![batch, channels, 1, height, width], strides, bytes })
}

/// Bytes of the elements alone.
pub fn packed_bytes(port: &Port) -> usize {
    port.shape.iter().product::<usize>() * port.element.size()
}

/// Whether nothing stands between the elements.
pub fn is_packed(port: &Port) -> bool {
    run(port) == packed_bytes(port)
}

/// Bytes of the longest run of neighbours.
fn run(port: &Port) -> usize {
    let mut length = port.element.size();
    for (extent, stride) in port.shape.iter().zip(&port.strides).rev() {
        if *extent == 1 {
            continue;
        }
        if *stride != length {
            break;
        }
        length *= extent;
    }
    length
}

/// Where each run begins.
fn starts(port: &Port, run: usize) -> impl Iterator<Item = usize> + '_ {
    let elements = run / port.element.size();
    (0..packed_bytes(port) / run.max(1)).map(move |index| {
        let mut element = index * elements;
        let mut place = 0;
        for (extent, stride) in port.shape.iter().zip(&port.strides).rev() {
            place += element % extent * stride;
            element /= extent;
        }
        place
    })
}

/// Takes the elements out of `memory`, one after the other.
pub fn gather(port: &Port, memory: &[u8], packed: &mut Vec<u8>) {
    packed.clear();
    let run = run(port);
    for start in starts(port, run) {
        packed.extend_from_slice(memory.get(start..start + run).unwrap_or_default());
    }
}

/// Puts elements where they belong; what stands between them is left alone.
pub fn scatter(port: &Port, packed: &[u8], memory: &mut [u8]) {
    let run = run(port);
    for (start, row) in starts(port, run).zip(packed.chunks(run.max(1))) {
        if let Some(place) = memory.get_mut(start..start + row.len()) {
            place.copy_from_slice(row);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_network_are_padded_and_elements_come_back_in_order() {
        let port = padded("x", &TensorType::new(DType::Fp16, [2, 3, 2, 5])).unwrap();
        assert_eq!((port.shape.as_slice(), port.strides.as_slice()), (&[2, 3, 1, 2, 5][..], &[384, 128, 384, 64, 2][..]));
        assert_eq!(port.bytes, 768);
        assert!(!is_packed(&port));
        let mut memory = vec![0xEE; port.bytes];
        let values: Vec<u8> = (0..120).collect();
        scatter(&port, &values, &mut memory);
        assert_eq!(memory[384 + 2 * 128 + 64 + 8..][..4], [118, 119, 0xEE, 0xEE]);
        let mut back = Vec::new();
        gather(&port, &memory, &mut back);
        assert_eq!(back, values);
    }

    #[test]
    fn text_has_packed_ports_and_so_has_a_network_with_full_rows() {
        let port = packed("x", &TensorType::new(DType::Int32, [2, 3])).unwrap();
        assert_eq!((port.strides.as_slice(), port.bytes, is_packed(&port)), (&[12, 4][..], 24, true));
        assert!(is_packed(&packed("s", &TensorType::new(DType::Fp16, [])).unwrap()));
        assert!(is_packed(&padded("x", &TensorType::new(DType::Fp16, [1, 4, 1, 32])).unwrap()));
        assert_eq!(packed("b", &TensorType::new(DType::Bf16, [2])), None);
    }
}
