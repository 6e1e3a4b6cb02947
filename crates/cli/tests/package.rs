//! Core ML packages on the command line: written, shown, read back, run; bad ones with their exit code and nothing left behind.
#![allow(clippy::unwrap_used)] // helper functions of tests

mod common;

use aneforge::io::NpyArray;
use aneforge::{CompileOptions, DType, Graph, compile};
use common::{command, expect, names, text, write_bundle, write_ones};
use std::fs;
use std::path::PathBuf;

const MODEL: &str = "Data/com.apple.CoreML/model.mlmodel";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with a bundle, the package that the command makes of it, and ones for its input.
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        write_bundle(&place.file("bundle"));
        write_ones(&place.file("x.npy"), &[2, 8]);
        place.run(0, &["compile", &place.path("bundle"), "--mlpackage", &place.path("net.mlpackage")]);
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        text(&self.file(name)).to_string()
    }

    fn run(&self, code: i32, arguments: &[&str]) -> (String, String) {
        expect(code, self.folder.path(), arguments)
    }

    /// Runs the named program on the ones.
    fn answer(&self, code: i32, program: &str, more: &[&str]) -> String {
        let (input, output) = (format!("x={}", self.path("x.npy")), format!("y={}", self.path("y.npy")));
        let program = self.path(program);
        let mut arguments = vec!["run", &program, "--input", &input, "--output", &output, "--device", "reference"];
        arguments.extend(more);
        self.run(code, &arguments).1
    }

    /// Bad input: exit code 2, all these words in the message, nothing written.
    fn refuse(&self, arguments: &[&str], words: &[&str]) {
        let before = names(self.folder.path());
        let (out, err) = self.run(2, arguments);
        assert!(out.is_empty(), "{out}");
        assert!(err.contains("error: ") && words.iter().all(|word| err.contains(word)), "{words:?} in {err}");
        assert_eq!(names(self.folder.path()), before);
    }
}

/// A graph with one input `x` of fp16 [2, 8] that is multiplied by `factor`.
fn scaled(factor: f64) -> aneforge::Compiled {
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[2, 8]) * graph.values(DType::Fp16, &[1], &[factor]);
    compile(&[("y", &y)], &CompileOptions::default()).unwrap()
}

