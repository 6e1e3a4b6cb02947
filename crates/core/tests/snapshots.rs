//! The MIL text of every example, compared with the files of `tests/snapshots`. `ANEFORGE_UPDATE_SNAPSHOTS=1` rewrites them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod support;

use aneforge_core::op::builtin;
use aneforge_mil::{BlobWriter, EmitOptions, emit, parse, print};
use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;
use support::build;

#[test]
fn mil_text_of_every_example_is_as_committed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let update = std::env::var_os("ANEFORGE_UPDATE_SNAPSHOTS").is_some();
    let mut changed = Vec::new();
    let mut expected = Vec::new();
    for op in builtin().iter().filter(|op| op.is_available()) {
        let mut text = String::new();
        for case in op.cases {
            let body = build(op, case).body().unwrap();
            body.verify().unwrap_or_else(|error| panic!("{}/{}: {error}", op.name, case.name));
            let mut blob = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
            let options = EmitOptions { build_info: Vec::new(), ..EmitOptions::default() };
            let program = emit(&body, &options, &mut blob).unwrap_or_else(|error| panic!("{}/{}: {error}", op.name, case.name));
            let mil = print(&program);
            assert_eq!(parse(&mil).unwrap(), program, "{}/{}", op.name, case.name);
            let function = mil.split_once("    func").map_or(mil.as_str(), |(_, function)| function);
            let function = function.trim_end().trim_end_matches('}').trim_end();
            writeln!(text, "// {}\nfunc{function}\n", case.name.replace('_', " ")).unwrap();
        }
        let path = folder.join(format!("{}.mil", op.name));
        expected.push(format!("{}.mil", op.name));
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            changed.push(format!("{}:\n{text}", path.display()));
        }
    }
    assert!(
        changed.is_empty(),
        "differs from the committed text; check and run with ANEFORGE_UPDATE_SNAPSHOTS=1\n{}",
        changed.join("\n")
    );
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(expected.contains(&name), "{name} belongs to no operator");
    }
}
