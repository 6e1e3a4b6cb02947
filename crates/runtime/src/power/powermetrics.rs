//! The system's `powermetrics` command, for machines on which IOReport cannot be read. It wants root.

use super::{Counter, Energy, Readable};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What one sample of the command says, in watts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Length of the sample.
    pub seconds: f64,
    /// The Neural Engine.
    pub ane: Option<f64>,
    /// Processor cores.
    pub cpu: Option<f64>,
    /// The graphics unit.
    pub gpu: Option<f64>,
    /// Memory; newer systems do not print it.
    pub dram: Option<f64>,
}

/// Reads the command's text: a header with the sample's length, then lines such as `ANE Power: 12 mW`.
pub fn parse(text: &str) -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(seconds) = elapsed(line) {
            all.push(Sample { seconds, ..Sample::default() });
            continue;
        }
        let (Some(sample), Some((what, value))) = (all.last_mut(), line.split_once(':')) else { continue };
        let slot = match what.trim() {
            "ANE Power" => &mut sample.ane,
            "CPU Power" => &mut sample.cpu,
            "GPU Power" => &mut sample.gpu,
            "DRAM Power" => &mut sample.dram,
            _ => continue,
        };
        // Some systems print the graphics unit twice; the first line is that of the power sampler.
        if slot.is_none() {
            *slot = watts(value.trim());
        }
    }
    all
}

/// `*** Sampled system activity (Mon Jan 5 10:00:00 2026 +0100) (1003.42ms elapsed) ***`
fn elapsed(line: &str) -> Option<f64> {
    let (before, _) = line.strip_prefix("*** Sampled system activity")?.split_once("ms elapsed)")?;
    let (_, number) = before.rsplit_once('(')?;
    number.trim().parse::<f64>().ok().filter(|length| length.is_finite() && *length > 0.0).map(|length| length / 1e3)
}

fn watts(value: &str) -> Option<f64> {
    let (number, unit) = value.split_once(' ')?;
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    match unit.trim() {
        "mW" => Some(number / 1e3),
        "W" => Some(number),
        _ => None,
    }
}

/// The command as a counter: it samples in a process of its own from the begin of a span to its end.
#[derive(Debug)]
pub struct Powermetrics {
    program: PathBuf,
    running: Option<Child>,
}

/// Time between two samples, in milliseconds.
const INTERVAL: &str = "100";

impl Powermetrics {
    /// The command at a path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), running: None }
    }

    /// The system's.
    pub fn system() -> Self {
        Self::at("/usr/bin/powermetrics")
    }

    /// Whether the command is there.
    pub fn is_here(&self) -> bool {
        self.program.is_file()
    }
}

impl Counter for Powermetrics {
    fn describe(&self) -> String {
        "powermetrics".to_string()
    }

    fn begin(&mut self) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(["--samplers", "cpu_power,gpu_power,ane_power", "-i", INTERVAL]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?;
        self.running = Some(child);
        Ok(())
    }

    fn end(&mut self, seconds: f64) -> Result<Energy, String> {
        let mut child = self.running.take().ok_or("powermetrics was not started")?;
        if let Ok(Some(status)) = child.try_wait()
            && !status.success()
        {
            return Err(format!("powermetrics ended with {status}; it wants root"));
        }
        // It samples until it is ended; the last, unfinished sample is lost.
        let _ = child.kill();
        let mut text = String::new();
        let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
        let _ = child.wait();
        if let Some(Err(error)) = read {
            return Err(format!("the output of powermetrics cannot be read: {error}"));
        }
        let samples = parse(&text);
        let covered: f64 = samples.iter().map(|sample| sample.seconds).sum();
        if covered == 0.0 {
            return Err("powermetrics gave no sample; it wants root, and a run of a second or more".to_string());
        }
        // Watts of the samples stand for the whole span.
        let unit = |pick: fn(&Sample) -> Option<f64>, what: &str| {
            let joules = samples.iter().map(|sample| pick(sample).map(|watts| watts * sample.seconds)).sum::<Option<f64>>();
            joules.map_or_else(
                || Readable::NotReadable(format!("powermetrics does not print {what}")),
                |joules| Readable::Value(joules / covered * seconds),
            )
        };
        Ok(Energy {
            seconds,
            ane: unit(|sample| sample.ane, "the engine's power"),
            cpu: unit(|sample| sample.cpu, "the processor's power"),
            gpu: unit(|sample| sample.gpu, "the graphics unit's power"),
            dram: unit(|sample| sample.dram, "the power of memory"),
            ane_bytes: Readable::NotReadable("powermetrics does not count bytes".to_string()),
        })
    }
}

impl Drop for Powermetrics {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form that the command prints.
    const TEXT: &str = "\
Machine model: Mac14,2
OS version: 25D125

*** Sampled system activity (Mon Jan  5 10:00:00 2026 +0100) (500.00ms elapsed) ***

**** Processor usage ****

E-Cluster Online: 100%
CPU Power: 1200 mW
GPU Power: 40 mW
ANE Power: 2000 mW
Combined Power (CPU + GPU + ANE): 3240 mW

**** GPU usage ****

GPU HW active frequency: 444 MHz
GPU Power: 41 mW

*** Sampled system activity (Mon Jan  5 10:00:01 2026 +0100) (1500.00ms elapsed) ***

CPU Power: 400 mW
GPU Power: 20 mW
ANE Power: 0 mW
";

    #[test]
    fn samples_are_read_with_their_lengths() {
        let samples = parse(TEXT);
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0], Sample { seconds: 0.5, ane: Some(2.0), cpu: Some(1.2), gpu: Some(0.04), dram: None });
        assert_eq!(samples[1].ane, Some(0.0));
        for hostile in
            ["", "*** Sampled system activity (ms elapsed)", "ANE Power: 3 mW", "*** Sampled system activity (NaNms elapsed)"]
        {
            assert_eq!(parse(hostile), [], "{hostile}");
        }
        assert_eq!(parse("*** Sampled system activity (x) (1ms elapsed) ***\nANE Power: lots")[0].ane, None);
    }

    #[cfg(unix)]
    #[test]
    fn the_command_is_run_over_a_span_and_ended() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("powermetrics");
        std::fs::write(&path, format!("#!/bin/sh\ncat <<'END'\n{TEXT}END\nexec sleep 60\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut counter = Powermetrics::at(&path);
        counter.begin().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        let energy = counter.end(4.0).unwrap();
        // Two seconds of samples with 1 J of the engine stand for four.
        assert_eq!(energy.ane, Readable::Value(2.0));
        assert_eq!(energy.dram.value(), None);
        std::fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
        let mut refused = Powermetrics::at(&path);
        refused.begin().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(refused.end(1.0).unwrap_err().contains("root"));
    }
}
