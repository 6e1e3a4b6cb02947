//! Threads that compile, run and drop programs beyond the engine's limit, on one device: no wrong answer, no leak, one command at a time.
//! `ANEFORGE_STRESS_SECONDS` says how long, 5 where it is not set.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::ane::{AneOptions, AneRoute};
use aneforge_runtime::{Device, Executable};
use aneforge_testkit::fake;
use common::engine::{assert_clean, engine_with, outputs};
use common::program;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const THREADS: u64 = 8;

fn array(value: usize) -> HostArray {
    HostArray::fp16_from_f32([1, 32], &[value as f32; 32]).unwrap()
}

/// Numbers without a pattern, the same at every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn stress(route: AneRoute, seconds: f64) {
    let options =
        AneOptions { route, loaded_programs: 120, compilations: usize::MAX, back_off: Duration::ZERO, ..AneOptions::default() };
    let engine = engine_with(json!({ "limits": { "compiles": 1_000_000 } }), options);
    let (calls, end) = (AtomicUsize::new(0), Instant::now() + Duration::from_secs_f64(seconds));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, calls) = (&engine.device, &calls);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                let mut held: Vec<(usize, Arc<dyn Executable>)> = Vec::new();
                while Instant::now() < end {
                    let choice = random.below(10);
                    if held.len() < 24 && (choice < 4 || held.is_empty()) {
                        let factor = 1 + random.below(60);
                        let text = format!(r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16({factor}))[name = string("y")];"#);
                        let loaded = device.load(&program("tensor<fp16, [1, 32]> x", &text, "y"));
                        held.push((factor, loaded.unwrap_or_else(|error| panic!("{error}"))));
                    } else if choice < 9 {
                        let (factor, executable) = &held[random.below(held.len())];
                        let value = random.below(9);
                        assert_eq!(outputs(executable, &[array(value)])[0], array(factor * value).bytes());
                        calls.fetch_add(1, Ordering::Relaxed);
                    } else {
                        held.swap_remove(random.below(held.len()));
                    }
                }
            });
        }
    });
    let counters = fake::counters();
    assert_eq!(counters["most_in_flight"], 1, "{counters}");
    assert!(engine.device.usage().evicted > 0 || seconds < 3.0, "no program had to leave");
    assert!(calls.into_inner() > 0);
    assert_clean();
}

#[test]
fn threads_share_the_engine_without_wrong_answers_or_leaks() {
    let seconds = std::env::var("ANEFORGE_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5.0);
    for route in [AneRoute::E5rt, AneRoute::Client, AneRoute::InMemory] {
        stress(route, seconds / 3.0);
    }
}
