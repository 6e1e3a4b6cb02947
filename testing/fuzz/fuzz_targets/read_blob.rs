//! Any file opens as a weight file or is refused; every blob it yields lies inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    if let Ok(blobs) = aneforge_mil::BlobFile::open(file.path()) {
        for view in blobs.iter().flatten() {
            assert!(view.data_offset as usize + view.bytes.len() <= bytes.len());
        }
        for offset in 0..bytes.len() as u64 {
            let _ = blobs.blob_at(offset);
        }
    }
});
