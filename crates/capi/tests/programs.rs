//! C and C++ programs, built by the system's compiler against the installed library and headers, and run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod common;

use common::{built, finished, installed, root};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// next = state + x, y = 2 next, over 40 numbers.
const DECODER: &str = "program(1.3)
[buildInfo = dict<string, string>({{\"coremlc-version\", \"3505.4.1\"}})]
{
    func main<ios18>(tensor<fp16, [1, 40]> state, tensor<fp16, [1, 40]> x) {
        tensor<fp16, [1, 40]> next = add(x = state, y = x)[name = string(\"next\")];
        fp16 two = const()[name = string(\"two\"), val = fp16(0x1p+1)];
        tensor<fp16, [1, 40]> y = mul(x = next, y = two)[name = string(\"y\")];
    } -> (next, y);
}
";

/// Runs a program to a good end; what the fake of Apple's frameworks compiles goes into a folder of the run.
fn run(program: &Path, arguments: &[&Path], device: &str) -> (String, String) {
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).env("ANEFORGE_DEVICE", device);
    command.env("ANEFORGE_FAKE_APPLE", aneforge_testkit::fake::library()).env("ANEFORGE_CACHE_DIR", cache.path());
    let output = finished(&mut command, LIMIT);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{}: {}\n{out}{err}", program.display(), output.status);
    (out, err)
}

#[test]
fn the_c_example_keeps_a_total_in_the_device() {
    let folder = installed();
    let program = built("examples/c/counter.c", folder.path());
    let graph = root().join("examples/c/counter.graph");
    for device in ["cpu", "reference", "emulator:m1", "auto", "fake", "fake:in-memory", "fake:client"] {
        let (out, _) = run(&program, &[Path::new(device), &graph], "");
        // Three times 1, -2, 1/2 and 0.
        assert_eq!(
            out,
            "input total fp16 [1, 4]\ninput x fp16 [1, 4]\noutput next fp16 [1, 4]\noutput shown fp16 [1, 4]\n\
             total 4200 c600 3e00 0000\nshown 4200 0000 3e00 0000\n",
            "{device}"
        );
    }
    let output = finished(Command::new(&program).args(["gpu", "nothing"]), LIMIT);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.contains("error 2") && text.contains("gpu"), "{text}");
}

#[test]
fn the_cpp_example_compiles_a_graph_and_runs_the_bundle() {
    let folder = installed();
    let program = built("examples/c/pipeline.cpp", folder.path());
    let (graph, bundle) = (root().join("examples/c/counter.graph"), folder.path().join("counter.ane"));
    let (out, _) = run(&program, &[Path::new("emulator:m1"), &graph, &bundle], "");
    assert_eq!(out, "4000\n4000\n");
    assert!(bundle.join("manifest.json").is_file());
}

#[test]
fn a_decoder_in_c_runs_on_the_dispatchers_symbols() {
    let folder = installed();
    let program = built("testing/c/decoder.c", folder.path());
    let mil = folder.path().join("decoder.mil");
    std::fs::write(&mil, DECODER).unwrap();
    // Of the routes e5rt alone: buffers of models in memory are surfaces, which are longer than the original's.
    for device in ["emulator:m1", "cpu", "reference", "", "fake:e5rt"] {
        let (_, err) = run(&program, &[&mil, folder.path()], device);
        for told in ["nowhere.mil", "names no unit", "no input is called \"z\"", "takes 80 bytes", "is not in the list", "is NULL"]
        {
            assert!(err.contains(told), "{told} is not told: {err}");
        }
    }
    let output = finished(Command::new(&program).args([&mil, folder.path()]).env("ANEFORGE_DEVICE", "emulator:m0"), LIMIT);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && err.contains("emulator:m0") && err.contains("(code 2)"), "{err}");
}

#[test]
fn wrong_calls_are_told_and_right_ones_go_on() {
    let folder = installed();
    let program = built("testing/c/misuse.c", folder.path());
    run(&program, &[&root().join("examples/c/counter.graph"), folder.path()], "");
}

#[test]
fn eight_threads_share_a_device_and_programs() {
    let folder = installed();
    let program = built("testing/c/threads.c", folder.path());
    for device in ["cpu", "emulator:m1", "fake"] {
        run(&program, &[Path::new(device), &root().join("examples/c/counter.graph")], "");
    }
}

/// The arguments of `testing/c/attack.c`: device, graph, text, folder.
fn attacked<'a>(device: &'a str, graph: &'a Path, mil: &'a Path, folder: &'a Path) -> [&'a Path; 4] {
    [Path::new(device), graph, mil, folder]
}

#[test]
fn every_kind_of_wrong_call_is_told_on_every_device() {
    let folder = installed();
    let program = built("testing/c/attack.c", folder.path());
    let mil = folder.path().join("decoder.mil");
    std::fs::write(&mil, DECODER).unwrap();
    let graph = root().join("examples/c/counter.graph");
    for device in ["cpu", "reference", "emulator:m1", "fake", "fake:in-memory", "fake:client"] {
        let (_, err) = run(&program, &attacked(device, &graph, &mil, folder.path()), device);
        assert!(!err.contains("panic") && !err.contains("internal fault"), "{device}: {err}");
    }
}

#[test]
fn valgrind_finds_no_bad_access_and_no_leak() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: no valgrind");
        return;
    }
    let folder = installed();
    let mil = folder.path().join("decoder.mil");
    std::fs::write(&mil, DECODER).unwrap();
    let graph = root().join("examples/c/counter.graph");
    let attack = attacked("reference", &graph, &mil, folder.path());
    for (source, arguments) in [
        ("testing/c/decoder.c", &[mil.as_path(), folder.path()][..]),
        ("testing/c/misuse.c", &[&graph, folder.path()]),
        ("testing/c/attack.c", &attack),
    ] {
        let program = built(source, folder.path());
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        command.arg(&program).args(arguments).env("ANEFORGE_DEVICE", "reference").env("RAYON_NUM_THREADS", "2");
        let output = finished(&mut command, Duration::from_secs(300));
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
