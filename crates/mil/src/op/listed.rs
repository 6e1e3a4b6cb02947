//! Operators of the engine's vocabulary that have no record: who has them, and what to write instead.

use super::{ALL_FAMILIES, BRIDGED, NOWHERE, Support, native_from};

/// An operator that is known by name only.
#[derive(Debug)]
pub struct Listed {
    /// MIL keyword.
    pub name: &'static str,
    /// One sentence: what it is, as far as that is published.
    pub summary: &'static str,
    /// Chip families that have it.
    pub support: Support,
    /// Why programs here cannot use it, and what to do instead.
    pub reason: &'static str,
}

/// The operators that are known by name only, by name.
pub fn listed() -> &'static [Listed] {
    LISTED
}

const fn row(name: &'static str, summary: &'static str, support: Support, reason: &'static str) -> Listed {
    Listed { name, summary, support, reason }
}

const RANDOM: &str = "a program gives the same results for the same inputs: draw the numbers outside and pass them as an input";
const LISTS: &str = "values are tensors of static shape: use one tensor with an axis for the elements, and slice_by_size, slice_update or gather on it";
const RECURRENT: &str =
    "no engine has it: write its steps with linear, sigmoid, tanh and mul, the sequence unrolled, or keep its state in a state";
const BUFFERS: &str = "it converts buffers of the host at the edge of a program, which takes tensors here: convert before the call";
const CONTROL: &str =
    "a program is one straight function here: compute both ways and select, or call several programs from the host";

const LISTED: &[Listed] = &[
    row(
        "call",
        "Calls another function of the program.",
        BRIDGED,
        "a function stands alone here: write the called function's statements in its place",
    ),
    row("circular_buffer_to_tensor", "Reads a ring buffer.", BRIDGED, BUFFERS),
    row("cond", "One of two functions, by a flag.", BRIDGED, CONTROL),
    row("const", "A constant.", BRIDGED, "constants are values of a function here: resolving makes and emitting writes them"),
    row(
        "cost_volume",
        "Costs of matching two images at several shifts.",
        BRIDGED,
        "its MIL parameters are not published: use the native layer CostVolume",
    ),
    row(
        "cross_product",
        "The cross product of vectors of three.",
        BRIDGED,
        "its MIL parameters are not published: use the native layer CrossProduct, or mul and sub on slices",
    ),
    row("degamma", "The inverse of gamma correction.", BRIDGED, "its parameters are not published: use pow"),
    row("gamma", "Gamma correction.", BRIDGED, "its parameters are not published: use pow"),
    row(
        "global_argmax",
        "The index of the largest of all values.",
        native_from(15),
        "its parameters are not published: reshape to one axis and use reduce_argmax",
    ),
    row(
        "global_argmin",
        "The index of the smallest of all values.",
        native_from(15),
        "its parameters are not published: reshape to one axis and use reduce_argmin",
    ),
    row("gru", "A gated recurrent unit over a sequence.", NOWHERE, RECURRENT),
    row("list_gather", "Several elements of a list.", NOWHERE, LISTS),
    row("list_length", "The number of elements of a list.", NOWHERE, LISTS),
    row("list_read", "One element of a list.", NOWHERE, LISTS),
    row("list_scatter", "A list with several elements replaced.", NOWHERE, LISTS),
    row("list_write", "A list with one element replaced.", NOWHERE, LISTS),
    row("lstm", "Long short-term memory over a sequence.", NOWHERE, RECURRENT),
    row("make_list", "An empty list.", NOWHERE, LISTS),
    row(
        "matrix_decomposition",
        "A factorisation of a matrix.",
        BRIDGED,
        "its parameters are not published and no output is defined: factorise on the host",
    ),
    row(
        "ne_bypass",
        "A task of the neural engine that passes its input on.",
        BRIDGED,
        "its parameters are published nowhere and the compiler chooses it by itself: use identity",
    ),
    row(
        "ne_conv",
        "A convolution with its epilogue as one task of the neural engine.",
        ALL_FAMILIES,
        "its parameters are published nowhere and the compiler chooses it by itself: use conv",
    ),
    row(
        "ne_matmul",
        "A product with its epilogue as one task of the neural engine.",
        ALL_FAMILIES,
        "its parameters are published nowhere and the compiler chooses it by itself: use matmul",
    ),
    row(
        "ne_pool",
        "A pool as one task of the neural engine.",
        ALL_FAMILIES,
        "its parameters are published nowhere and the compiler chooses it by itself: use avg_pool or max_pool",
    ),
    row(
        "non_maximum_suppression",
        "The boxes that no better box overlaps.",
        BRIDGED.limited("runs on CPU or GPU only"),
        "no engine runs it: suppress on the host",
    ),
    row(
        "pe_elementwise",
        "An element-wise task of the planar engine.",
        ALL_FAMILIES,
        "its parameters are published nowhere and the compiler chooses it by itself: use add, mul, maximum or minimum",
    ),
    row(
        "pe_goc",
        "Gain, offset and clamp on the planar engine.",
        BRIDGED,
        "its parameters are published nowhere and the compiler chooses it by itself: use mul, add and clip",
    ),
    row(
        "pe_pool",
        "A pool as one task of the planar engine.",
        ALL_FAMILIES,
        "its parameters are published nowhere and the compiler chooses it by itself: use avg_pool or max_pool",
    ),
    row("pixel_buffer_to_tensor", "The planes of an image buffer as a tensor.", BRIDGED.limited("behind an entitlement"), BUFFERS),
    row("random_bernoulli", "Random zeros and ones.", NOWHERE, RANDOM),
    row("random_categorical", "Random classes with given weights.", NOWHERE, RANDOM),
    row("random_normal", "Random numbers of a normal distribution.", NOWHERE, RANDOM),
    row("random_uniform", "Random numbers of an even distribution.", native_from(15), RANDOM),
    row(
        "read_state",
        "What a state holds.",
        ALL_FAMILIES,
        "states are values of a function here: resolving takes and emitting writes the reads",
    ),
    row("rnn", "A plain recurrent layer over a sequence.", NOWHERE, RECURRENT),
    row("tensor_buffer_to_tensor", "A host buffer as a tensor.", BRIDGED, BUFFERS),
    row("tensor_to_circular_buffer", "Writes a ring buffer.", BRIDGED, BUFFERS),
    row("tensor_to_pixel_buffer", "A tensor as the planes of an image buffer.", BRIDGED, BUFFERS),
    row("tensor_to_tensor_buffer", "A tensor as a host buffer.", BRIDGED, BUFFERS),
    row("while_loop", "A function again and again until another says stop.", BRIDGED, CONTROL),
    row(
        "write_state",
        "New contents for a state.",
        ALL_FAMILIES,
        "states are values of a function here: resolving takes and emitting writes the writes",
    ),
];
