//! Options of commands that compress weights.

use crate::failure::Failure;
use aneforge::compile::Notes;
use aneforge::compile::compress::{CompressedWeight, Format, STEP, compress_for};
use aneforge::core::HostArray;
use aneforge::io::{EmbedOptions, Embedder, NpyArray};
use aneforge::mil::Body;
use aneforge::tune::{Calibration, Quality, TuneError, automatic, quality, quantise_activations};
use aneforge::{Target, open};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How weights are compressed.
#[derive(clap::Args)]
pub struct Compression {
    /// Format of the large weights: int8, int8-affine, palette4 (-channel, -groupN), int4-channel, int4-blockN, int8-blockN
    /// (-offset), sparseP, sparseP-palette4 with P percent of zeros; auto chooses for each weight what the target reads compressed
    /// and the results allow; w8a8 quantises what the products receive too.
    #[arg(long, value_name = "FORMAT")]
    compress: Option<String>,
    /// Samples of the inputs, on which errors are measured: a folder with a folder for each sample, which holds a NAME.npy for each
    /// input; for sentence encoders a text file with a sentence in each line. Absent: made up, normal numbers or a few sentences.
    #[arg(long, value_name = "FOLDER", requires = "compress")]
    calibration: Option<PathBuf>,
    /// Lowest cosine between outputs with and without compression that auto accepts.
    #[arg(long, default_value_t = 0.9995, requires = "compress")]
    cosine: f64,
}

/// What samples of a model's inputs can be made from, where none are given.
pub enum Samples {
    /// Normal numbers.
    Generated,
    /// Sentences for an encoder.
    Texts {
        /// The model.
        folder: PathBuf,
        /// Texts per program.
        batch: usize,
        /// Tokens per text.
        tokens: usize,
    },
}

/// A program with its weights compressed as asked.
pub struct Compressed {
    pub body: Body,
    pub weights: Vec<CompressedWeight>,
    /// Agreement with the uncompressed program, where it was measured.
    pub quality: Option<Quality>,
    pub notes: Notes,
    /// Time it took; absent where nothing was asked for.
    pub time: Option<Duration>,
}

/// Samples that are made up.
const GENERATED: usize = 8;

/// Sentences of different length and kind, for encoders without samples.
const SENTENCES: &[&str] = &[
    "The ferry leaves at seven.",
    "Prices rose by three per cent in the last quarter, mostly because of energy.",
    "def area(radius): return 3.14159 * radius ** 2",
    "She had never seen so many birds over the marsh, nor heard such a noise.",
    "Which vaccine is given in the first month of life?",
    "no",
    "A proof by induction has two parts: the base case and the step.",
    "Bring the milk to the boil, take it off the heat, stir in the sugar and let it stand for an hour.",
];

impl Compression {
    /// Compresses what was asked for; leaves everything alone where nothing was.
    pub fn apply(&self, body: Body, target: &Target, samples: &Samples) -> Result<Compressed, Failure> {
        let mut notes = Notes::default();
        let Some(format) = &self.compress else {
            return Ok(Compressed { body, weights: Vec::new(), quality: None, notes, time: None });
        };
        let start = Instant::now();
        let done = |body, weights, quality, notes| Compressed { body, weights, quality, notes, time: Some(start.elapsed()) };
        let device = open("cpu")?;
        match format.as_str() {
            "auto" => {
                let samples = samples.read(&body, self.calibration.as_deref())?;
                let chosen = automatic(&body, target, &samples, self.cosine, device.as_ref()).map_err(failure)?;
                notes.begin(STEP);
                for weight in &chosen.weights {
                    let text = format!("{}; {}", weight.text(), weight.reason);
                    if weight.format == "fp16" { notes.missed(&weight.weight, text) } else { notes.applied(&weight.weight, text) }
                }
                Ok(done(chosen.body, chosen.weights, Some(chosen.quality), notes))
            }
            "w8a8" => {
                let samples = samples.read(&body, self.calibration.as_deref())?;
                let made = quantise_activations(&body, &samples, device.as_ref()).map_err(failure)?;
                notes.begin(STEP);
                made.weights.iter().for_each(|weight| notes.applied(&weight.weight, weight.text()));
                made.scales
                    .iter()
                    .for_each(|(name, scale)| notes.applied(name, format!("quantised to int8 in steps of {scale:.3e}")));
                Ok(done(made.body, made.weights, Some(made.quality), notes))
            }
            name => {
                let format: Format = name.parse().map_err(|error: aneforge::compile::compress::CompressError| {
                    Failure::Input(format!("{error}; or auto, or w8a8"))
                })?;
                let (changed, weights) = compress_for(&body, format, target, &mut notes)?;
                let measured = match &self.calibration {
                    Some(_) => Some(
                        quality(&body, &changed, &samples.read(&body, self.calibration.as_deref())?, device.as_ref())
                            .map_err(failure)?,
                    ),
                    None => None,
                };
                Ok(done(changed, weights, measured, notes))
            }
        }
    }
}

impl Samples {
    /// The samples: given ones where there is a file or folder of them, made-up ones otherwise.
    pub fn read(&self, body: &Body, given: Option<&Path>) -> Result<Calibration, Failure> {
        let given = match (self, given) {
            (Samples::Texts { folder, batch, tokens }, file) => {
                let read = match file {
                    Some(file) => std::fs::read_to_string(file)
                        .map_err(|error| Failure::Input(format!("cannot read {}: {error}", file.display())))?,
                    None => SENTENCES.join("\n"),
                };
                let lines: Vec<&str> = read.lines().filter(|line| !line.trim().is_empty()).collect();
                let options = EmbedOptions { batch: *batch, ..EmbedOptions::default() };
                Embedder::open(folder, open("null")?, options)?.samples(&lines, *tokens)?
            }
            (Samples::Generated, Some(folder)) => {
                folders(folder)?.iter().map(|sample| arrays(body, sample)).collect::<Result<_, _>>()?
            }
            (Samples::Generated, None) => return Calibration::generated(body, GENERATED, 1).map_err(failure),
        };
        Calibration::given(body, given).map_err(failure)
    }
}

/// What went wrong while tuning, with the exit code that it has.
pub fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Compile(error) => error.into(),
        TuneError::Device(error) => error.into(),
        error => Failure::input(&error),
    }
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error: std::io::Error| Failure::Input(format!("cannot read {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The arrays of one sample in the order of the program's inputs.
fn arrays(body: &Body, folder: &Path) -> Result<Vec<HostArray>, Failure> {
    let mut arrays = Vec::with_capacity(body.inputs.len());
    for &id in &body.inputs {
        let value = body.value(id);
        let file = folder.join(format!("{}.npy", value.name));
        let array = NpyArray::read(&file)?;
        let numbers = aneforge::mil::unpack(array.ty.dtype, &array.bytes, array.ty.count()).unwrap_or_default();
        let made = HostArray::from_f64(value.ty.dtype, array.ty.shape, &numbers);
        arrays.push(made.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?);
    }
    Ok(arrays)
}
