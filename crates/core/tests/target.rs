//! Chips and targets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use aneforge_core::{Chip, Family, Route, Target, chips};

#[test]
fn every_chip_is_found_by_its_name_and_prints_it() {
    for chip in chips() {
        let target: Target = chip.name.parse().unwrap();
        assert_eq!(target.chip(), Some(chip));
        assert_eq!(target.to_string(), chip.name);
        assert_eq!(Chip::find(&chip.product.to_uppercase()), Some(chip));
        assert!(chip.compiler_target.starts_with(&format!("h{}", chip.family.number())) && !chip.source.is_empty());
    }
    assert_eq!("Generic".parse(), Ok(Target::Generic));
}

#[test]
fn a_route_follows_the_chip_and_e5rt_goes_without_saying() {
    for chip in chips() {
        let target: Target = format!("{}:In-Memory", chip.product).parse().unwrap();
        assert_eq!(target, Target::in_memory(chip));
        assert_eq!((target.chip(), target.route()), (Some(chip), Some(Route::InMemory)));
        assert_eq!(target.to_string(), format!("{}:in-memory", chip.name));
        assert_eq!(format!("{}:e5rt", chip.name).parse(), Ok(Target::e5rt(chip)));
    }
    assert_eq!(Target::Generic.route(), None);
    for wrong in ["m1:", "m1:client", "generic:in-memory", ":in-memory", "m1:in-memory:e5rt"] {
        let error = wrong.parse::<Target>().unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("in-memory"), "{error}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = "m7".parse::<Target>().unwrap_err().to_string();
    assert!(error.contains("\"m7\"") && error.contains("generic, m1, m1pro") && error.contains("m6"), "{error}");
}

#[test]
fn limits_follow_the_generation() {
    let find = |name| Chip::find(name).unwrap();
    assert_eq!((find("m3").max_extent, find("m4").max_extent), (16384, 65536));
    assert_eq!((find("m1").max_kernel_width, find("m5").max_kernel_width), (13, 15));
    assert!(find("m2").width_slice_hazard && !find("m3").width_slice_hazard);
    assert!(!find("m2").sine && find("m3").sine);
    assert!(!find("m4").winograd && find("m5").winograd && find("m6").winograd);
    assert!(Family::A13 < Family::A18);
}
