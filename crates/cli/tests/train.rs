//! `aneforge train`: what it prints and writes, and what is left when a signal, a full disk or bad input ends it.
#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use aneforge_testkit::images::write_idx;
use aneforge_testkit::{Random, fake};
use common::{command, expect, names, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        write_idx(&folder.path().join("data"), 330, 70);
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Arguments of a run of 100 steps with log and checkpoints under that name.
    fn arguments(&self, name: &str, more: &[&str]) -> Vec<String> {
        let mut arguments = vec!["train".to_string(), "fashion-mlp".to_string()];
        for (flag, value) in [("--device", "cpu"), ("--batch", "32"), ("--epochs", "10"), ("--every", "3")] {
            if !more.contains(&flag) {
                arguments.extend([flag.to_string(), value.to_string()]);
            }
        }
        for (flag, place) in [("--data", "data"), ("--checkpoints", name), ("--log", &format!("{name}.log"))] {
            arguments.extend([flag.to_string(), text(&self.path(place)).to_string()]);
        }
        arguments.extend(more.iter().map(|word| (*word).to_string()));
        arguments
    }

    fn train(&self, code: i32, name: &str, more: &[&str]) -> (String, String) {
        let arguments = self.arguments(name, more);
        expect(code, self.folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn start(&self, name: &str, more: &[&str]) -> Child {
        let arguments = self.arguments(name, more);
        let mut command = command(self.folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    /// Waits until the log has more than that many lines; false where the process ends before.
    fn wait(&self, child: &mut Child, name: &str, lines: usize) -> bool {
        let begun = Instant::now();
        while self.log(name).lines().count() <= lines {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the run writes no log");
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

/// Steps, losses and accuracies of a log, without times.
fn course(log: &str) -> Vec<[String; 4]> {
    let of = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        ["type", "step", "loss", "accuracy"].map(|key| line[key].to_string())
    };
    log.lines().map(of).collect()
}

/// All of a checkpoint but its header, whose keys have no order.
fn tensors(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

#[test]
fn a_run_prints_its_epochs_and_says_how_many_dispatches_it_took() {
    let place = Place::new();
    let (out, err) = place.train(0, "plain", &["--epochs", "2"]);
    assert!(out.lines().count() == 3 && out.contains('%'), "{out}");
    assert!(err.contains("20 dispatches, 0 bytes of state") && err.contains("step-00000020.safetensors"), "{err}");
    assert_eq!(names(&place.path("plain")).len(), 2);
    assert_eq!(place.log("plain").lines().count(), 1 + 20 + 2);
    let (out, _) = place.train(0, "json", &["--epochs", "1", "--json", "--device", "emulator:m1"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["schema"], &report["steps"], &report["interrupted"]), (&1.into(), &10.into(), &false.into()));
    assert_eq!((&report["device"], &report["config"]["task"]), (&"emulator:m1".into(), &"fashion-mlp".into()));
    assert_eq!((&report["epochs"][0]["test_images"], &report["state_bytes_in_steps"]), (&70.into(), &0.into()));
}

#[test]
fn settings_come_from_a_file_and_the_command_line_goes_before() {
    let place = Place::new();
    let file = place.path("settings.toml");
    fs::write(&file, format!("task = 'fashion-mlp'\ndevice = 'reference'\nbatch = 32\ndata = '{}'\n", text(&place.path("data"))))
        .unwrap();
    let arguments = ["train", text(&file), "--device", "cpu", "--steps", "2", "--json"];
    let (out, _) = expect(0, place.folder.path(), &arguments);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["device"], &report["steps"], &report["config"]["batch"]), (&"cpu".into(), &2.into(), &32.into()));
    fs::write(&file, "task = 'fashion-mlp'\nbatchsize = 32\n").unwrap();
    let (_, err) = expect(2, place.folder.path(), &arguments);
    assert!(err.contains("settings.toml") && err.contains("batchsize"), "{err}");
    let (_, err) = expect(2, place.folder.path(), &["train", "fashion"]);
    assert!(err.contains("fashion-cnn-small") && err.contains(".toml"), "{err}");
    let (_, err) = place.train(3, "nowhere", &["--device", "ane"]);
    assert!(err.contains("Neural Engine") || cfg!(target_os = "macos"), "{err}");
}

#[test]
fn a_run_killed_at_random_moments_twenty_times_equals_one_that_is_not() {
    let place = Place::new();
    place.train(0, "whole", &[]);
    let mut random = Random::new(u64::from(std::process::id()));
    for _ in 0..20 {
        let before = place.log("pieces").lines().count();
        let mut child = place.start("pieces", &["--resume"]);
        // Each run is let to change the log, to get past a checkpoint now and then.
        let lines = before.saturating_sub(random.below(6));
        place.wait(&mut child, "pieces", lines);
        std::thread::sleep(Duration::from_millis(random.below(8) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    place.train(0, "pieces", &["--resume"]);
    assert_eq!(course(&place.log("pieces")), course(&place.log("whole")));
    let last = "step-00000100.safetensors";
    assert!(tensors(&place.path("pieces").join(last)) == tensors(&place.path("whole").join(last)), "the state differs");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_after_the_step_saves_and_gives_130() {
    let place = Place::new();
    let mut child = place.start("run", &["--epochs", "1000"]);
    assert!(place.wait(&mut child, "run", 5));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let log = place.log("run");
    let steps = course(&log).iter().filter(|line| line[0] == "\"step\"").count();
    let saved = format!("step-{steps:08}.safetensors");
    assert!(names(&place.path("run")).contains(&saved), "{saved} in {:?}", names(&place.path("run")));
    let more = (steps + 2).to_string();
    let (_, err) = place.train(0, "run", &["--epochs", "1000", "--resume", "--steps", &more]);
    assert!(err.contains(&format!("after step {steps}")), "{err}");
    assert!(place.log("run").starts_with(&log), "the log goes on");
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full_while_saving_is_told_and_the_checkpoint_before_stays() {
    let place = Place::new();
    place.train(0, "run", &["--steps", "3"]);
    let before = tensors(&place.path("run/step-00000003.safetensors"));
    let mut arguments = place.arguments("run", &["--resume", "--steps", "6"]);
    let judge = |output: std::process::Output, folder: &Path| {
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("cannot write checkpoint") && err.contains("last good checkpoint is"), "{err}");
        assert!(err.contains("step-00000003") && err.contains("step-00000006"), "{err}");
        assert_eq!(names(folder), ["step-00000003.safetensors"], "no half of a file is left");
        assert!(tensors(&folder.join("step-00000003.safetensors")) == before);
    };
    // A limit on the size of files, in blocks of 512 or 1024 bytes: above that of the log, below that of a checkpoint.
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_aneforge")]).args(&arguments);
    judge(limited.env("ANEFORGE_CACHE_DIR", place.path("cache")).output().unwrap(), &place.path("run"));

    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    let size = fs::metadata(place.path("run/step-00000003.safetensors")).unwrap().len();
    let option = format!("size={}", size + size / 2);
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs", text(&small)]).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: a full tmpfs; mounting one is not allowed here");
        return;
    }
    let checks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fs::copy(place.path("run/step-00000003.safetensors"), small.join("step-00000003.safetensors")).unwrap();
        let at = arguments.iter().position(|word| word == "--checkpoints").unwrap();
        arguments[at + 1] = text(&small).to_string();
        let full = command(place.folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        judge(full, &small);
    }));
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    checks.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn the_engines_device_trains_bit_for_bit_as_the_emulator_of_its_chip() {
    let place = Place::new();
    for (name, device, target) in [("engine", "fake:e5rt", "m1"), ("memory", "fake:in-memory", "m1:in-memory")] {
        let emulated = format!("emulated-{name}");
        place.train(0, &emulated, &["--device", "emulator:m1", "--target", target, "--steps", "5"]);
        let arguments = place.arguments(name, &["--device", device, "--steps", "5"]);
        let mut command = command(place.folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let output = command.env("ANEFORGE_FAKE_APPLE", fake::library()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && err.contains("5 dispatches, 0 bytes of state"), "{err}");
        assert_eq!(course(&place.log(name)), course(&place.log(&emulated)), "{device}");
    }
}

#[test]
fn images_that_are_not_there_are_told_with_what_to_put_where() {
    let place = Place::new();
    // Neither apt-get nor dpkg-deb is on this path.
    let mut command = command(place.folder.path(), &["train", "fashion-cnn", "--device", "cpu"]);
    let output = command.env("PATH", place.path("data")).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    for word in ["apt-get", "dataset-fashion-mnist", "train-images-idx3-ubyte", "--data"] {
        assert!(err.contains(word), "{word}: {err}");
    }
    fs::write(place.path("data/train-labels-idx1-ubyte"), b"nothing").unwrap();
    let (_, err) = place.train(2, "damaged", &[]);
    assert!(err.contains("train-labels-idx1-ubyte"), "{err}");
}
