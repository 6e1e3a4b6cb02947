//! Places of extremes, the largest few, and sorting. Indices come out as fp16.

use super::build::*;
use super::{DIMENSIONS, Layer, ParamKind};
use aneforge_mil::op::{
    ALL_FAMILIES, Arguments, Arithmetic, Case, Given, MilOp, OpError, flag, gated_before, int, ints as ints_given,
};
use aneforge_mil::{Array, TensorType};

/// Indices up to this are exact as fp16; the next odd one is not.
pub const LARGEST_INDEX: usize = 2048;

const EXTREMES: &[&str] = &["Max", "Min"];
const INDICES_EXACT: &str =
    "the axis has at most 2048 places: indices come out as fp16, which holds no larger ones exactly; cut the axis";
const TIES: Arithmetic = Arithmetic::Modelled("nothing to round; of equal values the first counts, which is not published");
const LINE: Given = given(&[1, 1, 2, 4], &[3.0, 1.0, 2.0, 1.0, 0.0, -5.0, 7.0, 7.0]);
const PAIR: Given = given(&[1, 2, 1, 4], &[3.0, 1.0, 2.0, 1.0, 10.0, 20.0, 30.0, 40.0]);
const ZERO: Given = ints_given(&[1], &[0.0]);
const ONE: Given = ints_given(&[1], &[1.0]);

/// Place of the largest or smallest value along an axis.
pub static GLOBAL_ARG_MIN_MAX: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Type"), word("Dimension")],
        constraints: &[
            FOUR,
            rule("C2", "Type is Max or Min", |a| is_one_of(a, "Type", EXTREMES)),
            rule("C3", "Dimension is Width, Height or Channel", |a| is_one_of(a, "Dimension", &["Width", "Height", "Channel"])),
            rule("C4", INDICES_EXACT, |a| named_axis(a, "Dimension").is_some_and(|axis| extents(a, "x")[axis] <= LARGEST_INDEX)),
        ],
        arithmetic: TIES,
        tolerance: 0.0,
        support: ALL_FAMILIES.told_by(
            "ANE guide, arXiv 2606.22283, chapters 24 and 26: accepted from A13 on when written directly, from A15 on through MIL",
        ),
        cases: &[
            Case::new(
                "the_first_of_equal_values_counts",
                &[("x", LINE), ("Type", text("Max")), ("Dimension", text("Width"))],
                &[(&[1, 1, 2, 1], &[0.0, 2.0])],
                "numpy.argmax",
            ),
            Case::new(
                "channels",
                &[("x", PAIR), ("Type", text("Min")), ("Dimension", text("Channel"))],
                &[(&[1, 1, 1, 4], &[0.0, 0.0, 0.0, 0.0])],
                "numpy.argmin",
            ),
        ],
        ..unary(
            "GlobalArgMinMax",
            "The place of the largest or smallest value along an axis.",
            |a| with_extent(a, named_axis(a, "Dimension").unwrap_or(3), 1),
            |a| {
                let (smallest, axis) = (a.text("Type") == Some("Min"), named_axis(a, "Dimension").unwrap_or(3));
                Ok(vec![lines(a.array("x")?, axis, |line| vec![order(line, !smallest)[0] as f64])])
            },
        )
    },
    &[param("Type", ParamKind::Word(EXTREMES)), param("Dimension", ParamKind::Word(&["Width", "Height", "Channel"]))],
);

const MODES: &[&str] = &["SpatialArgMax", "SpatialArgMin", "ChannelArgMax", "ChannelArgMin"];