#[test]
fn a_package_gives_the_answer_of_the_program_that_it_was_made_of() {
    let place = Place::new();
    // Row r of the weights sums to (8 r + 3.5) / 2 - 8; relu cuts the first two.
    let expected = [0.0, 0.0, 1.75, 5.75, 0.0, 0.0, 1.75, 5.75];
    let (from, to) = (place.path("net.mlpackage"), place.path("again"));
    place.run(0, &["compile", &from, "-o", &to, "--shape", "x=2,8", "--function", "main"]);
    place.run(0, &["compile", &from, "--mlpackage", &place.path("twice.mlpackage")]);
    for program in ["bundle", "net.mlpackage", "again", "twice.mlpackage"] {
        place.answer(0, program, &[]);
        assert_eq!(NpyArray::read(place.path("y.npy")).unwrap().to_f32(), expected, "{program}");
        fs::remove_file(place.file("y.npy")).unwrap();
    }
    let (shown, _) = place.run(0, &["inspect", &from]);
    for word in ["specification 7", "main for CoreML6", "input x tensor<fp16, [2, 8]>", "returns y", "matmul", "1 weight(s)"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    let (json, _) = place.run(0, &["inspect", &from, "--json"]);
    assert!(json.contains("\"specification\": 7"), "{json}");
    let (told, _) = place.run(0, &["compile", &from, "--mlpackage", &from, "--json"]);
    assert!(told.contains("net.mlpackage") && told.contains("\"bundle\": null"), "{told}");
}

#[test]
fn a_function_is_chosen_by_its_name() {
    let place = Place::new();
    let (mut one, mut two) = (scaled(2.0).body, scaled(3.0).body);
    (one.name, two.name) = ("main".to_string(), "thrice".to_string());
    aneforge::mlpackage::write(&[&one, &two], &place.file("two.mlpackage")).unwrap();
    for (more, expected) in [(&[][..], 2.0), (&["--function", "main"], 2.0), (&["--function", "thrice"], 3.0)] {
        place.answer(0, "two.mlpackage", more);
        assert_eq!(NpyArray::read(place.path("y.npy")).unwrap().to_f32(), [expected; 16], "{more:?}");
    }
    fs::remove_file(place.file("y.npy")).unwrap();
    let error = place.answer(2, "two.mlpackage", &["--function", "fourth"]);
    assert!(error.contains("\"fourth\"") && error.contains("main, thrice"), "{error}");
    let two = place.path("two.mlpackage");
    place.refuse(&["compile", &two, "-o", &place.path("out"), "--function", "fourth"], &["main, thrice"]);
}

#[test]
fn shapes_and_functions_that_do_not_fit_are_refused() {
    let place = Place::new();
    let (package, out) = (place.path("net.mlpackage"), place.path("out"));
    let refuse = |shape: &str, words: &[&str]| place.refuse(&["compile", &package, "-o", &out, "--shape", shape], words);
    refuse("x=3,8", &["\"x\"", "[2, 8]", "[3, 8]"]);
    refuse("z=2,8", &["\"z\"", "does not exist"]);
    let (_, err) = place.run(2, &["compile", &package, "-o", &out, "--shape", "x=two"]);
    assert!(err.contains("image=1,3,224,224"), "{err}");
    let bundle = place.path("bundle");
    place.refuse(&["compile", &bundle, "-o", &out, "--function", "main"], &["--function", "Core ML packages"]);
    place.refuse(&["run", &bundle, "--shape", "x=2,8"], &["--shape", "Core ML packages"]);
}

#[test]
fn damaged_packages_and_other_folders_are_refused_by_every_command() {
    let place = Place::new();
    let (package, out) = (place.path("net.mlpackage"), place.path("out"));
    let refuse = |words: &[&str]| {
        place.refuse(&["inspect", &package], words);
        place.refuse(&["run", &package], words);
        place.refuse(&["compile", &package, "--mlpackage", &out], words);
    };
    let model = place.file("net.mlpackage").join(MODEL);
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    refuse(&["model.mlmodel", "no Core ML model"]);
    // Field 500, a neural network without layers.
    fs::write(&model, [8, 4, 0xa2, 0x1f, 0]).unwrap();
    refuse(&["neural network", "mlprogram"]);
    fs::remove_file(&model).unwrap();
    refuse(&["cannot read", "model.mlmodel"]);
    fs::write(place.file("net.mlpackage").join("Manifest.json"), "{}").unwrap();
    refuse(&["Manifest.json"]);
    fs::remove_file(place.file("net.mlpackage").join("Manifest.json")).unwrap();
    refuse(&["net.mlpackage"]);
}

#[test]
fn a_package_takes_the_place_of_a_package_and_of_nothing_else() {
    let place = Place::new();
    let bundle = place.path("bundle");
    place.run(0, &["compile", &bundle, "--mlpackage", &place.path("net.mlpackage")]);
    fs::create_dir(place.file("photos")).unwrap();
    fs::write(place.file("photos/Manifest.json"), "{\"name\": \"shop\"}").unwrap();
    fs::write(place.file("notes.txt"), "notes").unwrap();
    for other in ["photos", "notes.txt", "bundle"] {
        place.refuse(&["compile", &bundle, "--mlpackage", &place.path(other)], &[other, "not a package"]);
    }
    assert_eq!(names(&place.file("photos")), ["Manifest.json"]);
    // An extra file in a package would be lost.
    fs::write(place.file("net.mlpackage/notes.txt"), "notes").unwrap();
    place.refuse(&["compile", &bundle, "--mlpackage", &place.path("net.mlpackage")], &["other files"]);
}

#[cfg(unix)]
#[test]
fn a_signal_while_a_package_is_written_leaves_nothing_behind() {
    let here = tempfile::tempdir().unwrap();
    let graph = Graph::new();
    // Large enough to be in the middle of writing at most of the moments tried.
    let x = graph.input("x", DType::Fp16, &[1, 4096]);
    let y = x.matmul(&graph.values(DType::Fp16, &[4096, 4096], &vec![0.5; 4096 * 4096]));
    let bundle = here.path().join("bundle");
    compile(&[("y", &y)], &CompileOptions::default()).unwrap().write(&bundle).unwrap();
    let out = here.path().join("out");
    for milliseconds in [2, 5, 8, 12, 16, 20, 30] {
        fs::create_dir(&out).unwrap();
        let target = out.join("copy.mlpackage");
        let mut child = command(here.path(), &["compile", text(&bundle), "--mlpackage", text(&target)]);
        let mut child = child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
        let left = names(&out);
        assert!(kill.success() && (left.is_empty() || left == ["copy.mlpackage"]), "after {milliseconds} ms: {left:?}");
        fs::remove_dir_all(&out).unwrap();
    }
}
