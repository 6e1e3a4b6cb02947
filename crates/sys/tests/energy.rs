//! IOReport's counters against the fake.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_sys::energy::{EnergyReader, Rail};
use aneforge_testkit::fake;

#[test]
fn two_samples_give_energy_by_rail_and_nothing_is_kept() {
    let energy = common::frameworks().energy().unwrap();
    let mut reader = EnergyReader::new(&energy).unwrap();
    let first = reader.sample().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let readings = reader.sample().unwrap().since(&first).unwrap();
    assert!(readings.seconds >= 0.02, "{}", readings.seconds);
    assert!(readings.channels.iter().any(|channel| channel.group == "Energy Model"));
    for rail in [Rail::Engine, Rail::Cpu, Rail::Gpu, Rail::Memory] {
        let joules = readings.joules(rail).unwrap();
        assert!(joules.is_some_and(|joules| (0.0..1000.0).contains(&joules)), "{rail:?}: {joules:?}");
    }
    let (read, written) = readings.engine_bytes();
    assert!(read.is_some() && written.is_some());
    drop((reader, first, energy));
    fake::assert_clean();
}
