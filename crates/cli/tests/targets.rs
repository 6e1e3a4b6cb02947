//! The commands that tell about chips: what there is, what they take, what they cost.

#![allow(clippy::unwrap_used)]

mod common;

use common::{expect, text};

fn model(folder: &std::path::Path) -> String {
    let graph = aneforge::Graph::new();
    let x = graph.input("x", aneforge::DType::Fp16, &[8, 256]);
    let weight = aneforge::HostArray::fp16_from_f32([512, 256], &vec![0.01; 512 * 256]).unwrap();
    let y = x.linear(&graph.constant(&weight), None).sin();
    let file = folder.join("check.graph");
    std::fs::write(&file, graph.to_text_with(&[("y".to_string(), y)])).unwrap();
    text(&file).to_string()
}

#[test]
fn chips_lists_every_target_and_json_has_limits_with_their_source() {
    let here = tempfile::tempdir().unwrap();
    let (out, _) = expect(0, here.path(), &["chips"]);
    assert_eq!(out.lines().count(), 29, "{out}");
    assert!(out.contains("h17s") && out.contains("m5pro") && out.contains("takes no MIL"), "{out}");
    let (json, _) = expect(0, here.path(), &["chips", "--json"]);
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let targets = parsed["targets"].as_array().unwrap();
    assert!(targets.len() == 28 && targets.iter().all(|target| target["limits"]["source"].as_str().unwrap().contains("arXiv")));
}

#[test]
fn check_tells_each_target_and_fails_where_a_named_one_refuses() {
    let here = tempfile::tempdir().unwrap();
    let graph = model(here.path());
    let (out, _) = expect(0, here.path(), &["check", &graph]);
    assert!(out.contains("rejected on h11 h12 m9 t0 u1 u2 u3"), "{out}");
    assert!(out.contains("decomposed on h13 h13g t1 h14 h14g h14c: 1 sin"), "{out}");
    expect(0, here.path(), &["check", &graph, "--target", "m1,h16s"]);
    let (_, err) = expect(1, here.path(), &["check", &graph, "--target", "h12"]);
    assert!(err.contains("refused by h12"), "{err}");
    let (_, err) = expect(2, here.path(), &["check", &graph, "--target", "m77"]);
    assert!(err.contains("m77"), "{err}");
    let (json, _) = expect(0, here.path(), &["check", &graph, "--samples", "--json"]);
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((parsed["targets"].as_array().unwrap().len(), parsed["ranges"].as_str()), (28, Some("samples")));
}

#[test]
fn estimate_tells_time_and_energy_with_ranges_and_draws_rooflines() {
    let here = tempfile::tempdir().unwrap();
    let graph = model(here.path());
    let page = here.path().join("roof.html");
    let (out, err) = expect(0, here.path(), &["estimate", &graph, "--html", text(&page), "--operators"]);
    assert!(out.contains("m4") && out.contains("extrapolated") && out.contains("no program in MIL reaches h11"), "{out}");
    assert!(err.contains("roof.html"), "{err}");
    let page = std::fs::read_to_string(&page).unwrap();
    let charts = page.matches("<svg").count();
    assert!(charts == 26 && page.contains("<circle") && !page.contains("http"), "{charts} charts");
    let (json, _) = expect(0, here.path(), &["estimate", &graph, "--target", "m4,m5pro", "--json"]);
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let chips = parsed["chips"].as_array().unwrap();
    assert_eq!(chips.len(), 2, "{json}");
    for chip in chips {
        let total = &chip["total_ms"];
        assert!(total["low"].as_f64() < total["value"].as_f64() && chip["basis"] == "fitted", "{chip}");
        // The product and the sine: 2 * 8 * 256 * 512 operations in all.
        assert_eq!(chip["operators"].as_array().unwrap().len(), 2);
    }
    assert_eq!(parsed["gigaflops"].as_f64(), Some(2.0 * 8.0 * 256.0 * 512.0 * 1e-9));
}
