//! What must not pass silently or leave anything behind: lost results, numbers that are none, a command cut off.
#![allow(clippy::unwrap_used)] // tests

mod common;

use aneforge::io::NpyArray;
use aneforge::{CompileOptions, DType, Graph, compile};
use common::{command, expect, names, text, write_bundle};
use std::path::Path;

/// `y = x + 1` and `z = 2 x` with x fp16 \[4\].
fn write_two_outputs(folder: &Path) {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4]);
    compile(&[("y", &(&x + 1.0)), ("z", &(&x * 2.0))], &CompileOptions::default()).unwrap().write(folder).unwrap();
}

fn write_f32(path: &Path, values: &[f32]) {
    NpyArray::from_f32([values.len()], values).write(path).unwrap();
}

#[test]
fn two_outputs_never_share_a_file() {
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&here.path().join(name)).to_string();
    write_two_outputs(&here.path().join("bundle"));
    write_f32(&here.path().join("x.npy"), &[1.0, 2.0, 3.0, 4.0]);
    std::fs::create_dir(here.path().join("out")).unwrap();
    let run = |code: i32, outputs: &[String]| {
        let (bundle, input) = (path("bundle"), format!("x={}", path("x.npy")));
        let mut arguments = vec!["run", &bundle, "--input", &input, "--cast"];
        outputs.iter().for_each(|output| arguments.extend(["--output", output]));
        expect(code, here.path(), &arguments)
    };
    let both = format!("={}", path("one.npy"));
    let (_, err) = run(2, &[format!("y{both}"), format!("z{both}")]);
    assert!(err.contains("two outputs"), "{err}");
    let (_, err) = run(2, &[format!("y{both}"), format!("y={}", path("other.npy"))]);
    assert!(err.contains("second place"), "{err}");
    assert_eq!(names(here.path()), ["bundle", "out", "x.npy"]);
    // A file for one of them and a folder for the rest, in either order.
    run(0, &[path("out"), format!("y{both}")]);
    assert_eq!(NpyArray::read(path("one.npy")).unwrap().to_f32(), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(NpyArray::read(path("out/z.npy")).unwrap().to_f32(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(names(&here.path().join("out")), ["z.npy"]);
}

#[test]
fn casting_refuses_numbers_that_would_become_infinite_and_results_that_are_no_numbers_are_counted() {
    let here = tempfile::tempdir().unwrap();
    let (bundle, file) = (here.path().join("bundle"), here.path().join("x.npy"));
    write_two_outputs(&bundle);
    let input = format!("x={}", text(&file));
    let arguments = ["run", text(&bundle), "--input", &input, "--cast"];
    write_f32(&file, &[1.0, 1e6, 3.0, 4.0]);
    let (_, err) = expect(2, here.path(), &arguments);
    assert!(err.contains("1000000 at element 1") && err.contains("fp16"), "{err}");
    write_f32(&file, &[1.0, f32::NAN, f32::INFINITY, 4.0]);
    let (out, _) = expect(0, here.path(), &arguments);
    assert_eq!(out.matches("2 of them NaN or infinite").count(), 2, "{out}");
}

#[test]
fn compiling_onto_something_that_is_not_a_bundle_leaves_it_alone() {
    let here = tempfile::tempdir().unwrap();
    let (bundle, folder) = (here.path().join("bundle"), here.path().join("folder"));
    write_bundle(&bundle);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("manifest.json"), "{\"name\": \"shop\"}").unwrap();
    let (_, err) = expect(2, here.path(), &["compile", text(&bundle), "-o", text(&folder)]);
    assert!(err.contains("not a bundle"), "{err}");
    assert_eq!(names(&folder), ["manifest.json"]);
}

#[cfg(unix)]
#[test]
fn a_command_that_a_signal_ends_leaves_nothing_behind() {
    let here = tempfile::tempdir().unwrap();
    let graph = Graph::new();
    // Large enough to be in the middle of writing at most of the moments tried.
    let x = graph.input("x", DType::Fp16, &[1, 4096]);
    let values = vec![0.5; 4096 * 4096];
    let y = x.matmul(&graph.values(DType::Fp16, &[4096, 4096], &values));
    let bundle = here.path().join("bundle");
    compile(&[("y", &y)], &CompileOptions::default()).unwrap().write(&bundle).unwrap();
    let out = here.path().join("out");
    for milliseconds in [2, 5, 8, 12, 16, 20, 30] {
        std::fs::create_dir(&out).unwrap();
        let target = out.join("copy");
        let mut child = command(here.path(), &["compile", text(&bundle), "-o", text(&target)]);
        let mut child = child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
        let left = names(&out);
        assert!(kill.success() && (left.is_empty() || left == ["copy"]), "after {milliseconds} ms: {left:?}");
        std::fs::remove_dir_all(&out).unwrap();
    }
}
