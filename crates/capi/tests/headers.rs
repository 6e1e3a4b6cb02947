//! The headers declare what the library exports, with the same types.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{installed, library, root};
use std::collections::BTreeMap;
use std::process::Command;

/// Prototypes by name: the types of the result and of the arguments, without names and blanks.
type Prototypes = BTreeMap<String, String>;

/// What stands between two marks.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

/// Prototypes of a header: comments and directives dropped, then statements with parentheses.
fn declared(header: &str) -> Prototypes {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").expect("comments end").1;
    }
    text.push_str(rest);
    let code: String =
        text.lines().filter(|line| !line.starts_with('#') && !line.contains("extern \"C\"")).collect::<Vec<_>>().join(" ");
    let calls = code.split(';').filter(|statement| statement.contains('(') && !statement.contains('{'));
    calls
        .map(|statement| {
            let statement = statement.trim().trim_start_matches('}').trim();
            let (head, arguments) = statement.split_once('(').unwrap();
            let name_at = head.rfind([' ', '*']).unwrap() + 1;
            let (result, name) = head.split_at(name_at);
            let arguments = arguments.trim_end_matches(')');
            let types: Vec<String> = arguments
                .split(',')
                .filter(|argument| argument.trim() != "void")
                .map(|argument| {
                    let argument = argument.trim();
                    blankless(&argument[..argument.rfind([' ', '*']).unwrap() + 1])
                })
                .collect();
            (name.to_string(), format!("{}({})", blankless(result), types.join(",")))
        })
        .collect()
}

fn blankless(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" *", "*").replace("* ", "*").trim().to_string()
}

/// Prototypes of the exported functions of a source file, in C's words.
fn exported(source: &str) -> Prototypes {
    let mut found = Prototypes::new();
    let mut rest = source;
    while let Some(function) = after(rest, "#[unsafe(no_mangle)]") {
        let function = after(function, "extern \"C\" fn ").expect("exported functions are C's");
        let (name, tail) = function.split_once('(').unwrap();
        let (arguments, tail) = tail.split_once(')').unwrap();
        let result = tail.split_once('{').unwrap().0.trim().strip_prefix("->").map_or("void".to_string(), c_type);
        let types: Vec<String> = arguments
            .split(',')
            .filter(|argument| !argument.trim().is_empty())
            .map(|a| c_type(a.split_once(':').unwrap().1))
            .collect();
        found.insert(name.to_string(), format!("{result}({})", types.join(",")));
        rest = function;
    }
    found
}

/// A Rust type in C's words.
fn c_type(text: &str) -> String {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix("*const ") {
        let inner = c_type(inner);
        return if inner.ends_with('*') { format!("{inner}const*") } else { format!("const {inner}*") };
    }
    if let Some(inner) = text.strip_prefix("*mut ") {
        return format!("{}*", c_type(inner));
    }
    match text {
        "c_char" => "char",
        "c_void" => "void",
        "c_int" => "int",
        "usize" => "size_t",
        "i32" => "int32_t",
        "u16" => "uint16_t",
        "u64" => "uint64_t",
        "Status" => "aneforge_status",
        "DeviceHandle" => "aneforge_device",
        "ProgramHandle" => "aneforge_program",
        "PortInfo" => "aneforge_port_info",
        "Program" => "ane_e5rt_program",
        other => panic!("the test does not know {other}"),
    }
    .to_string()
}

/// In C `void *const *` is `*const *mut void`: the constness of the inner pointers.
fn normal(prototypes: Prototypes) -> Prototypes {
    let simple = |text: String| text.replace("*const*", "**");
    prototypes.into_iter().map(|(name, prototype)| (name, simple(prototype))).collect()
}

#[test]
fn headers_and_sources_declare_the_same_functions() {
    let text = |path: &str| std::fs::read_to_string(root().join("crates/capi").join(path)).unwrap();
    for (header, source, count) in [("aneforge.h", "interface.rs", 13), ("ane_e5rt.h", "dispatcher.rs", 9)] {
        let (declared, exported) =
            (normal(declared(&text(&format!("include/{header}")))), normal(exported(&text(&format!("src/{source}")))));
        assert_eq!(declared, exported, "{header}");
        assert_eq!(declared.len(), count, "{header}");
    }
}

#[test]
fn the_library_exports_what_the_headers_declare_and_nothing_else() {
    let folder = installed();
    let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(library(folder.path())).output() else { return };
    let mut symbols: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_whitespace().last().map(ToString::to_string))
        .filter(|symbol| !symbol.starts_with("_fini") && !symbol.starts_with("_init"))
        .collect();
    symbols.sort();
    let mut wanted: Vec<String> = ["aneforge.h", "ane_e5rt.h"]
        .into_iter()
        .flat_map(|header| declared(&std::fs::read_to_string(root().join("crates/capi/include").join(header)).unwrap()).into_keys())
        .collect();
    wanted.sort();
    assert_eq!(symbols, wanted);
}

#[test]
fn codes_and_fields_are_the_headers() {
    let header = std::fs::read_to_string(root().join("crates/capi/include/aneforge.h")).unwrap();
    use aneforge_capi::Status;
    for (name, status) in [
        ("ANEFORGE_OK", Status::Ok),
        ("ANEFORGE_BAD_ARGUMENT", Status::BadArgument),
        ("ANEFORGE_NO_DEVICE", Status::NoDevice),
        ("ANEFORGE_BAD_PROGRAM", Status::BadProgram),
        ("ANEFORGE_UNSUPPORTED", Status::Unsupported),
        ("ANEFORGE_NO_MEMORY", Status::NoMemory),
        ("ANEFORGE_FAILED", Status::Failed),
        ("ANEFORGE_INTERNAL", Status::Internal),
    ] {
        assert!(header.contains(&format!("  {name} = {}", status as i32)), "{name}");
    }
    let fields = after(&header, "typedef struct aneforge_port_info {").unwrap().split_once('}').unwrap().0;
    let names: Vec<&str> = fields.lines().filter_map(|line| line.split_once(';').map(|(field, _)| field)).collect();
    let names: Vec<&str> = names.iter().map(|field| &field[field.rfind([' ', '*']).unwrap() + 1..]).collect();
    let source = std::fs::read_to_string(root().join("crates/capi/src/interface.rs")).unwrap();
    let ours = after(&source, "pub struct PortInfo {").unwrap().split_once('}').unwrap().0;
    let ours: Vec<&str> =
        ours.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':').map(|(name, _)| name)).collect();
    assert_eq!(names, ours);
}
