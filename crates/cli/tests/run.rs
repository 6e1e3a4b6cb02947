//! `aneforge run`: results, and every kind of wrong input with its exit code and no file left behind.
#![allow(clippy::unwrap_used)] // helper functions of tests

mod common;

use aneforge::io::NpyArray;
use aneforge::{DType, TensorType};
use common::{expect, names, text, write_bundle, write_ones};
use std::fs;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_bundle(&folder.path().join("bundle"));
        write_ones(&folder.path().join("x.npy"), &[2, 8]);
        fs::create_dir(folder.path().join("out")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        text(&self.folder.path().join(name)).to_string()
    }

    fn run(&self, code: i32, input: &str, more: &[&str]) -> (String, String) {
        let input = format!("x={}", self.path(input));
        let (bundle, out) = (self.path("bundle"), self.path("out"));
        let mut arguments = vec!["run", &bundle, "--input", &input, "--output", &out];
        arguments.extend(more);
        expect(code, self.folder.path(), &arguments)
    }

    /// Bad input: exit code 2, all these words in the message, nothing written.
    fn refuse(&self, input: &str, words: &[&str]) {
        let (out, err) = self.run(2, input, &[]);
        assert!(out.is_empty(), "{out}");
        assert!(err.contains("error: ") && words.iter().all(|word| err.contains(word)), "{words:?} in {err}");
        assert!(names(&self.folder.path().join("out")).is_empty());
    }
}

#[test]
fn a_program_gives_the_sums_worked_out_by_hand_on_every_device() {
    let place = Place::new();
    for device in ["cpu", "reference", "emulator:m1", "auto"] {
        place.run(0, "x.npy", &["--device", device]);
        let y = NpyArray::read(place.path("out/y.npy")).unwrap();
        assert_eq!(y.ty, TensorType::new(DType::Fp16, [2, 4]));
        // Row r of the weights sums to (8 r + 3.5) / 2 - 8; relu cuts the first two.
        assert_eq!(y.to_f32(), [0.0, 0.0, 1.75, 5.75, 0.0, 0.0, 1.75, 5.75], "{device}");
    }
    let (json, _) = place.run(0, "x.npy", &["--json", "--device", "cpu"]);
    assert!(
        json.contains("\"schema\": 1") && json.contains("\"device\": \"cpu\"") && json.contains("\"greatest\": 5.75"),
        "{json}"
    );
}

#[test]
fn wrong_shape_wrong_type_and_unknown_names_are_refused() {
    let place = Place::new();
    write_ones(&place.folder.path().join("wide.npy"), &[2, 9]);
    place.refuse("wide.npy", &["\"x\"", "wide.npy", "has shape [2, 9], the program takes [2, 8]"]);
    NpyArray::from_f32([2, 8], &[1.0; 16]).write(place.path("single.npy")).unwrap();
    place.refuse("single.npy", &["\"x\"", "single.npy", "holds fp32, the program takes fp16", "--cast"]);
    place.run(0, "single.npy", &["--cast"]);
    fs::write(place.path("cut.npy"), &fs::read(place.path("x.npy")).unwrap()[..140]).unwrap();
    fs::remove_file(place.path("out/y.npy")).unwrap();
    place.refuse("cut.npy", &["cut.npy", "holds 12 bytes of data"]);
    place.refuse("none.npy", &["none.npy"]);
    let bundle = place.path("bundle");
    let here = place.folder.path();
    let (_, err) = expect(2, here, &["run", &bundle]);
    assert!(err.contains("input \"x\" is missing"), "{err}");
    let (_, err) = expect(2, here, &["run", &bundle, "--input", "z=x.npy"]);
    assert!(err.contains("no input \"z\"; it has x"), "{err}");
    expect(2, here, &["run", &bundle, "--input", "x"]);
}

#[test]
fn damaged_bundles_are_refused_and_the_place_of_the_damage_is_named() {
    let place = Place::new();
    let weights = place.path("bundle/weights.bin");
    let whole = fs::read(&weights).unwrap();
    for length in [0, 32, 64, 100, 128, whole.len() - 1] {
        fs::write(&weights, &whole[..length]).unwrap();
        place.refuse("x.npy", &["weights.bin"]);
    }
    let mut corrupted = whole.clone();
    corrupted[64] ^= 0xff;
    fs::write(&weights, &corrupted).unwrap();
    place.refuse("x.npy", &["weights.bin"]);
    corrupted = whole.clone();
    corrupted[72] ^= 0x40;
    fs::write(&weights, &corrupted).unwrap();
    place.refuse("x.npy", &["weights.bin"]);
    corrupted = whole.clone();
    *corrupted.last_mut().unwrap() ^= 1;
    fs::write(&weights, &corrupted).unwrap();
    place.refuse("x.npy", &["weights.bin", "hash"]);
    fs::remove_file(&weights).unwrap();
    place.refuse("x.npy", &["weights.bin"]);
    fs::write(&weights, &whole).unwrap();
    let program = place.path("bundle/model.mil");
    let text = fs::read_to_string(&program).unwrap();
    fs::write(&program, text.replace("relu(", "rellu(")).unwrap();
    place.refuse("x.npy", &["line ", "rellu"]);
    fs::write(&program, &text[..text.len() / 2]).unwrap();
    place.refuse("x.npy", &["line "]);
    fs::write(&program, text.replace("func main", "func  main")).unwrap();
    let (_, err) = place.run(0, "x.npy", &[]);
    assert!(err.contains("edited"), "{err}");
    fs::remove_file(place.path("out/y.npy")).unwrap();
    fs::write(&program, &text).unwrap();
    let manifest = place.path("bundle/manifest.json");
    let written = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, written.replace("\"schema\": 1", "\"schema\": 9")).unwrap();
    place.refuse("x.npy", &["manifest.json", "schema", "9"]);
    fs::write(&manifest, &written[..written.len() / 2]).unwrap();
    place.refuse("x.npy", &["manifest.json"]);
    fs::write(&manifest, &written).unwrap();
    place.run(0, "x.npy", &[]);
}

#[test]
fn program_text_cut_at_any_byte_is_an_error_with_a_place() {
    let place = Place::new();
    let text = fs::read_to_string(place.path("bundle/model.mil")).unwrap();
    for length in 0..text.trim_end().len() {
        let error = aneforge::mil::parse(&text[..length]).unwrap_err();
        assert!(error.location.line > 0 && !error.to_string().is_empty());
    }
    aneforge::mil::parse(text.trim_end()).unwrap();
}

#[test]
fn devices_that_cannot_run_here_end_with_3_and_unknown_ones_with_2() {
    let place = Place::new();
    let (_, err) = place.run(3, "x.npy", &["--device", "ane"]);
    assert!(err.contains("not possible here"), "{err}");
    let (_, err) = place.run(2, "x.npy", &["--device", "gpu"]);
    assert!(err.contains("\"gpu\"") && err.contains("emulator"), "{err}");
    assert!(names(&place.folder.path().join("out")).is_empty());
}
