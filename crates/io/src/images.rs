//! Labelled images as public data sets store them: IDX (MNIST, Fashion-MNIST) and the binary form of CIFAR-10.

use crate::IoError;
use std::io::Read;
use std::path::Path;

/// The first bytes of a file packed with gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// No set of images that is read here has more.
const LARGEST_UNPACKED: u64 = 1 << 30;

/// Bytes of one record of CIFAR-10: a label, then three planes of 32 by 32.
const CIFAR_RECORD: usize = 1 + 3 * 32 * 32;
/// Classes of CIFAR-10.
const CIFAR_CLASSES: u8 = 10;

/// Arrays of bytes with their extents, as an IDX file holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// Extent of each axis, slowest first.
    pub shape: Vec<usize>,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Images with one byte per channel and pixel, and their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Channels, height and width.
    pub shape: [usize; 3],
    /// Pixels, image by image, `[channel, row, column]` in each.
    pub pixels: Vec<u8>,
    /// The class of each image.
    pub labels: Vec<u8>,
}

/// The bytes of a file, unpacked where it is packed with gzip.
///
/// # Errors
/// [`IoError::File`], and [`IoError::Format`] for a packed file that is damaged or holds more than 1 GiB.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, IoError> {
    let bytes = std::fs::read(path).map_err(IoError::file("read", path))?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut whole = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(bytes.as_slice()).take(LARGEST_UNPACKED + 1).read_to_end(&mut whole);
    let problem = match read {
        Ok(length) if length as u64 > LARGEST_UNPACKED => format!("it holds more than {LARGEST_UNPACKED} bytes"),
        Ok(_) => return Ok(whole),
        Err(error) => format!("it cannot be unpacked: {error}"),
    };
    Err(IoError::Format { path: path.to_path_buf(), format: "gzip", problem })
}

impl Idx {
    /// Reads a file, packed with gzip or not: two zero bytes, the element type (8: bytes, the only one taken), the number of axes, extents as big-endian u32,
    /// data.
    ///
    /// # Errors
    /// [`IoError::File`], and [`IoError::Format`] that says what does not fit.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let path = path.as_ref();
        let bytes = unpacked(path)?;
        Self::parse(&bytes).map_err(|problem| IoError::Format { path: path.to_path_buf(), format: "IDX", problem })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (head, rest) = bytes.split_at_checked(4).ok_or("it is shorter than its header")?;
        if head[..2] != [0, 0] {
            return Err("it does not start with two zero bytes".to_string());
        }
        if head[2] != 8 {
            return Err(format!("its elements have type {:#04x}; only bytes, 0x08, are images or labels", head[2]));
        }
        let (extents, data) = rest.split_at_checked(4 * usize::from(head[3])).ok_or("it is shorter than its header")?;
        let extent = |word: &[u8]| word.iter().fold(0usize, |value, &byte| value << 8 | usize::from(byte));
        let shape: Vec<usize> = extents.chunks(4).map(extent).collect();
        let needed = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        if shape.is_empty() || needed != Some(data.len()) {
            return Err(format!("its extents {shape:?} and its {} bytes of data do not fit", data.len()));
        }
        Ok(Self { shape, data: data.to_vec() })
    }
}

