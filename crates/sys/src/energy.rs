//! IOReport: what the chip's own counters say about energy and memory traffic.
//!
//! Groups and channels: the ANE guide (arXiv 2606.22283, chapter on telemetry) and the public tool macmon, which reads the same
//! counters. No entitlement is needed. A chip that lacks a channel gives no number for it, which is not zero.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use crate::SysError;
use crate::library::{Search, functions};
use crate::objc::types::Id;
use crate::objc::{ObjectiveC, Retained};

functions! {
    /// Types as public readers of IOReport declare them.
    struct ReportFunctions {
        copy_channels: "IOReportCopyChannelsInGroup" (group: Id, subgroup: Id, a: u64, b: u64, c: u64) -> *mut c_void;
        merge: "IOReportMergeChannels" (into: *mut c_void, from: *mut c_void, nothing: *const c_void);
        subscribe: "IOReportCreateSubscription" (nothing: *const c_void, channels: *mut c_void, subscribed: *mut *mut c_void, identifier: u64, none: *const c_void) -> *mut c_void;
        sample: "IOReportCreateSamples" (subscription: *mut c_void, channels: *mut c_void, nothing: *const c_void) -> *mut c_void;
        difference: "IOReportCreateSamplesDelta" (earlier: *mut c_void, later: *mut c_void, nothing: *const c_void) -> *mut c_void;
        group: "IOReportChannelGetGroup" (channel: Id) -> Id;
        subgroup: "IOReportChannelGetSubGroup" (channel: Id) -> Id;
        name: "IOReportChannelGetChannelName" (channel: Id) -> Id;
        unit: "IOReportChannelGetUnitLabel" (channel: Id) -> Id;
        value: "IOReportSimpleGetIntegerValue" (channel: Id, index: i32) -> i64;
        release: "CFRelease" (object: *mut c_void);
    }
}

/// The group of energy counters.
const ENERGY: &str = "Energy Model";
/// The group of counters at the memory controllers.
const TRAFFIC: &str = "AMC Stats";

/// The functions of IOReport.
pub struct Energy {
    functions: ReportFunctions,
    runtime: Arc<ObjectiveC>,
}

impl std::fmt::Debug for Energy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IOReport")
    }
}

/// An object that a `Create` or `Copy` function gave.
struct Created {
    raw: NonNull<c_void>,
    energy: Arc<Energy>,
}

// SAFETY: CoreFoundation's objects are counted atomically; these are not changed after they are made.
unsafe impl Send for Created {}
// SAFETY: as above.
unsafe impl Sync for Created {}

impl Created {
    fn new(energy: &Arc<Energy>, raw: *mut c_void) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, energy: energy.clone() })
    }

    fn raw(&self) -> *mut c_void {
        self.raw.as_ptr()
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        // SAFETY: the reference that the creating function gave is given back once.
        unsafe { (self.energy.functions.release.call)(self.raw()) }
    }
}

impl Energy {
    pub(crate) fn load(runtime: &Arc<ObjectiveC>, search: &mut Search<'_>) -> Option<Self> {
        Some(Self { functions: ReportFunctions::load(search)?, runtime: runtime.clone() })
    }

    fn group(self: &Arc<Self>, name: &str) -> Result<Option<Created>, SysError> {
        let name = self.runtime.text(name)?;
        let copy = self.functions.copy_channels.call;
        // SAFETY: the name is a text that lives during the call; no subgroup is named.
        let raw = self.runtime.with_pool(|| unsafe { copy(name.id(), Id::NIL, 0, 0, 0) });
        Ok(Created::new(self, raw))
    }
}

/// A subscription to the counters of energy and, where there are such, of memory traffic.
pub struct EnergyReader {
    subscription: Created,
    channels: Retained,
    energy: Arc<Energy>,
}

