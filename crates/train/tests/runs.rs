//! Whole runs over a small set of images: what they report and write, and how they end.
#![allow(clippy::unwrap_used)]

use aneforge_core::{DType, Graph, HostArray, Target, evaluate, lower};
use aneforge_nn::{CheckpointError, NnError, Pass};
use aneforge_testkit::images::write_idx;
use aneforge_train::{Config, DataSet, EpochLine, Line, Part, Rule, Run, Source, StepLine, Summary, Task, TrainError, Watch};
use std::fs;
use std::path::{Path, PathBuf};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_idx(folder.path(), 330, 70);
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self) -> DataSet {
        DataSet::open(Source::FashionMnist, Some(self.folder.path())).unwrap()
    }

    /// Settings of a run of two epochs of ten steps with log and checkpoints under that name.
    fn config(&self, name: &str) -> Config {
        Config {
            device: "cpu".to_string(),
            epochs: 2,
            batch: 32,
            checkpoints: Some(self.path(name)),
            every: 3,
            log: Some(self.path(&format!("{name}.log"))),
            ..Config::new(Task::FashionMlp)
        }
    }
}

/// Counts steps and stops before one.
#[derive(Debug, Default)]
struct Stop {
    after: Option<u64>,
    steps: Vec<StepLine>,
    epochs: Vec<EpochLine>,
}

impl Watch for Stop {
    fn step(&mut self, line: &StepLine) {
        self.steps.push(line.clone());
    }

    fn epoch(&mut self, line: &EpochLine) {
        self.epochs.push(line.clone());
    }

    fn stops(&self) -> bool {
        self.after.is_some_and(|after| self.steps.len() as u64 >= after)
    }
}

fn go(config: &Config, data: DataSet, after: Option<u64>) -> Result<(Summary, Stop), TrainError> {
    let mut watch = Stop { after, ..Stop::default() };
    let summary = Run::new(config, data)?.go(&mut watch)?;
    Ok((summary, watch))
}

/// What a log says, without times.
fn log(path: &Path) -> Vec<String> {
    let lines = fs::read_to_string(path).unwrap();
    let bare = |line: &str| match serde_json::from_str::<Line>(line).unwrap() {
        Line::Start { schema, .. } => format!("start {schema}"),
        Line::Step(line) => {
            format!("{} {} {:08x} {} {}", line.step, line.epoch, line.loss.unwrap().to_bits(), line.kept, line.rate)
        }
        Line::Epoch(line) => {
            let EpochLine { step, epoch, loss, accuracy, test_images, skipped, .. } = line;
            format!("epoch {step} {epoch} {:016x} {accuracy} {test_images} {skipped}", loss.to_bits())
        }
    };
    lines.lines().map(bare).collect()
}

/// The digest of everything in a checkpoint.
fn digest(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.find("\"digest\":\"").unwrap() + 10;
    text[start..start + 64].to_string()
}

#[test]
fn a_run_learns_in_one_dispatch_a_step_and_its_accuracy_is_that_of_its_weights() {
    let place = Place::new();
    for (task, device) in [(Task::FashionMlp, "cpu"), (Task::FashionMlp, "emulator:m1"), (Task::FashionCnnSmall, "cpu")] {
        let config = Config { device: device.to_string(), ..place.config(&format!("{task:?}-{device}")) };
        let config = Config { task, ..config };
        let mut run = Run::new(&config, place.data()).unwrap();
        let mut watch = Stop::default();
        let summary = run.go(&mut watch).unwrap();
        assert_eq!((summary.steps, summary.dispatches, summary.state_bytes_in_steps), (20, 20, 0), "{task:?} on {device}");
        assert_eq!((summary.epochs.len(), summary.epochs[1].test_images), (2, 70));
        assert_eq!(summary.epochs, watch.epochs);
        // Convolutions take more steps for patterns that are noise.
        assert!(summary.epochs[1].accuracy > 0.8 || task != Task::FashionMlp, "{task:?} on {device}: {:?}", summary.epochs);
        // The same weights in a program of their own, in f64.
        let graph = Graph::new();
        let images = graph.input("images", DType::Fp16, &[70, 1, 28, 28]);
        let logits = run.net().logits(&Pass::inference(run.parameters(), &graph).unwrap(), &images);
        let body = lower(&[("logits".to_string(), logits)], Target::Generic).unwrap();
        let places: Vec<usize> = (0..70).collect();
        let [images, labels] = place.data().batch(Part::Test, &places).unwrap();
        let logits = evaluate(&body, &[images.to_array()]).unwrap().remove(0).data;
        let best = |row: &[f64]| (0..10).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        let labels = labels.to_array().data;
        let hits = logits.chunks(10).zip(&labels).filter(|(row, label)| best(row) == **label as usize).count();
        // Two equal logits in fp16 may stand the other way round in f64.
        assert!((summary.epochs[1].accuracy * 70.0 - hits as f64).abs() <= 1.0, "{task:?} on {device}: {hits} of 70");
    }
}

