//! One side of a comparison: a process with a line protocol.

use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A process that prints `ready`, `ms <n>` for each `run`, and `peak_rss_kib <n>` at the end.
pub struct Side {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Side {
    /// Starts a program and waits until it is ready.
    pub fn start(program: &Path, arguments: &[OsString]) -> Result<Self> {
        let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut side = Self { child, input, lines: BufReader::new(output).lines() };
        side.expect("ready")?;
        Ok(side)
    }

    /// This very program, with arguments that make it serve.
    pub fn ours(arguments: &[OsString]) -> Result<Self> {
        Self::start(&std::env::current_exe()?, arguments)
    }

    /// A Python program of the tests with its arguments, or nothing where the environment that `make bench` sets is missing.
    pub fn python(script: &str, arguments: &[OsString]) -> Result<Option<Self>> {
        let (Some(scripts), Some(python)) = (path("ANEFORGE_PYTHON_SCRIPTS"), path("ANEFORGE_PYTHON")) else { return Ok(None) };
        let all: Vec<OsString> = std::iter::once(scripts.join(script).into()).chain(arguments.iter().cloned()).collect();
        Self::start(&python, &all).map(Some)
    }

    /// One run, in milliseconds.
    pub fn run(&mut self) -> Result<f64> {
        let input = self.input.as_mut().ok_or("already ended")?;
        writeln!(input, "run")?;
        input.flush()?;
        let answer = self.expect("ms")?;
        Ok(answer.split_whitespace().next().ok_or("no time")?.parse()?)
    }

    /// Ends it; its peak memory in MB.
    pub fn end(mut self) -> Result<f64> {
        drop(self.input.take());
        let kibibytes: f64 = self.expect("peak_rss_kib")?.parse()?;
        self.child.wait()?;
        Ok(kibibytes * 1024.0 / 1e6)
    }

    /// The rest of the next line, which must start with `word`.
    fn expect(&mut self, word: &str) -> Result<String> {
        let line = self.lines.next().ok_or_else(|| format!("the process ended instead of printing {word:?}"))??;
        match line.strip_prefix(word) {
            Some(rest) => Ok(rest.trim().to_string()),
            None => Err(format!("expected {word:?}, got {line:?}").into()),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Only where an error cut it short; a process that has ended already is left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A path from the environment.
pub fn path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// The other end of the protocol: `ready`, then the time of each run asked for, then the peak memory.
pub fn answer(mut run: impl FnMut() -> Result<Duration>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        if line?.trim() != "run" {
            break;
        }
        writeln!(out, "ms {:.4}", run()?.as_secs_f64() * 1e3)?;
        out.flush()?;
    }
    writeln!(out, "peak_rss_kib {}", peak_kibibytes())?;
    Ok(())
}

/// From the kernel's accounts; 0 where there are none to read.
fn peak_kibibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
