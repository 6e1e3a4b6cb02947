//! Names that other systems have for what no program of an engine can do. Each use is an error that says what to do.

use super::*;

/// Label of the rule that nothing fulfils.
pub(super) const NEVER: &str = "U1";
const ANYTHING: &[InputSpec] = &[variadic("x", ANY)];
const ONE: &[Sample] = &[drawn("x", &[2])];

const fn unavailable(name: &'static str, summary: &'static str, constraints: &'static [Constraint]) -> GraphOp {
    GraphOp { inputs: ANYTHING, constraints, vjp: Vjp::None("no engine has the operator"), ..direct(name, summary) }
}

const fn never(what_to_do: &'static str) -> Constraint {
    rule(NEVER, what_to_do, |_| false, Case::refused(ONE, &[]))
}

macro_rules! unavailable {
    ($($(#[$doc:meta])* $constant:ident = $name:literal: $summary:literal, $advice:literal;)*) => {
        $($(#[$doc])* pub static $constant: GraphOp = unavailable($name, $summary, &[never($advice)]);)*
        pub(super) const ALL: &[&GraphOp] = &[$(&$constant),*];
    };
}

unavailable! {
    /// Positions of what is not zero.
    NON_ZERO = "non_zero": "The positions of elements that are not zero.",
        "the shape of the result would depend on data: compare with 0 and use the mask in select, or take positions with topk_values";
    /// Boxes that overlap no better one.
    NON_MAXIMUM_SUPPRESSION = "non_maximum_suppression": "The best boxes among overlapping ones.",
        "no engine has it: run it on the host on the boxes and scores that the program hands back";
    /// Random numbers.
    RANDOM_NORMAL = "random_normal": "Normally distributed random numbers.",
        "no engine has it: draw the numbers on the host and pass them as an input";
    /// Random numbers.
    RANDOM_UNIFORM = "random_uniform": "Uniformly distributed random numbers.",
        "its ports are not published: draw the numbers on the host and pass them as an input";
    /// Random bits.
    RANDOM_BERNOULLI = "random_bernoulli": "Random zeros and ones.",
        "no engine has it: pass uniform numbers as an input and compare them with the probability";
    /// Random classes.
    RANDOM_CATEGORICAL = "random_categorical": "Random classes by their logits.",
        "no engine has it: pass Gumbel noise as an input, add it to the logits and use reduce_argmax";
    /// Long short-term memory.
    LSTM = "lstm": "A long short-term memory over a sequence.",
        "no engine has recurrent layers: write one step with linear, sigmoid and tanh and repeat it for each place of the sequence";
    /// Gated recurrent unit.
    GRU = "gru": "A gated recurrent unit over a sequence.",
        "no engine has recurrent layers: write one step with linear, sigmoid and tanh and repeat it for each place of the sequence";
    /// Simple recurrent layer.
    RNN = "rnn": "A simple recurrent layer over a sequence.",
        "no engine has recurrent layers: write one step with linear and tanh and repeat it for each place of the sequence";
    /// Choice of a branch.
    COND = "cond": "One of two branches.",
        "a program of an engine has no branches: compute both sides and choose with select";
    /// Repetition.
    WHILE_LOOP = "while_loop": "A body repeated while a condition holds.",
        "a program of an engine has no loops: repeat the body while building the graph, or run the program several times";
}
