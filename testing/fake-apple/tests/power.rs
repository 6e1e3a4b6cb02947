//! IOReport, CoreFoundation and the kernel's answers, called as their public readers call them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod common;

use common::{Fake, Id, NIL, Send as _};
use serde_json::json;
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn alone() -> (MutexGuard<'static, ()>, Fake) {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = Fake::open();
    aneforge_fake_client::control(&aneforge_fake_client::library().unwrap(), &json!({"reset": true})).unwrap();
    (guard, fake)
}

fn group(fake: &Fake, name: &str) -> Id {
    fake.pooled(|| fake.address("IOReportCopyChannelsInGroup").send((fake.string(name), NIL, 0_u64, 0_u64, 0_u64)))
}

fn sample(fake: &Fake, subscription: Id, channels: Id) -> Id {
    fake.address("IOReportCreateSamples").send((subscription, channels, NIL))
}

/// Channels of a sample: group, name, unit, amount.
fn amounts(fake: &Fake, sample: Id) -> Vec<(String, String, String, i64)> {
    let channels = fake.get(sample, "IOReportChannels");
    let count: isize = fake.call("CFArrayGetCount", channels);
    let text = |function: &str, channel: Id| fake.text(fake.call(function, channel));
    let read = |at| {
        let channel: Id = fake.address("CFArrayGetValueAtIndex").send((channels, at));
        let amount: i64 = fake.address("IOReportSimpleGetIntegerValue").send((channel, 0_i32));
        let group = text("IOReportChannelGetGroup", channel);
        (group, text("IOReportChannelGetChannelName", channel), text("IOReportChannelGetUnitLabel", channel), amount)
    };
    (0..count).map(read).collect()
}

#[test]
fn counters_are_sampled_and_subtracted() {
    let (_guard, fake) = alone();
    let channels = group(&fake, "Energy Model");
    let traffic = group(&fake, "AMC Stats");
    assert!(group(&fake, "Weather").is_null());
    fake.pooled(|| {
        let () = fake.address("IOReportMergeChannels").send((channels, traffic, NIL));
        let mut subscribed = NIL;
        let subscribe = fake.address("IOReportCreateSubscription");
        let subscription: Id = subscribe.send((NIL, channels, &raw mut subscribed, 0_u64, NIL));
        assert!(!subscribed.is_null());
        let before = sample(&fake, subscription, subscribed);
        let after = sample(&fake, subscription, channels);
        let difference: Id = fake.address("IOReportCreateSamplesDelta").send((before, after, NIL));
        let found = amounts(&fake, difference);
        assert_eq!(found.len(), 8);
        let engine = found.iter().find(|channel| channel.1 == "ANE0").unwrap();
        assert_eq!((engine.0.as_str(), engine.2.as_str()), ("Energy Model", "mJ"));
        assert!(found.iter().all(|channel| channel.3 >= 0), "{found:?}");
        for object in [channels, traffic, subscription, before, after, difference] {
            fake.call::<()>("CFRelease", object);
        }
    });
    fake.assert_clean();
}

#[test]
fn a_system_without_counters_gives_null() {
    let (_guard, fake) = alone();
    fake.set(json!({"faults": [{"kind": "missing-channels", "name": "Energy Model"}]}));
    assert!(group(&fake, "Energy Model").is_null());
    let there = group(&fake, "Energy Model");
    assert!(!there.is_null());
    fake.call::<()>("CFRelease", there);
    fake.assert_clean();
}

#[test]
fn the_kernel_answers_by_name() {
    let (_guard, fake) = alone();
    let ask = |name: &str| {
        let name = CString::new(name).unwrap();
        let mut length = 0_usize;
        let none: *mut c_void = std::ptr::null_mut();
        let function = fake.address("sysctlbyname");
        let code: i32 = function.send((name.as_ptr(), none, &raw mut length, none, 0_usize));
        if code != 0 {
            return None;
        }
        let mut bytes = vec![0_u8; length];
        let code: i32 = function.send((name.as_ptr(), bytes.as_mut_ptr(), &raw mut length, none, 0_usize));
        assert_eq!(code, 0);
        assert_eq!(bytes.pop(), Some(0));
        Some(String::from_utf8(bytes).unwrap())
    };
    assert_eq!(ask("machdep.cpu.brand_string").as_deref(), Some("Apple M1"));
    fake.set(json!({"chip": "m4max", "os_build": "25A1"}));
    assert_eq!(ask("machdep.cpu.brand_string").as_deref(), Some("Apple M4 Max"));
    assert_eq!(ask("kern.osversion").as_deref(), Some("25A1"));
    assert_eq!(ask("hw.weather"), None);
    fake.set(json!({"faults": [{"kind": "os-build", "text": "25B2", "times": 2}]}));
    assert_eq!((ask("kern.osversion"), ask("kern.osversion")), (Some("25B2".to_string()), Some("25A1".to_string())));
}

#[test]
fn strings_and_numbers_cross_both_frameworks() {
    let (_guard, fake) = alone();
    let text = CString::new("héllo").unwrap();
    let string: Id = fake.address("CFStringCreateWithCString").send((NIL, text.as_ptr(), 0x0800_0100_u32));
    assert_eq!(fake.text(string), "héllo");
    assert_eq!(fake.call::<isize>("CFStringGetLength", string), 5);
    let mut buffer = [0 as c_char; 8];
    let fits: u8 = fake.address("CFStringGetCString").send((string, buffer.as_mut_ptr(), 6_isize, 0x0800_0100_u32));
    assert_eq!(fits, 0, "no room for the zero");
    let fits: u8 = fake.address("CFStringGetCString").send((string, buffer.as_mut_ptr(), 8_isize, 0x0800_0100_u32));
    assert_eq!((fits, unsafe { std::ffi::CStr::from_ptr(buffer.as_ptr()) }), (1, text.as_c_str()));
    let value = 300_i64;
    let number: Id = fake.address("CFNumberCreate").send((NIL, 4_isize, &raw const value));
    assert_eq!(send!(fake, number, "intValue"; i32), 300);
    let mut small = 0_i8;
    let whole: u8 = fake.address("CFNumberGetValue").send((number, 1_isize, &raw mut small));
    assert_eq!(whole, 0, "300 is too large for one byte");
    let keys = unsafe { fake.address("kIOSurfaceWidth").cast::<Id>().read() };
    assert_eq!(fake.text(keys), "IOSurfaceWidth");
    fake.call::<()>("CFRelease", string);
    fake.call::<()>("CFRelease", number);
    fake.assert_clean();
}
