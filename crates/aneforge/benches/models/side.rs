//! One side of a comparison: a process with a line protocol.

use crate::Result;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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

    /// This very program, serving a bundle on a device.
    pub fn ours(bundle: &Path, device: &str) -> Result<Self> {
        Self::start(&std::env::current_exe()?, &["serve".into(), bundle.into(), device.into()])
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
