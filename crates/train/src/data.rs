//! Labelled images in memory, and batches of them as the step takes them.

use crate::{TrainError, fetch};
use aneforge_core::HostArray;
use aneforge_io::Images;
use aneforge_nn::{DataPort, NnError};
use half::f16;
use std::path::{Path, PathBuf};

/// Where a data set comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017): four IDX files, `train-` and `t10k-` with `images-idx3-ubyte` and
    /// `labels-idx1-ubyte`, also packed as `.gz`.
    FashionMnist,
    /// CIFAR-10 (Krizhevsky 2009): `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`.
    Cifar10,
}

impl Source {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::FashionMnist => "Fashion-MNIST",
            Self::Cifar10 => "CIFAR-10",
        }
    }

    /// Channels, height and width of an image.
    pub fn shape(self) -> [usize; 3] {
        match self {
            Self::FashionMnist => [1, 28, 28],
            Self::Cifar10 => [3, 32, 32],
        }
    }

    /// Number of classes.
    pub fn classes(self) -> usize {
        10
    }

    /// Its files.
    pub fn files(self) -> Vec<String> {
        match self {
            Self::FashionMnist => fetch::FASHION.iter().map(|file| file.name.to_string()).collect(),
            Self::Cifar10 => {
                (1..=5).map(|number| format!("data_batch_{number}.bin")).chain(["test_batch.bin".to_string()]).collect()
            }
        }
    }
}

/// The two parts of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the model learns.
    Train,
    /// What it is judged by.
    Test,
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct DataSet {
    source: Source,
    train: Images,
    test: Images,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// What each byte of a channel becomes.
    tables: Vec<Vec<f16>>,
    digest: String,
}

impl DataSet {
    /// Reads a data set from `folder`; without one from the cache, where Fashion-MNIST is put by way of Debian's package if it is not
    /// there yet.
    ///
    /// # Errors
    /// [`TrainError::NoData`] that says what to put where; what the files' readers report; [`TrainError::Data`] for images of another
    /// size and labels that are no class.
    pub fn open(source: Source, folder: Option<&Path>) -> Result<Self, TrainError> {
        let folder = folder.map_or_else(|| fetch::cached(source), |folder| Ok(folder.to_path_buf()))?;
        let file = |name: String| -> Result<PathBuf, TrainError> {
            let (plain, packed) = (folder.join(&name), folder.join(format!("{name}.gz")));
            if plain.is_file() {
                return Ok(plain);
            }
            if source == Source::FashionMnist && packed.is_file() {
                return Ok(packed);
            }
            let problem = format!("{} is missing; {}", plain.display(), fetch::what_to_do(source));
            Err(TrainError::NoData { name: source.name(), problem })
        };
        let mut files = source.files().into_iter().map(file).collect::<Result<Vec<_>, _>>()?;
        let (train, test) = match source {
            Source::FashionMnist => (Images::from_idx(&files[0], &files[1])?, Images::from_idx(&files[2], &files[3])?),
            Source::Cifar10 => {
                let test = files.split_off(5);
                (Images::from_cifar10(&files)?, Images::from_cifar10(&test)?)
            }
        };
        Self::new(source, train, test).map_err(|problem| TrainError::Data { name: source.name(), folder, problem })
    }

    /// A data set of images in memory, in a source's shape.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn new(source: Source, train: Images, test: Images) -> Result<Self, String> {
        for (part, images) in [("training", &train), ("test", &test)] {
            if images.shape != source.shape() {
                return Err(format!("{part} images are {:?}, the task's are {:?}", images.shape, source.shape()));
            }
            if images.is_empty() {
                return Err(format!("there are no {part} images"));
            }
            if let Some(place) = images.labels.iter().position(|&label| usize::from(label) >= source.classes()) {
                let (label, last) = (images.labels[place], source.classes() - 1);
                return Err(format!("{part} image {place} has label {label}; labels are 0 to {last}"));
            }
        }
        let (mean, deviation) = statistics(&train);
        let value = |byte: usize, channel: usize| f16::from_f64((byte as f64 / 255.0 - mean[channel]) / deviation[channel]);
        let tables = (0..mean.len()).map(|channel| (0..256).map(|byte| value(byte, channel)).collect()).collect();
        let mut hasher = blake3::Hasher::new();
        for images in [&train, &test] {
            hasher.update(&images.pixels).update(&images.labels);
        }
        let digest = hasher.finalize().to_hex()[..16].to_string();
        Ok(Self { source, train, test, mean, deviation, tables, digest })
    }

    /// Where it comes from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// One part of it.
    pub fn part(&self, part: Part) -> &Images {
        match part {
            Part::Train => &self.train,
            Part::Test => &self.test,
        }
    }

    /// Mean and deviation of each channel over all training images, in units of the largest byte. Pixels are given less that mean,
    /// over that deviation.
    pub fn statistics(&self) -> (&[f64], &[f64]) {
        (&self.mean, &self.deviation)
    }

    /// Identifies its contents.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What a batch consists of.
    pub fn ports(&self, batch: usize) -> Vec<DataPort> {
        let [channels, height, width] = self.source.shape();
        vec![
            DataPort::values("images", &[batch, channels, height, width]),
            DataPort::labels("labels", &[batch], self.source.classes()),
        ]
    }

    /// The images at some places and their labels, as [`Self::ports`] says.
    ///
    /// # Errors
    /// [`NnError::Count`] for a place outside.
    pub fn batch(&self, part: Part, places: &[usize]) -> Result<[HostArray; 2], NnError> {
        let images = self.part(part);
        let [channels, height, width] = self.source.shape();
        let (plane, size) = (height * width, channels * height * width);
        let (mut pixels, mut labels) = (Vec::with_capacity(places.len() * size), Vec::with_capacity(places.len()));
        for &place in places {
            let outside = || NnError::Count { name: "images".to_string(), needed: place + 1, given: images.len() };
            let image = images.pixels.get(place * size..(place + 1) * size).ok_or_else(outside)?;
            labels.push(i32::from(images.labels[place]));
            for (values, table) in image.chunks(plane).zip(&self.tables) {
                pixels.extend(values.iter().map(|&byte| table[usize::from(byte)]));
            }
        }
        let pixels = HostArray::from_fp16([places.len(), channels, height, width], &pixels)?;
        Ok([pixels, HostArray::from_i32([places.len()], &labels)?])
    }
}

/// Mean and deviation of each channel.
fn statistics(images: &Images) -> (Vec<f64>, Vec<f64>) {
    let [channels, height, width] = images.shape;
    let plane = height * width;
    let mut sums = vec![(0u64, 0u64); channels];
    for (index, values) in images.pixels.chunks(plane).enumerate() {
        let (sum, squares) = &mut sums[index % channels];
        *sum += values.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        *squares += values.iter().map(|&byte| u64::from(byte).pow(2)).sum::<u64>();
    }
    let count = (images.len() * plane) as f64;
    let mean: Vec<f64> = sums.iter().map(|(sum, _)| *sum as f64 / count / 255.0).collect();
    let square = |index: usize| sums[index].1 as f64 / count / (255.0 * 255.0);
    // Images of one colour have no deviation; their pixels are all 0 then.
    let deviation = mean.iter().enumerate().map(|(index, mean)| (square(index) - mean * mean).max(0.0).sqrt().max(1e-3)).collect();
    (mean, deviation)
}