impl EnergyReader {
    /// Subscribes.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system has no energy counters, as in a virtual machine.
    pub fn new(energy: &Arc<Energy>) -> Result<Self, SysError> {
        let functions = &energy.functions;
        let all = energy.group(ENERGY)?.ok_or(SysError::Nothing { call: functions.copy_channels.name })?;
        if let Some(traffic) = energy.group(TRAFFIC)? {
            // SAFETY: both are channel lists that live; the first is changed, and nobody else has it.
            unsafe { (functions.merge.call)(all.raw(), traffic.raw(), std::ptr::null()) };
        }
        let copy = &energy.runtime.foundation.object.mutable_copy;
        let (send, selector) = copy.ready()?;
        let channels = energy.runtime.with_pool(|| {
            // SAFETY: the list is a dictionary, of one kind in both frameworks; the copy is ours.
            unsafe { energy.runtime.owned(send(Id(all.raw()), selector)) }
        });
        let channels = channels.ok_or(SysError::Nothing { call: copy.name })?;
        // The list of what was subscribed is the subscription's; who owns it is not documented, so it is not released.
        let mut subscribed = std::ptr::null_mut();
        let raw = energy.runtime.with_pool(|| {
            // SAFETY: the channels live during the call; one pointer is written.
            unsafe { (functions.subscribe.call)(std::ptr::null(), channels.id().0, &raw mut subscribed, 0, std::ptr::null()) }
        });
        let subscription = Created::new(energy, raw).ok_or(SysError::Nothing { call: functions.subscribe.name })?;
        Ok(Self { subscription, channels, energy: energy.clone() })
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system gives none.
    pub fn sample(&mut self) -> Result<Sample, SysError> {
        let sample = self.energy.functions.sample;
        let raw = self.energy.runtime.with_pool(|| {
            // SAFETY: subscription and channels live; `&mut self` keeps a second sample out meanwhile.
            unsafe { (sample.call)(self.subscription.raw(), self.channels.id().0, std::ptr::null()) }
        });
        let counters = Created::new(&self.energy, raw).ok_or(SysError::Nothing { call: sample.name })?;
        Ok(Sample { counters, taken: Instant::now() })
    }
}

/// All counters at one moment.
pub struct Sample {
    counters: Created,
    taken: Instant,
}

impl Sample {
    /// What was counted between an earlier sample and this one.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system gives no difference; [`SysError::Text`] for a name that is no text.
    pub fn since(&self, earlier: &Self) -> Result<Readings, SysError> {
        let energy = &self.counters.energy;
        let difference = energy.functions.difference;
        let raw = energy.runtime.with_pool(|| {
            // SAFETY: both samples live.
            unsafe { (difference.call)(earlier.counters.raw(), self.counters.raw(), std::ptr::null()) }
        });
        let difference = Created::new(energy, raw).ok_or(SysError::Nothing { call: difference.name })?;
        let seconds = self.taken.saturating_duration_since(earlier.taken).as_secs_f64();
        Ok(Readings { seconds, channels: read(&difference)? })
    }
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The group, such as `Energy Model`.
    pub group: String,
    /// The group in the group; empty where there is none.
    pub subgroup: String,
    /// The channel, such as `ANE0`.
    pub name: String,
    /// The unit as the system names it, such as `mJ`.
    pub unit: String,
    /// The count in this unit.
    pub value: i64,
}

/// Counters over a span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Readings {
    /// How long the span was.
    pub seconds: f64,
    /// All channels of the groups.
    pub channels: Vec<Reading>,
}

/// A part of the chip with an energy counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rail {
    /// The Neural Engine.
    Engine,
    /// All CPU clusters.
    Cpu,
    /// The GPU.
    Gpu,
    /// The memory.
    Memory,
}

impl Rail {
    /// Whether a channel of the energy group counts for this part. Chips of two dies have each name twice, with a prefix.
    fn has(self, name: &str) -> bool {
        let name = name.strip_prefix("DIE_").and_then(|rest| rest.split_once('_')).map_or(name, |(_, rest)| rest);
        match self {
            Self::Engine => name.starts_with("ANE"),
            Self::Cpu => name == "CPU Energy",
            Self::Gpu => name == "GPU Energy",
            Self::Memory => name.starts_with("DRAM"),
        }
    }
}

