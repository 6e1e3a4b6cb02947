//! Any text parses or is refused; what parses prints to a text that says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(program) = aneforge_mil::parse(text) {
        let printed = aneforge_mil::print(&program);
        assert_eq!(aneforge_mil::parse(&printed).as_ref(), Ok(&program), "{printed}");
    }
});
