//! Ways to compile one program.

use aneforge_compile::compress::Format;
use aneforge_compile::{CompileOptions, Rewrite, Rewrites};

/// One way to compile a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// What differs from the usual way, in words.
    pub name: String,
    /// Which rewrites run.
    pub rewrites: Rewrites,
    /// Format of the weights.
    pub format: Option<Format>,
}

/// The name of the way that is taken without tuning.
pub const USUAL: &str = "as usual";

impl Variant {
    /// The way that the options say.
    pub fn usual(options: &CompileOptions) -> Self {
        Self { name: USUAL.to_string(), rewrites: options.rewrites, format: options.compress }
    }

    /// The options with this way in place of their own.
    pub fn applied(&self, options: &CompileOptions) -> CompileOptions {
        CompileOptions { rewrites: self.rewrites, compress: self.format, ..*options }
    }
}

/// The usual way, each rewrite the other way round, none of them and all of them.
pub fn lowerings(options: &CompileOptions) -> Vec<Variant> {
    let usual = Variant::usual(options);
    let with = |name: String, rewrites: Rewrites| Variant { name, rewrites, ..usual.clone() };
    let flipped = Rewrite::ALL.iter().map(|&rewrite| {
        let runs = !options.rewrites.runs(rewrite, &options.target);
        let word = if runs { "with" } else { "without" };
        with(format!("{word} {}", rewrite.name()), options.rewrites.with(rewrite, runs))
    });
    let all = Rewrite::ALL.iter().fold(options.rewrites, |rewrites, &rewrite| rewrites.with(rewrite, true));
    let ends = [with("no rewrite".to_string(), Rewrites::none()), with("every rewrite".to_string(), all)];
    std::iter::once(usual.clone()).chain(flipped).chain(ends).collect()
}