/// Place of the largest or smallest value under a window or over channels.
pub static ARG_MIN_MAX: Layer = layer(
    MilOp {
        ports: &[
            x("x"),
            word("Mode"),
            ints("KernelWidth"),
            ints("KernelHeight"),
            int_or("PadLeft", 0),
            int_or("PadRight", 0),
            int_or("PadTop", 0),
            int_or("PadBot", 0),
        ],
        constraints: &[
            FOUR,
            rule("C2", "Mode is SpatialArgMax, SpatialArgMin, ChannelArgMax or ChannelArgMin", |a| is_one_of(a, "Mode", MODES)),
            rule(
                "C3",
                "the window is one whole row, KernelWidth the width and KernelHeight 1: how places are counted in other windows is not \
                 published; use GlobalArgMinMax for a single axis",
                |a| {
                    let [_, _, height, width] = extents(a, "x");
                    let channels = a.text("Mode").is_some_and(|mode| mode.starts_with("Channel"));
                    size(a, "KernelWidth") == width && size(a, "KernelHeight") == 1 && (channels || height == 1)
                },
            ),
            rule("C4", "there is no padding", |a| {
                ["PadLeft", "PadRight", "PadTop", "PadBot"].iter().all(|port| a.int(port) == Some(0))
            }),
            rule("C5", INDICES_EXACT, |a| extents(a, "x")[searched(a)] <= LARGEST_INDEX),
        ],
        arithmetic: TIES,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "a_row_of_each_channel",
                &[("x", PAIR), ("Mode", text("SpatialArgMax")), ("KernelWidth", int(&[4.0])), ("KernelHeight", int(&[1.0]))],
                &[(&[1, 2, 1, 1], &[0.0, 3.0])],
                "numpy.argmax",
            ),
            Case::new(
                "over_channels",
                &[("x", PAIR), ("Mode", text("ChannelArgMax")), ("KernelWidth", int(&[4.0])), ("KernelHeight", int(&[1.0]))],
                &[(&[1, 1, 1, 4], &[1.0, 1.0, 1.0, 1.0])],
                "numpy.argmax",
            ),
        ],
        ..unary(
            "ArgMinMax",
            "The place of the largest or smallest value of a row, or over channels.",
            |a| with_extent(a, searched(a), 1),
            |a| {
                let largest = a.text("Mode").is_some_and(|mode| mode.ends_with("Max"));
                Ok(vec![lines(a.array("x")?, searched(a), |line| vec![order(line, largest)[0] as f64])])
            },
        )
    },
    &[
        param("Mode", ParamKind::Word(MODES)),
        param("KernelWidth", ParamKind::Int),
        param("KernelHeight", ParamKind::Int),
        param("PadLeft", ParamKind::Int),
        param("PadRight", ParamKind::Int),
        param("PadTop", ParamKind::Int),
        param("PadBot", ParamKind::Int),
    ],
);

fn searched(a: &Arguments<'_>) -> usize {
    if a.text("Mode").is_some_and(|mode| mode.starts_with("Channel")) { 1 } else { 3 }
}

/// Whether vectors along the channels are sorted along the width by one channel of theirs.
fn sorts_vectors(a: &Arguments<'_>) -> bool {
    is_one_of(a, "SortDimension", &["Width"]) && is_one_of(a, "VectorDimension", &["Channel"])
}

fn key_exists(a: &Arguments<'_>) -> bool {
    matches!(a.ints("SortIndices").as_deref(), Some(&[key]) if usize::try_from(key).is_ok_and(|key| key < extents(a, "x")[1]))
}

const VECTORS: &str = "SortDimension is Width and VectorDimension is Channel: no other pair is published; transpose x";
const KEY: &str = "SortIndices holds one channel of x, the one to sort by";

/// The largest or smallest vectors of each row.
pub static TOP_K: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Type"), ints("K"), word("SortDimension"), word("VectorDimension"), ints("SortIndices"), flag_port()],
        constraints: &[
            FOUR,
            rule("C2", "Type is Max or Min", |a| is_one_of(a, "Type", EXTREMES)),
            rule("C3", "K is at least 1 and at most the width", |a| (1..=extents(a, "x")[3]).contains(&size(a, "K"))),
            rule(
                "C4",
                "K is neither 3 nor 4, which code generation refuses at every width (arXiv 2606.22283, appendix B): ask for 5 and \
                 keep what is needed",
                |a| !matches!(size(a, "K"), 3 | 4),
            ),
            rule("C5", VECTORS, sorts_vectors),
            rule("C6", KEY, key_exists),
            rule("C7", INDICES_EXACT, |a| !a.flag("Indices") || extents(a, "x")[3] <= LARGEST_INDEX),
        ],
        arithmetic: TIES,
        tolerance: 0.0,
        support: gated_before(14).told_by("the Python package aneforge 0.4.0 from A14 on; ANE guide, arXiv 2606.22283, chapter 26 has it on M1 too (contradicted)"),
        cases: &[
            Case::new(
                "rows_by_themselves",
                &[
                    ("x", LINE),
                    ("Type", text("Max")),
                    ("K", int(&[2.0])),
                    ("SortDimension", text("Width")),
                    ("VectorDimension", text("Channel")),
                    ("SortIndices", ZERO),
                ],
                &[(&[1, 1, 2, 2], &[3.0, 2.0, 7.0, 7.0])],
                "numpy.sort",
            ),
            Case::new(
                "indices_by_the_second_channel",
                &[
                    ("x", PAIR),
                    ("Type", text("Max")),
                    ("K", int(&[2.0])),
                    ("SortDimension", text("Width")),
                    ("VectorDimension", text("Channel")),
                    ("SortIndices", ONE),
                    ("Indices", flag(true)),
                ],
                &[(&[1, 1, 1, 2], &[3.0, 2.0])],
                "numpy.argsort",
            ),
        ],
        ..unary(
            "TopK",
            "The K vectors along the channels, of each row, whose key channel is largest or smallest, in order; or their places.",
            |a| ranked(a, size(a, "K")),
            |a| rank(a, size(a, "K"), a.text("Type") == Some("Max")),
        )
    },
    &[
        param("Type", ParamKind::Word(EXTREMES)),
        param("K", ParamKind::Int),
        param("SortDimension", ParamKind::Word(DIMENSIONS)),
        param("VectorDimension", ParamKind::Word(DIMENSIONS)),
        param("SortIndices", ParamKind::Ints),
        param("Indices", ParamKind::Flag),
    ],
);

