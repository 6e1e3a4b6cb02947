//! The parser answers every text, quickly, and never panics.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::{parse, print};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/fuzz/corpus/parse_text");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "the seed corpus is gone");
    files.into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

/// What the fuzz target does with one input.
fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(program) => {
            let printed = print(&program);
            assert_eq!(parse(&printed).as_ref(), Ok(&program), "{printed}");
        }
        Err(error) => {
            let line = text.split('\n').nth(error.location.line as usize - 1);
            let columns = line.expect("the line of an error exists").chars().count();
            assert!(error.location.column as usize <= columns + 1, "{error}");
            assert!(error.to_string().len() < 1000, "{error}");
        }
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    for (path, bytes) in corpus() {
        println!("{path}");
        check(&bytes);
    }
}

#[test]
fn samples_cut_at_every_byte_are_answered() {
    for (_, bytes) in corpus() {
        for end in 0..bytes.len() {
            check(&bytes[..end]);
        }
    }
}

#[test]
fn a_cut_program_is_an_error_at_its_end() {
    for (path, bytes) in corpus().into_iter().filter(|(path, _)| path.contains("modern") || path.contains("old")) {
        let text = String::from_utf8(bytes).unwrap();
        for end in 0..text.trim_end().len() {
            let error = parse(&text[..end]).expect_err(&path);
            assert!(!error.message.is_empty());
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for opening in ["(", "[", "{", "{{", "dict<", "tuple<", "list<", "tuple<dict<", "state<", "tuple<>((", "[a = ["] {
        let text = format!("program(1.3)[a = {}", opening.repeat(200_000));
        assert!(parse(&text).is_err());
        let text = format!("program(1.3){{func f<ios18>(){{fp16 a = add(x = {}", opening.repeat(200_000));
        assert!(parse(&text).is_err());
    }
}

#[test]
fn a_small_text_cannot_ask_for_much_memory() {
    for extents in ["18446744073709551615, 18446744073709551615", "4294967296, 4294967296, 0", "9999999999"] {
        let text = format!("program(1.3)[a = tensor<fp16, [{extents}]>([])]{{}}");
        if let Ok(program) = parse(&text) {
            assert!(print(&program).len() < 200);
        }
    }
}

#[test]
fn parsing_takes_linear_time() {
    let statement = "tensor<fp16, [1]> a = add(x = a, y = a)[name = string(\"a\")]; ";
    let time = |count: usize| {
        // One line: line and column of every statement are asked for.
        let text = format!("program(1.3){{func f<ios18>(){{{}}} -> (a);}}", statement.repeat(count));
        let start = Instant::now();
        let program = parse(&text).unwrap();
        assert_eq!(program.functions[0].body[count - 1].location.column as usize, 30 + statement.len() * (count - 1));
        start.elapsed()
    };
    time(1000);
    let (small, large) = (time(5_000), time(80_000));
    assert!(large < small * 16 * 8 + Duration::from_millis(200), "{small:?} for 5000 statements, {large:?} for 80000");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_string_is_answered(text in any::<String>()) {
        check(text.as_bytes());
        check(format!("program(1.3)[a = {text}").as_bytes());
        check(format!("program(1.3){{func main<ios18>({text}").as_bytes());
    }

    #[test]
    fn samples_with_bytes_changed_dropped_or_repeated_are_answered(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>(), 1usize..9), 1..6),
    ) {
        let files = corpus();
        let mut bytes = file.get(&files).1.clone();
        for (place, kind, byte, length) in edits {
            let at = place.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + length).min(bytes.len());
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => drop(bytes.drain(at..end)),
                2 => bytes.splice(at..at, std::iter::once(byte)).for_each(drop),
                _ => {
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part).for_each(drop);
                }
            }
        }
        check(&bytes);
    }
}
