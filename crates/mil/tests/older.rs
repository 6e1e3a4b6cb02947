//! The forms of iOS 16 of compressed weights are read as those of iOS 18.
#![allow(clippy::unwrap_used)]

use aneforge_mil::op::{Arguments, builtin};
use aneforge_mil::{BlobFileWriter, BlobFolder, BlobSource, Body, DType, NoBlobs, TensorType, parse, resolve};

fn resolved(statements: &str, blobs: &dyn BlobSource) -> Result<Body, String> {
    let text = format!("program(1.0)\n{{\n    func main<ios16>(tensor<fp16, [1]> x) {{\n{statements}\n    }} -> (w);\n}}\n");
    let body = resolve(&parse(&text).unwrap(), "main", builtin(), blobs).map_err(|error| error.to_string())?;
    body.verify().unwrap();
    Ok(body)
}

/// What the only operation of a body gives.
fn expanded(body: &Body) -> Vec<f64> {
    let operation = &body.operations[0];
    let ports = body.argument_ports(&operation.arguments);
    (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports }).unwrap()[0].data.clone()
}

/// The example of coremltools 9.0's documentation: two bytes hold five indices of two bits, the first in the lowest bits.
#[test]
fn packed_indices_with_a_shape_beside_them() {
    let body = resolved(
        "tensor<fp16, [5]> w = constexpr_lut_to_dense()[indices = tensor<uint8, [2]>([108, 3]), \
         lut = tensor<fp16, [4]>([0x1p0, 0x1p1, 0x1p2, 0x1p3]), shape = tensor<uint32, [1]>([5])];",
        &NoBlobs,
    )
    .unwrap();
    assert_eq!(expanded(&body), [1.0, 8.0, 4.0, 2.0, 8.0]);
    assert_eq!(body.ty(body.operations[0].arguments[0].values()[0]), &TensorType::new(DType::UInt2, [5]));
}

#[test]
fn a_mask_of_bits_with_a_shape_beside_it() {
    let body = resolved(
        "tensor<uint8, [2]> bits = const()[val = tensor<uint8, [2]>([6, 1])];
         tensor<fp16, [3, 3]> w = constexpr_sparse_to_dense(nonzero_data = tensor<fp16, [3]>([0x1p0, 0x1p1, 0x1p2]), mask = bits, \
         shape = tensor<uint32, [2]>([3, 3]));",
        &NoBlobs,
    )
    .unwrap();
    assert_eq!(expanded(&body), [0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0]);
}

/// Indices in a weight file stay there: the bytes are not copied, only seen as another type.
#[test]
fn indices_of_a_weight_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
    let offset = writer.blobs().unwrap().add_bytes(&TensorType::new(DType::UInt8, [4]), &[0x10, 0x32, 0x54, 0x76]).unwrap();
    writer.finish().unwrap();
    let entries: Vec<_> = (0..16).map(|entry| format!("{entry}.0")).collect();
    let body = resolved(
        &format!(
            "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense()[indices = tensor<uint8, [4]>(BLOBFILE(path = tensor<string, []>\
             (\"@model_path/weights.bin\"), offset = tensor<uint64, []>({offset}))), lut = tensor<fp16, [16]>([{}]), \
             shape = tensor<uint32, [2]>([2, 4])];",
            entries.join(", ")
        ),
        &BlobFolder::new(folder.path()),
    )
    .unwrap();
    assert_eq!(expanded(&body), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn wrong_bytes_tables_and_shapes_name_the_argument() {
    let told = |indices: &str, lut: &str, shape: &str| {
        resolved(
            &format!("tensor<fp16, [5]> w = constexpr_lut_to_dense()[indices = {indices}, lut = {lut}, shape = {shape}];"),
            &NoBlobs,
        )
        .unwrap_err()
    };
    let (bytes, lut, shape) =
        ("tensor<uint8, [2]>([108, 3])", "tensor<fp16, [4]>([0.0, 0.0, 0.0, 0.0])", "tensor<uint32, [1]>([5])");
    let cases = [
        (told("tensor<uint8, [1]>([3])", lut, shape), "argument \"indices\" is tensor<uint8, [1]>"),
        (
            told(bytes, "tensor<fp16, [3]>([0.0, 0.0, 0.0])", shape),
            "argument \"lut\" is tensor<fp16, [3]> but takes a vector of 2, 4",
        ),
        (told(bytes, lut, "tensor<uint32, [1]>([0])"), "argument \"shape\" must be a constant vector of extents"),
        (told(bytes, lut, "tensor<uint32, [2]>([4294967295, 4294967295])"), "argument \"indices\""),
        (told(bytes, lut, "uint32(5)"), "argument \"shape\""),
    ];
    for (told, wanted) in cases {
        assert!(told.contains(wanted), "{told}");
    }
}
