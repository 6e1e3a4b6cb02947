//! The page, read back by an HTML parser that others wrote.
#![allow(clippy::unwrap_used, reason = "tests")]

use aneforge_conform::claims::Claims;
use aneforge_conform::report::page;
use aneforge_conform::suite::{Options, Suite};
use scraper::{Html, Selector};
use std::collections::HashSet;

fn select(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

fn document() -> (String, Html) {
    let options = Options { filter: Some("relu".to_string()), ..Options::written_only() };
    let mut report = Suite::builtin().run("cpu", &options, &mut |_| ()).unwrap();
    report.operators[0].uses[0].case = "<b>&\"'</b>".to_string();
    report.operators[0].uses[0].outcome = aneforge_conform::report::Outcome::Fail;
    let text = page(&report, Claims::committed().unwrap());
    let document = Html::parse_document(&text);
    (text, document)
}

#[test]
fn every_operator_has_a_row_a_cell_per_chip_and_a_detail_and_every_link_a_target() {
    let (_, document) = document();
    let names: HashSet<&str> = document.select(&select("details[id]")).map(|detail| detail.value().id().unwrap()).collect();
    let graph = aneforge_core::op::builtin().iter().map(|op| format!("graph-{}", op.name));
    let mil = aneforge_mil::op::builtin().all().into_iter().map(|op| format!("mil-{}", op.name));
    let native = aneforge_native::layers().iter().map(|layer| format!("native-{}", layer.op.name));
    let listed = aneforge_mil::op::listed().iter().map(|row| format!("mil-{}", row.name));
    let unusable = aneforge_native::layer::unusable().iter().map(|row| format!("native-{}", row.name));
    let wanted: Vec<String> = graph.chain(mil).chain(native).chain(listed).chain(unusable).collect();
    for name in &wanted {
        assert!(names.contains(name.as_str()), "{name}");
    }
    let rows: Vec<_> = document.select(&select(".matrix tbody tr")).collect();
    assert_eq!(rows.len(), wanted.len());
    for row in rows {
        assert_eq!((row.select(&select("th a[href]")).count(), row.select(&select("td a[aria-label]")).count()), (1, 6));
        // Never colour alone: a symbol and a letter stand in every cell.
        assert!(row.select(&select("td a")).all(|cell| cell.text().collect::<String>().chars().count() == 2));
    }
    for link in document.select(&select("a[href]")) {
        let target = link.value().attr("href").unwrap().strip_prefix('#').unwrap();
        assert!(names.contains(target), "nothing is called {target}");
    }
}

#[test]
fn the_page_stands_alone_and_fits_a_phone() {
    let (text, document) = document();
    assert!(document.errors.is_empty(), "{:?}", document.errors);
    assert_eq!(document.select(&select("link, img, script[src], iframe")).count(), 0);
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("@import"));
    assert_eq!(document.select(&select("meta[name=viewport][content*='width=device-width']")).count(), 1);
    for wanted in ["prefers-color-scheme: dark", "position: sticky", "overflow-x: auto"] {
        assert!(text.contains(wanted), "{wanted}");
    }
    // Wide things scroll by themselves, not with the page.
    assert!(document.select(&select("table")).all(|table| {
        table.parent().and_then(scraper::ElementRef::wrap).is_some_and(|parent| parent.value().classes().any(|c| c == "scroll"))
    }));
    assert_eq!(document.select(&select("label[for=filter] input#filter")).count(), 1);
}

#[test]
fn text_from_a_report_is_escaped() {
    let (text, document) = document();
    assert!(!text.contains("<b>&\"'</b>") && text.contains("&lt;b&gt;"));
    assert!(document.root_element().text().any(|part| part.contains("<b>&\"'</b>")));
}

#[test]
fn a_disagreement_shows_every_side_with_its_source() {
    let (_, document) = document();
    let gather = document.select(&select("details#mil-gather")).next().unwrap();
    let rows: Vec<String> = gather.select(&select("tr.contradicted")).map(|row| row.text().collect::<Vec<_>>().join(" ")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains("contradicted")));
    for part in ["appendix A", "operator catalogue", "vocabulary sweep", "refused", "native"] {
        assert!(rows.iter().any(|row| row.contains(part)), "{part} in {rows:?}");
    }
}
