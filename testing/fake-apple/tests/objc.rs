//! The Objective-C runtime: counting, pools, messages, encodings, and what is recorded when they are used wrongly.
//!
//! One process holds one state of the library, so the tests of this file run one after the other.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod common;

use common::{Fake, Id, NIL};
use serde_json::json;
use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn alone() -> (MutexGuard<'static, ()>, Fake) {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = Fake::open();
    aneforge_fake_client::control(&aneforge_fake_client::library().unwrap(), &json!({"reset": true})).unwrap();
    (guard, fake)
}

#[test]
fn an_object_lives_until_its_last_release() {
    let (_guard, fake) = alone();
    let object: Id = send!(fake, send!(fake, fake.class("NSString"), "alloc"; Id), "init"; Id);
    assert_eq!(fake.counters()["live"], json!({"NSString": 1}));
    assert_eq!(fake.retain(object), object);
    assert_eq!(send!(fake, object, "retainCount"; usize), 2);
    fake.release(object);
    assert_eq!(fake.counters()["live_objects"], 1);
    fake.release(object);
    fake.assert_clean();
    let counters = fake.counters();
    assert_eq!((counters["retains"].as_u64(), counters["releases"].as_u64()), (Some(1), Some(2)));
}

#[test]
fn a_pool_releases_what_was_put_into_it_and_no_more() {
    let (_guard, fake) = alone();
    let kept = fake.pooled(|| {
        let inner = fake.pooled(|| fake.retain(fake.string("kept")));
        assert_eq!(fake.text(inner), "kept");
        let _gone = fake.string("gone");
        assert_eq!(fake.counters()["live"], json!({"NSString": 2}));
        inner
    });
    assert_eq!(fake.counters()["live"], json!({"NSString": 1}));
    assert_eq!(fake.text(kept), "kept");
    fake.release(kept);
    fake.assert_clean();
}

#[test]
fn an_object_without_a_pool_lives_until_its_thread_ends_and_that_is_recorded() {
    let (_guard, fake) = alone();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            fake.string("late");
            assert_eq!(fake.counters()["live"], json!({"NSString": 1}));
        });
        // The end of the scope alone would not wait for what the thread does as it ends.
        thread.join().unwrap();
    });
    assert_eq!(fake.counters()["live"], json!({}));
    assert!(fake.violations()[0].contains("without a pool"), "{:?}", fake.violations());
}

#[test]
fn a_pool_that_is_not_open_is_not_popped() {
    let (_guard, fake) = alone();
    fake.call::<()>("objc_autoreleasePoolPop", std::ptr::without_provenance_mut(7));
    assert!(fake.violations()[0].contains("not open"), "{:?}", fake.violations());
}

#[test]
fn use_after_free_is_recorded_and_answers_nil() {
    let (_guard, fake) = alone();
    let object = fake.pooled(|| fake.string("short-lived"));
    assert_eq!(send!(fake, object, "length"; usize), 0);
    fake.release(object);
    fake.retain(object);
    let violations = fake.violations();
    assert_eq!(violations, ["[length] sent to a freed NSString", "release of a freed NSString", "retain of a freed NSString"]);
}

#[test]
fn nil_answers_zero_and_an_unknown_selector_is_recorded() {
    let (_guard, fake) = alone();
    assert_eq!(send!(fake, NIL, "length"; usize), 0);
    assert!(send!(fake, NIL, "doubleValue"; f64) == 0.0);
    fake.assert_clean();
    fake.pooled(|| send!(fake, fake.string("x"), "fly"; usize));
    assert_eq!(send!(fake, fake.class("NSData"), "fly"; usize), 0);
    assert_eq!(fake.violations(), ["-[NSString fly]: unrecognized selector", "+[NSData fly]: unrecognized selector"]);
}

#[test]
fn arguments_of_every_width_reach_the_method() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let class = fake.class("NSNumber");
        let small = send!(fake, class, "numberWithChar:", -7 => i8; Id);
        assert_eq!(send!(fake, small, "charValue"; i8), -7);
        let unsigned = send!(fake, class, "numberWithUnsignedInt:", u32::MAX => u32; Id);
        assert_eq!(send!(fake, unsigned, "longLongValue"; i64), i64::from(u32::MAX));
        let large = send!(fake, class, "numberWithUnsignedLongLong:", u64::MAX => u64; Id);
        assert_eq!(send!(fake, large, "unsignedLongLongValue"; u64), u64::MAX);
        let real = send!(fake, class, "numberWithDouble:", 0.1 => f64; Id);
        assert!(send!(fake, real, "doubleValue"; f64) == 0.1);
        let single = send!(fake, class, "numberWithFloat:", 0.1 => f32; Id);
        assert!(send!(fake, single, "floatValue"; f32) == 0.1);
        assert!(send!(fake, send!(fake, class, "numberWithBool:", true => bool; Id), "boolValue"; bool));
    });
    fake.assert_clean();
}

