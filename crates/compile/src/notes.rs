//! What passes say they did, and what they nearly did and why not: the text of `--explain`.

/// One remark of a pass about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The pass.
    pub pass: &'static str,
    /// SSA name of the value the remark is about.
    pub value: String,
    /// True where something was changed, false for a near miss.
    pub applied: bool,
    /// What was done, or what stood in the way.
    pub text: String,
}

/// Remarks in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    pass: &'static str,
    notes: Vec<Note>,
}

impl Notes {
    /// Names the pass that speaks from now on.
    pub fn begin(&mut self, pass: &'static str) {
        self.pass = pass;
    }

    /// Records a change.
    pub fn applied(&mut self, value: &str, text: impl Into<String>) {
        self.push(value, true, text.into());
    }

    /// Records a near miss.
    pub fn missed(&mut self, value: &str, text: impl Into<String>) {
        self.push(value, false, text.into());
    }

    /// All remarks.
    pub fn all(&self) -> &[Note] {
        &self.notes
    }

    fn push(&mut self, value: &str, applied: bool, text: String) {
        self.notes.push(Note { pass: self.pass, value: value.to_string(), applied, text });
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.applied { "did" } else { "near miss" };
        write!(f, "{} ({kind}): {}", self.pass, self.text)
    }
}
