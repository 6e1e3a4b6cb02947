//! IOReport's counters: energy by part of the chip, and the engine's traffic.

use super::{Counter, Energy, Powermetrics, Readable, Unreadable};
use aneforge_sys::energy::{EnergyReader, Rail, Sample};
use aneforge_sys::{Frameworks, Source};

/// The counters of a system, from the begin of a span to its end.
struct IoReport {
    reader: EnergyReader,
    begun: Option<Sample>,
}

/// What counts energy on this system: IOReport, else `powermetrics`, else nothing, with the reason.
pub fn counter(source: &Source) -> Box<dyn Counter> {
    let opened = Frameworks::open(source).and_then(|frameworks| EnergyReader::new(&frameworks.energy()?));
    match opened {
        Ok(reader) => Box::new(IoReport { reader, begun: None }),
        Err(_) if *source == Source::System && Powermetrics::system().is_here() => Box::new(Powermetrics::system()),
        Err(error) => Box::new(Unreadable(error.to_string())),
    }
}

impl Counter for IoReport {
    fn describe(&self) -> String {
        "IOReport".to_string()
    }

    fn begin(&mut self) -> Result<(), String> {
        self.begun = Some(self.reader.sample().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn end(&mut self, seconds: f64) -> Result<Energy, String> {
        let begun = self.begun.take().ok_or("no span was begun")?;
        let readings = self.reader.sample().and_then(|now| now.since(&begun)).map_err(|error| error.to_string())?;
        let part = |rail: Rail| match readings.joules(rail) {
            Ok(Some(joules)) => Readable::Value(joules),
            Ok(None) => Readable::NotReadable(format!("the system has no energy counter of {rail:?}")),
            Err(error) => Readable::NotReadable(error.to_string()),
        };
        let ane_bytes = match readings.engine_bytes() {
            (None, None) => Readable::NotReadable("the system does not count the engine's bytes".to_string()),
            (read, written) => Readable::Value(read.unwrap_or(0).saturating_add(written.unwrap_or(0)) as f64),
        };
        Ok(Energy {
            seconds,
            ane: part(Rail::Engine),
            cpu: part(Rail::Cpu),
            gpu: part(Rail::Gpu),
            dram: part(Rail::Memory),
            ane_bytes,
        })
    }
}
