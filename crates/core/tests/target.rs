//! Chips and targets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use aneforge_core::{Chip, CompilerTarget, Family, Route, Target, Tier, chips, compiler_targets};

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

/// Counts and names as the ANE guide (arXiv 2606.22283, chapter 34) gives them.
#[test]
fn the_compiler_has_twenty_eight_targets_of_which_a_quarter_takes_no_program() {
    let targets = compiler_targets();
    let mut names: Vec<_> = targets.iter().map(|target| target.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 28);
    let without: Vec<_> = targets.iter().filter(|target| !target.features.mil).map(|target| target.name).collect();
    assert_eq!(without, ["h11", "h12", "m9", "t0", "u1", "u2", "u3"]);
    for target in targets {
        assert_eq!(target.chip().is_some(), target.features.mil, "{}", target.name);
        assert_eq!(CompilerTarget::find(&target.name.to_uppercase()), Some(target));
    }
}

#[test]
fn a_target_agrees_with_the_chips_that_have_it() {
    for chip in chips() {
        let target = CompilerTarget::find(chip.compiler_target).unwrap();
        let limits = target.limits();
        assert_eq!(target.units, chip.engine_units, "{}", chip.name);
        assert_eq!(limits.max_extent as usize, chip.max_extent, "{}", chip.name);
        assert_eq!(limits.max_channels as usize, chip.max_channels, "{}", chip.name);
        assert!(chip.max_kernel_width <= limits.max_kernel_width[0] as usize, "{}", chip.name);
        assert_eq!((limits.width_slice_ceiling > 0, target.features.sine), (chip.width_slice_hazard, chip.sine), "{}", chip.name);
        assert_eq!(target.family(), Some(chip.family));
    }
}

#[test]
fn suffixes_count_the_units_of_a_die() {
    for target in compiler_targets().iter().filter(|target| target.name.starts_with('h') && target.tier != Tier::Legacy) {
        let units = match target.name.trim_start_matches(|c: char| c == 'h' || c.is_ascii_digit()) {
            "g" => 8,
            "s" => 16,
            "c" => 32,
            "d" => 64,
            _ => 4,
        };
        assert_eq!(target.units, units, "{}", target.name);
    }
}

#[test]
fn a_target_of_the_compiler_is_compiled_for_by_its_name() {
    for target in compiler_targets().iter().filter(|target| target.features.mil) {
        let parsed: Target = target.name.parse().unwrap();
        assert_eq!(parsed.chip().unwrap().compiler_target, target.name);
    }
    for target in compiler_targets().iter().filter(|target| !target.features.mil) {
        assert!(target.name.parse::<Target>().is_err(), "{}", target.name);
    }
}
