//! SSA names that people can read.

use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Names {
    /// Keeps a name from being handed out.
    pub fn reserve(&mut self, name: &str) {
        self.taken.insert(identifier(name));
    }

    /// The name itself where it is free, else with the lowest free number behind it.
    pub fn unique(&mut self, wanted: &str) -> String {
        let wanted = identifier(wanted);
        if self.taken.insert(wanted.clone()) { wanted } else { self.numbered(&wanted) }
    }

    /// `<stem>_<number>`, counted per stem from 0.
    pub fn numbered(&mut self, stem: &str) -> String {
        let stem = identifier(stem);
        let next = self.next.entry(stem.clone()).or_insert(0);
        loop {
            let name = format!("{stem}_{next}");
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The name with every character that MIL's identifiers lack replaced by an underscore.
fn identifier(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    text
}