#[test]
fn collections_keep_what_they_hold() {
    let (_guard, fake) = alone();
    let map = fake.pooled(|| {
        let list = fake.array(&[fake.number(3), fake.data(b"abc")]);
        let map = send!(fake, fake.class("NSMutableDictionary"), "dictionary"; Id);
        send!(fake, map, "setObject:forKey:", list => Id, fake.string("list") => Id; ());
        send!(fake, map, "setObject:forKey:", fake.number(1) => Id, fake.string("one") => Id; ());
        send!(fake, map, "setObject:forKey:", fake.number(2) => Id, fake.string("one") => Id; ());
        fake.retain(map)
    });
    fake.pooled(|| {
        assert_eq!(send!(fake, map, "count"; usize), 2);
        assert_eq!(send!(fake, fake.get(map, "one"), "intValue"; i32), 2);
        let list = fake.get(map, "list");
        assert_eq!(send!(fake, send!(fake, list, "objectAtIndex:", 1 => usize; Id), "length"; usize), 3);
        assert!(fake.get(map, "absent").is_null());
    });
    fake.release(map);
    fake.assert_clean();
}

#[test]
fn classes_answer_for_their_methods() {
    let (_guard, fake) = alone();
    assert!(fake.class("NSAbsent").is_null());
    fake.set(json!({"faults": [{"kind": "missing-class", "name": "NSURL"}]}));
    assert!(fake.class("NSURL").is_null());
    assert!(!fake.class("NSURL").is_null());
    let class = fake.class("NSString");
    let responds = |selector: &str| send!(fake, class, "instancesRespondToSelector:", fake.selector(selector) => common::Sel; bool);
    assert!(responds("length") && responds("retain") && !responds("fly"));
    fake.pooled(|| {
        let text = fake.string("x");
        assert_eq!(send!(fake, text, "class"; Id), class);
        assert!(send!(fake, text, "isKindOfClass:", fake.class("NSObject") => Id; bool));
        assert!(!send!(fake, text, "isKindOfClass:", fake.class("NSData") => Id; bool));
        assert!(send!(fake, text, "respondsToSelector:", fake.selector("UTF8String") => common::Sel; bool));
        assert_eq!(fake.call::<Id>("object_getClass", text), class);
        let name: *const c_char = fake.call("class_getName", class);
        assert_eq!(unsafe { std::ffi::CStr::from_ptr(name) }, c"NSString");
    });
    fake.assert_clean();
}

#[test]
fn encodings_are_those_of_the_public_guide() {
    let (_guard, fake) = alone();
    let cases = [
        ("NSString", "length", false, "Q16@0:8"),
        ("NSString", "UTF8String", false, "r*16@0:8"),
        ("NSString", "initWithBytes:length:encoding:", false, "@40@0:8r^v16Q24Q32"),
        ("NSNumber", "numberWithChar:", true, "@20@0:8c16"),
        ("NSNumber", "numberWithBool:", true, "@20@0:8B16"),
        ("NSNumber", "numberWithDouble:", true, "@24@0:8d16"),
        ("NSDictionary", "dictionaryWithObjects:forKeys:count:", true, "@40@0:8r^@16r^@24Q32"),
        ("NSObject", "respondsToSelector:", false, "B24@0:8:16"),
        ("NSObject", "release", false, "v16@0:8"),
    ];
    for (class, selector, of_class, wanted) in cases {
        assert_eq!(fake.encoding(class, selector, of_class).as_deref(), Some(wanted), "{class} {selector}");
    }
    assert_eq!(fake.encoding("NSString", "fly", false), None);
}

#[test]
fn threads_share_an_object() {
    let (_guard, fake) = alone();
    let object = fake.pooled(|| fake.retain(fake.string("shared")));
    let address = object.expose_provenance();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let object: Id = std::ptr::with_exposed_provenance_mut(address);
                for _ in 0..1000 {
                    fake.pooled(|| {
                        fake.retain(object);
                        assert_eq!(fake.text(object), "shared");
                        fake.call::<Id>("objc_autorelease", object);
                    });
                }
            });
        }
    });
    assert_eq!(send!(fake, object, "retainCount"; usize), 1);
    fake.release(object);
    fake.assert_clean();
}

#[test]
fn blocks_are_copied_once_and_freed_after_the_last_owner() {
    #[repr(C)]
    struct Literal {
        isa: *const std::ffi::c_void,
        flags: i32,
        reserved: i32,
        invoke: *const std::ffi::c_void,
        descriptor: *const [usize; 2],
        captured: u64,
    }
    let (_guard, fake) = alone();
    let descriptor = [0, size_of::<Literal>()];
    let literal = Literal {
        isa: fake.address("_NSConcreteStackBlock"),
        flags: 0,
        reserved: 0,
        invoke: std::ptr::null(),
        descriptor: &raw const descriptor,
        captured: 0x1234_5678_9abc_def0,
    };
    let copy: *const Literal = fake.call("_Block_copy", (&raw const literal).cast_mut().cast());
    assert_ne!(copy, &raw const literal);
    assert_eq!(unsafe { (*copy).captured }, literal.captured);
    let again: Id = fake.call("_Block_copy", copy.cast_mut().cast());
    assert_eq!(again.cast_const().cast::<Literal>(), copy);
    assert_eq!(fake.counters()["live"], json!({"Block": 1}));
    fake.call::<()>("_Block_release", again);
    fake.release(again);
    fake.assert_clean();
}
