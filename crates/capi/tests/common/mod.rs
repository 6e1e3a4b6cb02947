//! The library under its installed name, and C programs built against it.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder with `lib/libaneforge.so` (or .dylib) and `include`, as `make capi` installs them.
pub fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ending = std::env::consts::DLL_SUFFIX;
    let beside = std::env::current_exe().unwrap();
    let built = beside.parent().unwrap().join(format!("libaneforge_capi{ending}"));
    assert!(built.is_file(), "{} is not built", built.display());
    let (libraries, headers) = (folder.path().join("lib"), folder.path().join("include"));
    std::fs::create_dir(&libraries).unwrap();
    std::fs::create_dir(&headers).unwrap();
    std::fs::copy(built, libraries.join(format!("libaneforge{ending}"))).unwrap();
    for header in ["aneforge.h", "ane_e5rt.h"] {
        std::fs::copy(root().join("crates/capi/include").join(header), headers.join(header)).unwrap();
    }
    folder
}

pub fn library(installed: &Path) -> PathBuf {
    installed.join("lib").join(format!("libaneforge{}", std::env::consts::DLL_SUFFIX))
}

/// Builds a C or C++ program without a warning.
pub fn built(source: &str, installed: &Path) -> PathBuf {
    let source = root().join(source);
    let program = installed.join(source.file_stem().unwrap());
    let (compiler, standard) = if source.extension().unwrap() == "cpp" { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    let mut command = Command::new(compiler);
    command.args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg(format!("-I{}", installed.join("include").display())).arg(&source);
    command.arg(format!("-L{}", installed.join("lib").display())).args(["-laneforge", "-pthread"]);
    command.arg(format!("-Wl,-rpath,{}", installed.join("lib").display())).arg("-o").arg(&program);
    let output = finished(command.stdin(Stdio::null()), Duration::from_secs(120));
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a command that must end in time.
pub fn finished(command: &mut Command, limit: Duration) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (drained(child.stdout.take().unwrap()), drained(child.stderr.take().unwrap()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > limit => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{command:?} does not end within {limit:?}");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// Reads all of a pipe beside the caller, so that a full one does not stop its writer.
fn drained(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}
