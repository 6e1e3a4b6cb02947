//! Which of IOReport's channels count what.

use super::{Energy, Readable};

/// A counter of IOReport with what it counted in a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Group, for example `Energy Model`.
    pub group: String,
    /// Subgroup; often empty.
    pub subgroup: String,
    /// Name, for example `ANE0`.
    pub name: String,
    /// Unit label, for example `mJ`; channels of one group may differ.
    pub unit: String,
    /// Count.
    pub value: i64,
}

/// The group of energies.
const ENERGY: &str = "Energy Model";
/// The group of memory traffic.
const TRAFFIC: &str = "AMC Stats";

/// Adds channels up by unit of the chip.
///
/// Names as public tools and the ANE guide (arXiv 2606.22283, chapter 33) have them: `ANE0` (a chip of two dies has more), `CPU
/// Energy`, `GPU Energy` and `DRAM0`, with a prefix for each die; `AMC Stats`, `ANE0 RD` and `ANE0 WR` for bytes (`DCS` counts the
/// same traffic once more, behind the cache).
pub fn energy_of(channels: &[Channel], seconds: f64) -> Energy {
    let energy = |what: &str, fits: &dyn Fn(&str) -> bool| {
        let mut sum = None;
        for channel in channels.iter().filter(|channel| channel.group == ENERGY && fits(bare(&channel.name))) {
            match joules(&channel.unit) {
                Some(unit) => *sum.get_or_insert(0.0) += channel.value as f64 * unit,
                None => {
                    return Readable::NotReadable(format!("{} is counted in {:?}, an unknown unit", channel.name, channel.unit));
                }
            }
        }
        sum.map_or_else(|| Readable::NotReadable(format!("no channel of {ENERGY:?} counts {what}")), Readable::Value)
    };
    let is_numbered = |name: &str, stem: &str| name.strip_prefix(stem).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    let traffic = channels.iter().filter(|channel| {
        let ane = bare(&channel.name).strip_suffix(" RD").or(bare(&channel.name).strip_suffix(" WR"));
        channel.group == TRAFFIC && ane.is_some_and(|ane| is_numbered(ane, "ANE"))
    });
    let bytes: Vec<i64> = traffic.map(|channel| channel.value).collect();
    Energy {
        seconds,
        ane: energy("the engine", &|name| is_numbered(name, "ANE")),
        cpu: energy("the processor", &|name| name == "CPU Energy"),
        gpu: energy("the graphics unit", &|name| name == "GPU Energy" || name == "GPU"),
        dram: energy("memory", &|name| is_numbered(name, "DRAM")),
        ane_bytes: match bytes.is_empty() {
            true => Readable::NotReadable(format!("no channel of {TRAFFIC:?} counts the engine's bytes")),
            false => Readable::Value(bytes.iter().map(|&bytes| bytes as f64).sum()),
        },
    }
}

/// A name without its die.
fn bare(name: &str) -> &str {
    let without = name.strip_prefix("DIE_").and_then(|rest| rest.split_once('_'));
    without.filter(|(die, _)| die.bytes().all(|b| b.is_ascii_digit())).map_or(name, |(_, name)| name).trim()
}

fn joules(unit: &str) -> Option<f64> {
    match unit.trim() {
        "J" => Some(1.0),
        "mJ" => Some(1e-3),
        "uJ" | "µJ" => Some(1e-6),
        "nJ" => Some(1e-9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(group: &str, name: &str, unit: &str, value: i64) -> Channel {
        Channel { group: group.to_string(), subgroup: String::new(), name: name.to_string(), unit: unit.to_string(), value }
    }

    #[test]
    fn channels_add_up_by_unit_whatever_they_are_counted_in() {
        let all = [
            channel("Energy Model", "ANE0", "mJ", 1500),
            channel("Energy Model", "ANE1", "uJ", 500_000),
            channel("Energy Model", "DIE_0_CPU Energy", "mJ", 10),
            channel("Energy Model", "DIE_1_CPU Energy", "mJ", 5),
            channel("Energy Model", "PCPU0", "mJ", 9),
            channel("Energy Model", "GPU Energy", "nJ", 2_000_000_000),
            channel("Energy Model", "DRAM", "mJ", 7),
            channel("AMC Stats", "ANE0 RD", "B", 1000),
            channel("AMC Stats", "ANE0 WR", "B", 24),
            channel("AMC Stats", "ANE0 DCS RD", "B", 5000),
        ];
        let energy = energy_of(&all, 1.0);
        assert_eq!(energy.ane, Readable::Value(2.0));
        assert_eq!(energy.cpu, Readable::Value(0.015));
        assert_eq!(energy.gpu, Readable::Value(2.0));
        assert_eq!(energy.dram, Readable::Value(0.007));
        assert_eq!(energy.ane_bytes, Readable::Value(1024.0));
    }

    #[test]
    fn what_is_missing_or_in_an_unknown_unit_is_no_zero() {
        let energy = energy_of(&[channel("Energy Model", "ANE0", "events", 4)], 1.0);
        for reading in [&energy.ane, &energy.cpu, &energy.gpu, &energy.dram, &energy.ane_bytes] {
            assert_eq!(reading.value(), None, "{reading:?}");
        }
    }
}