impl Images {
    /// Reads the two IDX files of a data set with one channel.
    ///
    /// # Errors
    /// As [`Idx::open`], and [`IoError::Format`] where the files do not belong together.
    pub fn from_idx(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<Self, IoError> {
        let (pixels, classes) = (Idx::open(images.as_ref())?, Idx::open(labels.as_ref())?);
        let problem = |path: &Path, problem| IoError::Format { path: path.to_path_buf(), format: "IDX", problem };
        let [count, height, width] = pixels.shape[..] else {
            return Err(problem(images.as_ref(), format!("images have three axes, it has {:?}", pixels.shape)));
        };
        if classes.shape != [count] {
            return Err(problem(labels.as_ref(), format!("{count} images need as many labels, it has {:?}", classes.shape)));
        }
        Ok(Self { shape: [1, height, width], pixels: pixels.data, labels: classes.data })
    }

    /// Reads binary files of CIFAR-10, one after the other: records of a label and 3072 bytes.
    ///
    /// # Errors
    /// [`IoError::File`], and [`IoError::Format`] for a file that is cut or has a label above 9.
    pub fn from_cifar10<P: AsRef<Path>>(paths: &[P]) -> Result<Self, IoError> {
        let mut images = Self { shape: [3, 32, 32], pixels: Vec::new(), labels: Vec::new() };
        for path in paths {
            let path = path.as_ref();
            let bytes = std::fs::read(path).map_err(IoError::file("read", path))?;
            let problem = |problem| IoError::Format { path: path.to_path_buf(), format: "CIFAR-10", problem };
            if bytes.is_empty() || !bytes.len().is_multiple_of(CIFAR_RECORD) {
                return Err(problem(format!("its {} bytes are no whole number of records of {CIFAR_RECORD}", bytes.len())));
            }
            for (index, record) in bytes.chunks(CIFAR_RECORD).enumerate() {
                if record[0] >= CIFAR_CLASSES {
                    return Err(problem(format!("record {index} has label {}, labels are 0 to 9", record[0])));
                }
                images.labels.push(record[0]);
                images.pixels.extend_from_slice(&record[1..]);
            }
        }
        Ok(images)
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Pixels of the images at some places, `(pixel / 255 - mean) / deviation` with one mean and deviation for each channel, and their
    /// labels; nothing for a place outside.
    pub fn batch(&self, places: &[usize], mean: &[f32], deviation: &[f32]) -> (Vec<f32>, Vec<i32>) {
        let plane = self.shape[1] * self.shape[2];
        let size = self.shape[0] * plane;
        let (mut pixels, mut labels) = (Vec::with_capacity(places.len() * size), Vec::with_capacity(places.len()));
        for &place in places {
            let Some(image) = self.pixels.get(place * size..(place + 1) * size) else { continue };
            labels.push(i32::from(self.labels[place]));
            for (channel, values) in image.chunks(plane).enumerate() {
                let at = |list: &[f32], otherwise: f32| list.get(channel).copied().unwrap_or(otherwise);
                let (mean, deviation) = (at(mean, 0.0), at(deviation, 1.0));
                pixels.extend(values.iter().map(|&value| (f32::from(value) / 255.0 - mean) / deviation));
            }
        }
        (pixels, labels)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::PathBuf;

    fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn idx_files_give_images_and_labels() {
        let folder = tempfile::tempdir().unwrap();
        let images = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255, 51, 102]].concat();
        let images = file(&folder, "images", &images);
        // printf '\0\0\10\1\0\0\0\2\7\11' | gzip -9n
        let packed = [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60, 0x60, 0x60, 0x62, 0xe7,
            0x04, 0x00, 0x7a, 0x82, 0x01, 0xa3, 0x0a, 0x00, 0x00, 0x00,
        ];
        let labels = file(&folder, "labels", &packed);
        let set = Images::from_idx(&images, &labels).unwrap();
        assert_eq!((set.shape, set.len(), set.labels.as_slice()), ([1, 1, 2], 2, &[7, 9][..]));
        let (pixels, classes) = set.batch(&[1, 0, 2], &[0.2], &[0.5]);
        assert_eq!(classes, [9, 7]);
        let expected = [0.0, 0.4, -0.4, 1.6];
        assert!(pixels.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{pixels:?}");
        let error = Images::from_idx(&labels, &images).unwrap_err().to_string();
        assert!(error.contains("labels") && error.contains("three axes"), "{error}");
    }

    #[test]
    fn files_that_are_cut_packed_or_of_another_kind_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let cases: [(&[u8], &str); 6] = [
            (&[0, 0, 8], "shorter"),
            (&[0x1f, 0x8b, 8, 0, 0], "cannot be unpacked"),
            (&[0, 0, 0x0d, 1, 0, 0, 0, 0], "0x0d"),
            (&[0, 0, 8, 3, 0, 0], "shorter"),
            (&[0, 0, 8, 1, 0, 0, 0, 3, 1], "do not fit"),
            (&[0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255], "do not fit"),
        ];
        for (bytes, reason) in cases {
            let error = Idx::open(file(&folder, "bad", bytes)).unwrap_err().to_string();
            assert!(error.contains("bad") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn cifar_records_are_planes_behind_a_label() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = vec![3u8];
        record.extend((0..3u8).flat_map(|channel| vec![channel * 100; 1024]));
        let good = file(&folder, "good", &[record.clone(), record.clone()].concat());
        let set = Images::from_cifar10(&[&good, &good]).unwrap();
        assert_eq!((set.len(), set.shape, set.labels[3]), (4, [3, 32, 32], 3));
        let (pixels, _) = set.batch(&[3], &[0.0; 3], &[1.0; 3]);
        assert_eq!([pixels[0], pixels[1024], pixels[3071]], [0.0, 100.0 / 255.0, 200.0 / 255.0]);
        let cut = file(&folder, "cut", &record[..3072]);
        assert!(Images::from_cifar10(&[cut]).unwrap_err().to_string().contains("3072 bytes"));
        record[0] = 10;
        let label = file(&folder, "label", &record);
        assert!(Images::from_cifar10(&[label]).unwrap_err().to_string().contains("label 10"));
    }
}
