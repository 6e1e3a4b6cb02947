//! Energy of a run: what the system counts for the engine, the processor, the graphics unit and memory, with the idle part taken off.
//!
//! On Apple silicon IOReport counts energy per unit without special rights (groups `Energy Model` and `AMC Stats`: ANE guide,
//! arXiv 2606.22283, chapter 33); `powermetrics` tells less and wants root. Where neither can be read that is what the answer says:
//! no figure is ever made up.

mod io_report;
mod powermetrics;

pub use io_report::counter;
pub use powermetrics::{Powermetrics, Sample, parse};

use serde::Serialize;
use std::time::{Duration, Instant};

/// A quantity, or why it cannot be had on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readable<T> {
    /// The quantity.
    Value(T),
    /// It is not counted here.
    NotReadable(String),
}

impl<T: Copy> Readable<T> {
    /// The quantity, if there is one.
    pub fn value(&self) -> Option<T> {
        match self {
            Self::Value(value) => Some(*value),
            Self::NotReadable(_) => None,
        }
    }

    fn map<U>(&self, function: impl FnOnce(T) -> U) -> Readable<U> {
        match self {
            Self::Value(value) => Readable::Value(function(*value)),
            Self::NotReadable(reason) => Readable::NotReadable(reason.clone()),
        }
    }
}

/// Energy in joules that units of the chip took in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Energy {
    /// Length of the span.
    pub seconds: f64,
    /// The Neural Engine.
    pub ane: Readable<f64>,
    /// Processor cores.
    pub cpu: Readable<f64>,
    /// The graphics unit.
    pub gpu: Readable<f64>,
    /// Memory.
    pub dram: Readable<f64>,
    /// Bytes that the engine read from memory and wrote to it.
    pub ane_bytes: Readable<f64>,
}

impl Energy {
    /// Nothing is counted, for this reason.
    pub fn unreadable(seconds: f64, reason: &str) -> Self {
        let none = || Readable::NotReadable(reason.to_string());
        Self { seconds, ane: none(), cpu: none(), gpu: none(), dram: none(), ane_bytes: none() }
    }

    /// The same without what an idle machine takes in that time; never below zero.
    pub fn above(&self, idle: &Self) -> Self {
        let part = |busy: &Readable<f64>, idle_part: &Readable<f64>| match idle_part {
            Readable::Value(joules) if idle.seconds > 0.0 => {
                busy.map(|busy| (busy - joules / idle.seconds * self.seconds).max(0.0))
            }
            _ => busy.clone(),
        };
        Self {
            seconds: self.seconds,
            ane: part(&self.ane, &idle.ane),
            cpu: part(&self.cpu, &idle.cpu),
            gpu: part(&self.gpu, &idle.gpu),
            dram: part(&self.dram, &idle.dram),
            ane_bytes: part(&self.ane_bytes, &idle.ane_bytes),
        }
    }

    /// The units with their joules, in the order in which people want them.
    pub fn units(&self) -> [(&'static str, &Readable<f64>); 4] {
        [("engine", &self.ane), ("processor", &self.cpu), ("graphics", &self.gpu), ("memory", &self.dram)]
    }
}

/// Something that counts energy.
pub trait Counter {
    /// Words for people: where the figures come from.
    fn describe(&self) -> String;

    /// Begins a span.
    ///
    /// # Errors
    /// Why nothing can be read, in words.
    fn begin(&mut self) -> Result<(), String>;

    /// Ends it and gives what was counted since; `seconds` is its length by the caller's clock.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn end(&mut self, seconds: f64) -> Result<Energy, String>;
}

/// What a run took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Where the figures come from.
    pub source: String,
    /// Calls of the run.
    pub calls: usize,
    /// The idle window before it.
    pub idle: Energy,
    /// The run, idle part included.
    pub run: Energy,
    /// The run, idle part taken off.
    pub net: Energy,
}

impl Measurement {
    /// Net joules of one call on a unit of [`Energy::units`]' order, watts over the run beside it.
    pub fn per_call(&self, joules: &Readable<f64>) -> Option<(f64, f64)> {
        let joules = joules.value()?;
        (self.calls > 0 && self.net.seconds > 0.0).then(|| (joules / self.calls as f64, joules / self.net.seconds))
    }
}

/// Measures an idle window, then `calls` calls of `call`. Where the counter cannot be read the calls are made all the same.
///
/// # Errors
/// What `call` reports.
pub fn measure<E>(
    counter: &mut dyn Counter,
    idle: Duration,
    calls: usize,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Measurement, E> {
    let resting = span(counter, || std::thread::sleep(idle)).0;
    let (run, outcome) = span(counter, || (0..calls).try_for_each(|_| call()));
    outcome?;
    Ok(Measurement { source: counter.describe(), calls, net: run.above(&resting), idle: resting, run })
}

/// What a piece of work took, with what it gave.
fn span<T>(counter: &mut dyn Counter, work: impl FnOnce() -> T) -> (Energy, T) {
    let begun = counter.begin();
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    let energy = begun.and_then(|()| counter.end(seconds)).unwrap_or_else(|reason| Energy::unreadable(seconds, &reason));
    (energy, result)
}

/// Nothing counts here.
#[derive(Clone, Debug)]
pub struct Unreadable(pub String);

impl Counter for Unreadable {
    fn describe(&self) -> String {
        format!("not readable here: {}", self.0)
    }

    fn begin(&mut self) -> Result<(), String> {
        Err(self.0.clone())
    }

    fn end(&mut self, _: f64) -> Result<Energy, String> {
        Err(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts two watts while anything happens, half a watt always.
    struct Clockwork;

    impl Counter for Clockwork {
        fn describe(&self) -> String {
            "clockwork".to_string()
        }

        fn begin(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn end(&mut self, seconds: f64) -> Result<Energy, String> {
            Ok(Energy { ane: Readable::Value(0.5 * seconds), ..Energy::unreadable(seconds, "no wires") })
        }
    }

    #[test]
    fn what_an_idle_machine_takes_is_taken_off() {
        let idle = Energy { ane: Readable::Value(1.0), ane_bytes: Readable::Value(100.0), ..Energy::unreadable(2.0, "none") };
        let busy = Energy { ane: Readable::Value(4.0), ane_bytes: Readable::Value(50.0), ..Energy::unreadable(4.0, "none") };
        let net = busy.above(&idle);
        assert_eq!(net.ane, Readable::Value(2.0));
        assert_eq!(net.ane_bytes, Readable::Value(0.0), "never below zero");
        assert_eq!(net.cpu, Readable::NotReadable("none".to_string()));
    }

    #[test]
    fn a_run_is_measured_per_call_and_what_is_not_counted_says_so() {
        let mut calls = 0;
        let done = measure::<()>(&mut Clockwork, Duration::from_millis(5), 4, || {
            calls += 1;
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        });
        let done = done.unwrap();
        assert_eq!(calls, 4);
        assert!(done.run.seconds >= 0.008 && done.net.ane.value().unwrap() < 1e-9, "as idle as before");
        assert!((done.per_call(&done.run.ane).unwrap().1 - 0.5).abs() < 1e-9);
        assert_eq!(done.per_call(&done.run.gpu), None);
        let dark = measure::<()>(&mut Unreadable("no Mac".to_string()), Duration::ZERO, 1, || Ok(())).unwrap();
        assert_eq!(dark.run.ane, Readable::NotReadable("no Mac".to_string()));
        assert_eq!(measure(&mut Clockwork, Duration::ZERO, 3, || Err("broken")).unwrap_err(), "broken");
    }
}
