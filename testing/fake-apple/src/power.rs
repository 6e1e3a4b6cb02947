//! IOReport: counters of energy and of memory traffic, which grow with the engine's work.
//!
//! Functions, groups, channels and units are those that public readers of IOReport use and that the ANE guide (arXiv 2606.22283,
//! chapter 33) lists. The amounts are made up: so much for each execution, and what the other parts take while time goes by.

use crate::core_foundation::{CFDictionaryGetValue, CFDictionarySetValue};
use crate::counters::{executions_ever, violation};
use crate::faults;
use crate::foundation::{Number, array, dictionary, elements, integer, number_of, string, text_of, value};
use crate::objc::{BlockRef, ClassSpec, Id, Strong, invoke_with};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::time::Instant;

/// Energy of one execution in the engine, in millijoules.
pub const ENGINE_MILLIJOULES: i64 = 3;

/// Bytes that one execution reads; it writes half of them.
pub const EXECUTION_BYTES: i64 = 4096;

struct Channel {
    group: &'static str,
    subgroup: &'static str,
    name: &'static str,
    unit: &'static str,
    per_execution: i64,
    per_second: i64,
}

const fn channel(
    group: &'static str,
    subgroup: &'static str,
    name: &'static str,
    unit: &'static str,
    amounts: [i64; 2],
) -> Channel {
    Channel { group, subgroup, name, unit, per_execution: amounts[0], per_second: amounts[1] }
}

const ENERGY: &str = "Energy Model";
const TRAFFIC: &str = "AMC Stats";

static CHANNELS: [Channel; 8] = [
    channel(ENERGY, "", "ANE0", "mJ", [ENGINE_MILLIJOULES, 10]),
    channel(ENERGY, "", "CPU Energy", "mJ", [1, 400]),
    channel(ENERGY, "", "GPU Energy", "nJ", [0, 20_000_000]),
    channel(ENERGY, "", "DRAM0", "mJ", [1, 100]),
    channel(TRAFFIC, "Perf Counters", "ANE0 RD", "B", [EXECUTION_BYTES, 0]),
    channel(TRAFFIC, "Perf Counters", "ANE0 WR", "B", [EXECUTION_BYTES / 2, 0]),
    channel(TRAFFIC, "Perf Counters", "ANE0 DCS RD", "B", [EXECUTION_BYTES, 0]),
    channel(TRAFFIC, "Perf Counters", "ANE0 DCS WR", "B", [EXECUTION_BYTES / 2, 0]),
];

impl Channel {
    fn now(&self) -> i64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let milliseconds = i64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(i64::MAX);
        let executions = i64::try_from(executions_ever()).unwrap_or(i64::MAX);
        executions.saturating_mul(self.per_execution).saturating_add(milliseconds.saturating_mul(self.per_second) / 1000)
    }

    fn describe(&self, amount: Option<i64>) -> Strong {
        let mut entries = vec![
            ("IOReportGroupName", string(self.group)),
            ("IOReportChannelName", string(self.name)),
            ("IOReportUnit", string(self.unit)),
        ];
        if !self.subgroup.is_empty() {
            entries.push(("IOReportSubGroupName", string(self.subgroup)));
        }
        if let Some(amount) = amount {
            entries.push(("Value", integer(amount)));
        }
        dictionary(entries)
    }

    fn is(&self, described: Id) -> bool {
        let has = |key: &str, wanted: &str| value(described, key).and_then(|text| text_of(text.id())) == Some(wanted);
        has("IOReportGroupName", self.group) && has("IOReportChannelName", self.name)
    }
}

fn list(channels: Vec<Strong>) -> Strong {
    dictionary([("IOReportChannels", array(channels))])
}

fn channels_of(list: Id) -> Vec<Strong> {
    let found = value(list, "IOReportChannels").and_then(|channels| elements(channels.id()));
    if found.is_none() {
        violation("IOReport: a list of channels is none".to_string());
    }
    found.unwrap_or_default()
}

/// Channels of a group, and of a group in it where one is named; null where there is none. The caller releases them.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportCopyChannelsInGroup(group: Id, subgroup: Id, _a: u64, _b: u64, _c: u64) -> Id {
    let (group, subgroup) = (text_of(group), text_of(subgroup));
    if group.is_some_and(|group| faults::take_named("missing-channels", group)) {
        return Id::NIL;
    }
    let wanted = |channel: &&Channel| Some(channel.group) == group && subgroup.is_none_or(|subgroup| subgroup == channel.subgroup);
    let found: Vec<Strong> = CHANNELS.iter().filter(wanted).map(|channel| channel.describe(None)).collect();
    if found.is_empty() { Id::NIL } else { list(found).into_id() }
}