impl Readings {
    /// The energy of a part in joules; nothing where the chip has no such counter.
    ///
    /// # Errors
    /// [`SysError::Value`] for a unit that is no energy.
    pub fn joules(&self, rail: Rail) -> Result<Option<f64>, SysError> {
        let channels = self.channels.iter().filter(|channel| channel.group == ENERGY && rail.has(&channel.name));
        let mut sum = None;
        for channel in channels {
            let unit = match channel.unit.as_str() {
                "J" => 1.0,
                "mJ" => 1e-3,
                "uJ" | "µJ" => 1e-6,
                "nJ" => 1e-9,
                "pJ" => 1e-12,
                other => {
                    let found = format!("{other:?} for {}", channel.name);
                    return Err(SysError::Value { what: "the unit of an energy counter", expected: "J, mJ, uJ, nJ or pJ", found });
                }
            };
            sum = Some(sum.unwrap_or(0.0) + channel.value as f64 * unit);
        }
        Ok(sum)
    }

    /// The bytes that the engine read from memory and wrote to it; nothing where the chip has no such counters.
    pub fn engine_bytes(&self) -> (Option<u64>, Option<u64>) {
        let sum = |end: &str| {
            self.channels
                .iter()
                .filter(|channel| channel.group == TRAFFIC && channel.name.starts_with("ANE") && channel.name.ends_with(end))
                // The same traffic is counted once more at the memory's own side.
                .filter(|channel| !channel.name.contains("DCS"))
                .map(|channel| channel.value.max(0).unsigned_abs())
                .reduce(u64::saturating_add)
        };
        (sum(" RD"), sum(" WR"))
    }
}

fn read(counters: &Created) -> Result<Vec<Reading>, SysError> {
    let energy = &counters.energy;
    let (functions, runtime) = (&energy.functions, &energy.runtime);
    runtime.with_pool(|| {
        // SAFETY: the counters are a dictionary that lives.
        let dictionary = unsafe { runtime.retained(Id(counters.raw())) };
        let dictionary = dictionary.ok_or(SysError::Nothing { call: functions.difference.name })?;
        let Some(channels) = runtime.entry(&dictionary, "IOReportChannels")? else { return Ok(Vec::new()) };
        let text = |get: unsafe extern "C" fn(Id) -> Id, channel: &Retained| {
            // SAFETY: the channel lives and owns its texts; nil stands for none.
            let text = unsafe { get(channel.id()) };
            // SAFETY: as above.
            if text.is_nil() { Ok(String::new()) } else { unsafe { runtime.read_text(text) } }
        };
        runtime
            .elements(&channels)?
            .iter()
            .map(|channel| {
                Ok(Reading {
                    group: text(functions.group.call, channel)?,
                    subgroup: text(functions.subgroup.call, channel)?,
                    name: text(functions.name.call, channel)?.trim().to_string(),
                    unit: text(functions.unit.call, channel)?.trim().to_string(),
                    // SAFETY: the channel lives; the groups' channels are simple numbers, which have the index 0.
                    value: unsafe { (functions.value.call)(channel.id(), 0) },
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(group: &str, name: &str, unit: &str, value: i64) -> Reading {
        Reading { group: group.into(), subgroup: String::new(), name: name.into(), unit: unit.into(), value }
    }

    #[test]
    fn units_are_honoured_and_dies_are_added() {
        let readings = Readings {
            seconds: 1.0,
            channels: vec![
                reading(ENERGY, "ANE0", "mJ", 1500),
                reading(ENERGY, "DIE_0_CPU Energy", "mJ", 2000),
                reading(ENERGY, "DIE_1_CPU Energy", "uJ", 500_000),
                reading(ENERGY, "GPU Energy", "nJ", 3_000_000_000),
                reading(ENERGY, "ECPU0", "mJ", 77),
                reading(TRAFFIC, "ANE0 RD", "B", 4096),
                reading(TRAFFIC, "ANE1 RD", "B", 4),
                reading(TRAFFIC, "ANE0 DCS RD", "B", 9999),
            ],
        };
        assert_eq!(readings.joules(Rail::Engine), Ok(Some(1.5)));
        assert_eq!(readings.joules(Rail::Cpu), Ok(Some(2.5)));
        assert_eq!(readings.joules(Rail::Gpu), Ok(Some(3.0)));
        assert_eq!(readings.joules(Rail::Memory), Ok(None));
        assert_eq!(readings.engine_bytes(), (Some(4100), None));
    }

    #[test]
    fn an_unknown_unit_is_no_number() {
        let readings = Readings { seconds: 1.0, channels: vec![reading(ENERGY, "ANE", "W", 1)] };
        assert!(matches!(readings.joules(Rail::Engine), Err(SysError::Value { .. })));
    }
}