#[test]
fn unrolled_accumulated_and_averaged_runs_reach_the_end_of_each_epoch() {
    let place = Place::new();
    let config = Config {
        unroll: 2,
        accumulate: 2,
        average: Some(0.5),
        clip: Some(1.0),
        smoothing: 0.1,
        optimizer: Rule::Lion { betas: (0.9, 0.99), weight_decay: 0.01 },
        rate: 1e-4,
        epochs: 3,
        ..place.config("several")
    };
    let (summary, watch) = go(&config, place.data(), None).unwrap();
    // Ten batches are two calls of four and two that are left out.
    assert_eq!((summary.steps, summary.dispatches, summary.epochs.len()), (12, 6, 3));
    assert_eq!(watch.steps.iter().map(|line| line.step).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    assert_eq!(watch.steps.iter().map(|line| line.epoch).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn a_run_that_is_stopped_and_resumed_equals_one_that_is_not() {
    let place = Place::new();
    let whole = place.config("whole");
    let (summary, _) = go(&whole, place.data(), None).unwrap();
    assert!(!summary.interrupted);
    let mut pieces = place.config("pieces");
    for (after, made) in [(4, 4), (7, 11), (0, 11)] {
        let (summary, _) = go(&pieces, place.data(), Some(after)).unwrap();
        assert_eq!((summary.interrupted, summary.steps), (true, made));
        pieces.resume = true;
    }
    // As a killed run leaves it: lines behind the checkpoint, and half of one.
    let path = pieces.log.clone().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let later = text.lines().last().unwrap().replace("\"step\":11", "\"step\":12");
    fs::write(&path, format!("{text}{later}\n{}", &later[..20])).unwrap();
    let (rest, _) = go(&pieces, place.data(), None).unwrap();
    assert_eq!((rest.dispatches, rest.steps), (9, 20));
    assert_eq!(log(&path), log(whole.log.as_ref().unwrap()));
    let (ours, theirs) = (rest.checkpoint.unwrap(), summary.checkpoint.unwrap());
    assert_eq!(ours.file_name().unwrap(), "step-00000020.safetensors");
    assert_eq!(digest(&ours), digest(&theirs));
    assert_eq!(fs::read_dir(place.path("whole")).unwrap().count(), 2, "the last two are kept");
}

#[test]
fn checkpoints_of_other_runs_and_damaged_ones_are_told_with_the_one_to_return_to() {
    let place = Place::new();
    let config = place.config("run");
    go(&config, place.data(), None).unwrap();
    let (last, before) = (place.path("run/step-00000020.safetensors"), place.path("run/step-00000018.safetensors"));
    let again = go(&config, place.data(), None).unwrap_err();
    assert!(matches!(&again, TrainError::InTheWay { path } if *path == last), "{again}");
    let resumed = Config { resume: true, ..config };
    let other = go(&Config { seed: 2, ..resumed.clone() }, place.data(), None).unwrap_err().to_string();
    assert!(other.contains("\"seed\"") && other.contains("step-00000020"), "{other}");
    let other = go(&Config { rate: 0.5, ..resumed.clone() }, place.data(), None).unwrap_err();
    assert!(matches!(&other, TrainError::Checkpoint { source: CheckpointError::Mismatch { .. }, .. }), "{other}");
    let good = fs::read(&last).unwrap();
    for damage in [&good[..good.len() / 2], b"something else", b""] {
        fs::write(&last, damage).unwrap();
        let error = go(&resumed, place.data(), None).unwrap_err().to_string();
        assert!(error.contains("step-00000020") && error.contains(&before.display().to_string()), "{error}");
    }
    // Without the damaged one the run goes on from the one before it.
    fs::remove_file(&last).unwrap();
    assert_eq!(go(&resumed, place.data(), None).unwrap().0.dispatches, 2);
    fs::write(place.path("run.log"), "no log at all\n").unwrap();
    let error = go(&resumed, place.data(), None).unwrap_err().to_string();
    assert!(error.contains("run.log") && error.contains("no log's"), "{error}");
}

#[test]
fn training_that_leaves_the_numbers_stops_and_names_the_last_good_checkpoint() {
    let place = Place::new();
    // Every update adds to the weights, so logits overflow after some steps.
    let rule = Rule::Sgd { momentum: 0.99, nesterov: false, weight_decay: 0.0 };
    let config = Config { optimizer: rule, rate: 7.9, every: 1, epochs: 20, ..place.config("bad") };
    let error = go(&config, place.data(), None).unwrap_err();
    let TrainError::Stopped { last: Some(last), source } = &error else { panic!("{error}") };
    assert!(matches!(source.downcast_ref::<NnError>(), Some(NnError::NotFinite { .. })), "{error}");
    assert!(last.is_file() && error.to_string().contains(&last.display().to_string()), "{error}");
    // What was saved is a state of numbers: it can be resumed, if not cured.
    let resumed = Config { resume: true, ..config };
    assert!(matches!(go(&resumed, place.data(), None), Err(TrainError::Stopped { .. })));
}

#[test]
fn images_that_are_missing_or_do_not_fit_are_told_before_anything_runs() {
    let place = Place::new();
    let labels = place.path("train-labels-idx1-ubyte");
    let good = fs::read(&labels).unwrap();
    let open = || DataSet::open(Source::FashionMnist, Some(place.folder.path())).unwrap_err().to_string();
    let mut bad = good.clone();
    bad[8 + 5] = 10;
    fs::write(&labels, &bad).unwrap();
    let error = open();
    assert!(error.contains("image 5 has label 10") && error.contains("0 to 9"), "{error}");
    fs::write(&labels, &good[..40]).unwrap();
    assert!(open().contains("train-labels"), "{}", open());
    fs::remove_file(&labels).unwrap();
    let error = open();
    assert!(error.contains("train-labels-idx1-ubyte is missing") && error.contains("--data"), "{error}");
    let error = DataSet::open(Source::Cifar10, None).unwrap_err().to_string();
    assert!(error.contains("data_batch_1.bin") && error.contains("test_batch.bin"), "{error}");
}

#[test]
fn cifar_files_train_the_task_of_colour_images() {
    let folder = tempfile::tempdir().unwrap();
    for (file, name) in Source::Cifar10.files().into_iter().enumerate() {
        let record = |index: usize| {
            let label = (index + file) % 10;
            let shade = move |pixel: usize| (25 * label + (pixel * 7 + index) % 20) as u8;
            std::iter::once(label as u8).chain((0..3072).map(shade)).collect::<Vec<u8>>()
        };
        fs::write(folder.path().join(name), (0..4).flat_map(record).collect::<Vec<u8>>()).unwrap();
    }
    let data = DataSet::open(Source::Cifar10, Some(folder.path())).unwrap();
    assert_eq!((data.part(Part::Train).len(), data.part(Part::Test).len()), (20, 4));
    let config = Config { device: "cpu".to_string(), batch: 4, epochs: 1, steps: Some(2), ..Config::new(Task::Cifar10Cnn) };
    let (summary, watch) = go(&config, data, None).unwrap();
    assert_eq!((summary.dispatches, summary.state_bytes_in_steps, summary.epochs.len()), (2, 0, 0));
    assert!(watch.steps.iter().all(|line| line.kept));
}

#[test]
fn pixels_have_mean_0_and_deviation_1_and_packed_files_are_read_alike() {
    let place = Place::new();
    let data = place.data();
    let places: Vec<usize> = (0..330).collect();
    let [images, labels] = data.batch(Part::Train, &places).unwrap();
    let values = images.to_f32();
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / values.len() as f64;
    assert!(mean.abs() < 1e-3 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
    assert_eq!(labels, HostArray::from_i32([330], &labels.to_array().data.iter().map(|&l| l as i32).collect::<Vec<_>>()).unwrap());
    assert!(matches!(data.batch(Part::Train, &[330]), Err(NnError::Count { .. })));
}

#[test]
fn settings_that_are_unknown_or_make_no_sense_are_errors_that_name_the_key() {
    let cases = [
        ("task = 'fashion-mlp'\nbatchsize = 3", "batchsize"),
        ("task = 'fashion-mlp'\n[optimizer]\nname = 'adam'\nmomentum = 0.9", "momentum"),
        ("task = 'fashion-mlp'\n[optimizer]\nname = 'rmsprop'", "rmsprop"),
        ("task = 'fashion-mlp'\n[schedule]\nname = 'step'\nevery = 5", "factor"),
        ("task = 'fashion-mlp'\n[loss-scale]\nname = 'fixed'\nscale = 8.0\ninterval = 3", "interval"),
        ("task = 'mnist'", "mnist"),
        ("rate = 0.1", "task"),
        ("task = 'fashion-mlp'\nepochs = -1", "line 2"),
        ("task = 'fashion-mlp'\nepochs = = 1", "line 2"),
    ];
    for (text, word) in cases {
        let error = Config::parse("here.toml", text).unwrap_err().to_string();
        assert!(error.starts_with("here.toml: ") && error.contains(word), "{text}: {error}");
    }
    let place = Place::new();
    let plain = place.config("settings");
    let cases = [
        (Config { target: Some("m77".to_string()), ..plain.clone() }, "target"),
        (Config { epochs: 0, ..plain.clone() }, "epochs"),
        (Config { batch: 0, ..plain.clone() }, "batch"),
        (Config { batch: 331, ..plain.clone() }, "batch"),
        (Config { accumulate: 11, ..plain.clone() }, "batch"),
        (Config { accumulate: 0, ..plain.clone() }, "batches"),
        (Config { smoothing: 1.0, ..plain.clone() }, "smoothing"),
        (Config { every: 0, ..plain.clone() }, "every"),
        (Config { clip: Some(-1.0), ..plain.clone() }, "clip"),
        (Config { resume: true, checkpoints: None, ..plain.clone() }, "checkpoints"),
        (Config { device: "gpu".to_string(), ..plain.clone() }, "gpu"),
    ];
    for (config, word) in cases {
        let error = Run::new(&config, place.data()).map(drop).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
    let whole = r#"
        task = "fashion-cnn"
        device = "emulator:m1"
        target = "m1"
        epochs = 5
        batch = 50
        rate = 0.002
        accumulate = 2
        clip = 1.0
        average = 0.999
        seed = 7
        data = "images"
        checkpoints = "run"
        every = 100
        log = "run.log"
        optimizer = { name = "adamw", weight-decay = 0.05 }
        schedule = { name = "warmup-cosine", warmup = 100, last = 0.1 }
        loss-scale = { name = "fixed", scale = 512.0 }
    "#;
    let config = Config::parse("whole", whole).unwrap();
    assert_eq!((config.task, config.epochs, config.average), (Task::FashionCnn, 5, Some(0.999)));
    assert_eq!(config.optimizer, Rule::Adamw { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.05 });
    assert_eq!(config.target().unwrap().unwrap().to_string(), "m1");
}