/// Adds channels to others.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportMergeChannels(into: Id, from: Id, _nothing: Id) {
    let mut all = channels_of(into);
    all.extend(channels_of(from));
    CFDictionarySetValue(into, string("IOReportChannels").id(), array(all).id());
}

/// Body of a subscription.
struct Subscription(Strong);

/// Subscribes to channels; the caller releases the subscription, which keeps what it wrote to `subscribed`.
///
/// # Safety
/// `subscribed` is null or good for an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn IOReportCreateSubscription(
    _nothing: *const c_void,
    channels: Id,
    subscribed: *mut Id,
    _identifier: u64,
    _none: Id,
) -> Id {
    let kept = list(channels_of(channels));
    if !subscribed.is_null() {
        // SAFETY: the caller's promise.
        unsafe { subscribed.write(kept.id()) };
    }
    Id::make("IOReportSubscription", Subscription(kept)).into_id()
}

/// The counters of channels as they stand; the caller releases them.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportCreateSamples(subscription: Id, channels: Id, _nothing: Id) -> Id {
    let Some(subscription) = subscription.body::<Subscription>() else {
        violation("IOReportCreateSamples without a subscription".to_string());
        return Id::NIL;
    };
    let wanted = if channels.is_nil() { subscription.0.id() } else { channels };
    let described = channels_of(wanted);
    let read = described.iter().filter_map(|described| CHANNELS.iter().find(|channel| channel.is(described.id())));
    list(read.map(|channel| channel.describe(Some(channel.now()))).collect()).into_id()
}

/// What was counted between two samples; the caller releases it.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportCreateSamplesDelta(earlier: Id, later: Id, _nothing: Id) -> Id {
    let earlier = channels_of(earlier);
    let differences = channels_of(later).into_iter().filter_map(|now| {
        let channel = CHANNELS.iter().find(|channel| channel.is(now.id()))?;
        let before = earlier.iter().find(|before| channel.is(before.id())).map_or(0, |before| amount(before.id()));
        Some(channel.describe(Some(amount(now.id()) - before)))
    });
    list(differences.collect()).into_id()
}

fn amount(channel: Id) -> i64 {
    value(channel, "Value").and_then(|value| number_of(value.id())).map_or(0, Number::signed)
}

/// The amount of a simple channel; only the index 0 exists.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportSimpleGetIntegerValue(channel: Id, index: i32) -> i64 {
    if index != 0 {
        violation(format!("IOReportSimpleGetIntegerValue with index {index}"));
    }
    amount(channel)
}

macro_rules! texts {
    ($($name:ident $key:literal;)*) => {
        $(
            /// A text of a channel, not kept for the caller; null where it has none.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(channel: Id) -> Id {
                let key = string($key);
                CFDictionaryGetValue(channel, key.id())
            }
        )*
    };
}

texts! {
    IOReportChannelGetGroup "IOReportGroupName";
    IOReportChannelGetSubGroup "IOReportSubGroupName";
    IOReportChannelGetChannelName "IOReportChannelName";
    IOReportChannelGetUnitLabel "IOReportUnit";
}

/// The kind of a channel: 1 is a simple number, the only kind here.
#[unsafe(no_mangle)]
pub extern "C" fn IOReportChannelGetFormat(_channel: Id) -> u8 {
    1
}

/// Calls a block for each channel of a sample until it answers something other than 0 (`kIOReportIterOk`).
#[unsafe(no_mangle)]
pub extern "C" fn IOReportIterate(samples: Id, block: BlockRef) -> i32 {
    for channel in channels_of(samples) {
        let answer = invoke_with(block, channel.id());
        if answer != 0 {
            return answer;
        }
    }
    0
}

/// The class of subscriptions.
pub fn specs() -> impl Iterator<Item = &'static ClassSpec> {
    static SPECS: [ClassSpec; 1] =
        [ClassSpec { name: "IOReportSubscription", superclass: "NSObject", class_methods: &[], methods: &[] }];
    SPECS.iter()
}