const DIRECTIONS: &[&str] = &["Ascending", "Descending"];

/// Vectors in order.
pub static SORT: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Direction"), word("SortDimension"), word("VectorDimension"), ints("SortIndices"), flag_port()],
        constraints: &[
            FOUR,
            rule("C2", "Direction is Ascending or Descending", |a| is_one_of(a, "Direction", DIRECTIONS)),
            rule("C3", VECTORS, sorts_vectors),
            rule("C4", KEY, key_exists),
            rule("C5", INDICES_EXACT, |a| !a.flag("Indices") || extents(a, "x")[3] <= LARGEST_INDEX),
        ],
        arithmetic: TIES,
        tolerance: 0.0,
        support: FROM_A14,
        cases: &[
            Case::new(
                "rows_by_themselves",
                &[
                    ("x", LINE),
                    ("Direction", text("Ascending")),
                    ("SortDimension", text("Width")),
                    ("VectorDimension", text("Channel")),
                    ("SortIndices", ZERO),
                ],
                &[(&[1, 1, 2, 4], &[1.0, 1.0, 2.0, 3.0, -5.0, 0.0, 7.0, 7.0])],
                "numpy.sort",
            ),
            Case::new(
                "a_channel_leads_the_others",
                &[
                    ("x", PAIR),
                    ("Direction", text("Descending")),
                    ("SortDimension", text("Width")),
                    ("VectorDimension", text("Channel")),
                    ("SortIndices", ONE),
                ],
                &[(&[1, 2, 1, 4], &[1.0, 2.0, 1.0, 3.0, 40.0, 30.0, 20.0, 10.0])],
                "numpy.argsort",
            ),
            Case::new(
                "places_of_equal_values_keep_their_order",
                &[
                    ("x", LINE),
                    ("Direction", text("Ascending")),
                    ("SortDimension", text("Width")),
                    ("VectorDimension", text("Channel")),
                    ("SortIndices", ZERO),
                    ("Indices", flag(true)),
                ],
                &[(&[1, 1, 2, 4], &[1.0, 3.0, 2.0, 0.0, 1.0, 0.0, 2.0, 3.0])],
                "numpy.argsort, stable",
            ),
        ],
        ..unary(
            "Sort",
            "The vectors along the channels, of each row, in order of their key channel; or their places.",
            |a| ranked(a, extents(a, "x")[3]),
            |a| rank(a, extents(a, "x")[3], a.text("Direction") == Some("Descending")),
        )
    },
    &[
        param("Direction", ParamKind::Word(DIRECTIONS)),
        param("SortDimension", ParamKind::Word(DIMENSIONS)),
        param("VectorDimension", ParamKind::Word(DIMENSIONS)),
        param("SortIndices", ParamKind::Ints),
        param("Indices", ParamKind::Flag),
    ],
);

const fn flag_port() -> aneforge_mil::op::PortSpec {
    super::build::flag("Indices")
}

/// Places of a line in order of their values, of equal ones the first first.
fn order(line: &[f64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..line.len()).collect();
    places.sort_by(|&a, &b| if descending { line[b].total_cmp(&line[a]) } else { line[a].total_cmp(&line[b]) });
    places
}

fn ranked(a: &Arguments<'_>, count: usize) -> Result<Vec<TensorType>, OpError> {
    let [batch, channels, height, _] = extents(a, "x").map(|extent| extent as i128);
    let channels = if a.flag("Indices") { 1 } else { channels };
    computed(a, a.ty("x")?.dtype, vec![batch, channels, height, count as i128])
}

fn rank(a: &Arguments<'_>, count: usize, descending: bool) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let key = a.ints("SortIndices").and_then(|keys| keys.first().copied()).unwrap_or(0) as usize;
    let [batch, channels, height, width] = extents(a, "x");
    let types = ranked(a, count)?;
    let row = |n: usize, c: usize, h: usize| ((n * channels + c) * height + h) * width;
    let made = if a.flag("Indices") { 1 } else { channels };
    let mut data = vec![0.0; batch * made * height * count];
    for (n, h) in (0..batch).flat_map(|n| (0..height).map(move |h| (n, h))) {
        let from = row(n, key, h);
        let places = order(&x.data[from..from + width], descending);
        for c in 0..made {
            let to = ((n * made + c) * height + h) * count;
            for (slot, &place) in data[to..to + count].iter_mut().zip(&places) {
                *slot = if a.flag("Indices") { place as f64 } else { x.data[row(n, c, h) + place] };
            }
        }
    }
    of(types, data)
}
