//! `docs/reference` is what the tables say. `ANEFORGE_UPDATE_REFERENCE=1` rewrites it.
#![allow(clippy::unwrap_used, reason = "tests")]

use aneforge_conform::catalogue::{Catalogue, markdown};
use std::path::Path;

#[test]
fn the_committed_reference_is_what_the_tables_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let catalogue = Catalogue::builtin().unwrap();
    if std::env::var_os("ANEFORGE_UPDATE_REFERENCE").is_some() {
        markdown::write(&catalogue, &folder).unwrap();
    }
    let pages = markdown::pages(&catalogue);
    for (name, text) in &pages {
        let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let line = committed.lines().zip(text.lines()).position(|(left, right)| left != right);
        assert!(
            committed == *text,
            "docs/reference/{name} is out of date, from line {:?} on; run this test with ANEFORGE_UPDATE_REFERENCE=1",
            line.map(|line| line + 1)
        );
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(pages.iter().any(|(page, _)| *page == name), "docs/reference/{name} belongs to no table");
    }
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    let pages = markdown::pages(&Catalogue::builtin().unwrap());
    let headings = |page: &str| -> Vec<String> {
        let (_, text) = pages.iter().find(|(name, _)| *name == page).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect()
    };
    for (name, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (page, heading) = link.split_once('#').unwrap_or((link, ""));
            assert!(pages.iter().any(|(other, _)| *other == page), "{name}: {link}");
            assert!(heading.is_empty() || headings(page).iter().any(|other| other == heading), "{name}: {link}");
        }
    }
}
