//! The numbers that the fit sets: names, units, where each starts and how far it is expected to move.
//!
//! All are fitted as logarithms. A prior is a normal distribution of the logarithm; its width says how much the measurements must
//! insist. Values that all machines share are wide open; how they change with generation and memory is held closer, because there are
//! five chips to learn it from; what is a machine's own is held closest.

/// Values that all machines share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shared {
    Floor,
    CopyIn,
    CopyOut,
    Product,
    Convolution,
    Stream,
    SoftwareOrdinary,
    SoftwareZeros,
    SoftwareSubnormal,
    Operation,
    Elementwise,
    Softmax,
    LayerNorm,
    RmsNorm,
    GroupNorm,
    L2Norm,
    Reduction,
    Movement,
    CliffHeight,
    CliffPlace,
    CliffSteepness,
    Spill,
    Int8,
    Int8FromA17,
    Int4,
    Sparse,
}

/// What differs from machine to machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Floor,
    CopyIn,
    CopyOut,
    Product,
    Convolution,
    Stream,
    Vector,
}

/// A shared value: its name in the data file, unit, start, width of its prior, meaning.
pub struct Describe {
    /// Which.
    pub which: Shared,
    /// Name in the data file.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Where the fit starts.
    pub start: f64,
    /// Width of the prior of the logarithm.
    pub width: f64,
}

const fn shared(which: Shared, name: &'static str, unit: &'static str, start: f64, width: f64) -> Describe {
    Describe { which, name, unit, start, width }
}

/// All shared values, in the order in which the fit keeps them.
pub const SHARED: &[Describe] = &[
    shared(Shared::Floor, "floor", "ms per dispatch", 0.09, 1.0),
    shared(Shared::CopyIn, "copy_in", "ns per element", 0.15, 1.0),
    shared(Shared::CopyOut, "copy_out", "ns per element", 0.25, 1.0),
    shared(Shared::Product, "product", "TFLOP/s", 14.0, 1.0),
    shared(Shared::Convolution, "convolution", "TFLOP/s", 18.0, 1.0),
    shared(Shared::Stream, "stream", "GB/s", 60.0, 1.0),
    shared(Shared::SoftwareOrdinary, "software_ordinary", "ns per element", 1.1, 1.0),
    shared(Shared::SoftwareZeros, "software_zeros", "ns per element", 4.0, 1.0),
    shared(Shared::SoftwareSubnormal, "software_subnormal", "ns per element", 2.5, 1.0),
    shared(Shared::Operation, "operation", "ms per operation where a dispatch takes 0.09 ms", 0.001, 1.0),
    shared(Shared::Elementwise, "elementwise", "ns per element", 0.02, 1.0),
    shared(Shared::Softmax, "softmax", "ns per element", 0.1, 1.0),
    shared(Shared::LayerNorm, "layer_norm", "ns per element", 0.7, 1.0),
    shared(Shared::RmsNorm, "rms_norm", "ns per element", 1.5, 1.0),
    shared(Shared::GroupNorm, "group_norm", "ns per element", 0.1, 1.0),
    shared(Shared::L2Norm, "l2_norm", "ns per element", 0.1, 1.0),
    shared(Shared::Reduction, "reduction", "ns per element", 0.02, 1.0),
    shared(Shared::Movement, "movement", "ns per element", 0.02, 1.0),
    shared(Shared::CliffHeight, "cliff_height", "times the product's time, beside it", 2.0, 1.0),
    shared(Shared::CliffPlace, "cliff_place", "MB of the smaller operand", 32.0, 0.3),
    shared(Shared::CliffSteepness, "cliff_steepness", "exponent", 3.0, 0.3),
    shared(Shared::Spill, "spill", "ns per 1000 bytes of a result above 16 MB", 20.0, 1.0),
    shared(Shared::Int8, "int8", "bytes moved per byte of fp16", 0.5, 1.0),
    shared(Shared::Int8FromA17, "int8_from_a17", "times int8", 1.0, 0.7),
    shared(Shared::Int4, "int4", "bytes moved per byte of fp16", 0.5, 1.0),
    shared(Shared::Sparse, "sparse", "bytes moved per byte of fp16, two of three weights zero", 0.5, 1.0),
];

/// What differs from machine to machine: name; by what factor a generation and a doubling of memory bandwidth are expected to change
/// it, as the exponent per generation and the power of the bandwidth.
pub const PARTS: &[(Part, &str, f64, f64)] = &[
    (Part::Floor, "floor", -0.15, 0.0),
    (Part::CopyIn, "copy_in", -0.1, -0.2),
    (Part::CopyOut, "copy_out", -0.15, -0.3),
    (Part::Product, "product", 0.2, 0.0),
    (Part::Convolution, "convolution", 0.2, 0.0),
    (Part::Stream, "stream", 0.1, 0.5),
    (Part::Vector, "vector", -0.1, 0.0),
];

/// Widths of the priors: slope per generation, power of the bandwidth, a machine's own.
pub const SLOPE_WIDTH: f64 = 0.15;
/// See [`SLOPE_WIDTH`].
pub const POWER_WIDTH: f64 = 0.2;
/// See [`SLOPE_WIDTH`].
pub const OWN_WIDTH: f64 = 0.3;

/// Where the vector of all parameters keeps what.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Number of measured machines.
    pub machines: usize,
}

impl Layout {
    /// Length of the vector.
    pub fn length(self) -> usize {
        SHARED.len() + 2 * PARTS.len() + self.machines * PARTS.len()
    }

    /// A shared value.
    pub fn shared(self, which: Shared) -> usize {
        which as usize
    }

    /// The slope of a part per generation.
    pub fn slope(self, part: Part) -> usize {
        SHARED.len() + 2 * part as usize
    }

    /// The power of a part in the memory's bandwidth.
    pub fn power(self, part: Part) -> usize {
        self.slope(part) + 1
    }

    /// A machine's own.
    pub fn own(self, machine: usize, part: Part) -> usize {
        SHARED.len() + 2 * PARTS.len() + machine * PARTS.len() + part as usize
    }

    /// Everything that is not a machine's own.
    pub fn common(self) -> Vec<usize> {
        (0..SHARED.len() + 2 * PARTS.len()).collect()
    }

    /// Where the fit starts, and the widths of the priors.
    pub fn prior(self) -> (Vec<f64>, Vec<f64>) {
        let mut start: Vec<f64> = SHARED.iter().map(|value| value.start.ln()).collect();
        let mut width: Vec<f64> = SHARED.iter().map(|value| value.width).collect();
        for &(_, _, slope, power) in PARTS {
            start.extend([slope, power]);
            width.extend([SLOPE_WIDTH, POWER_WIDTH]);
        }
        start.resize(self.length(), 0.0);
        width.resize(self.length(), OWN_WIDTH);
        (start, width)
    }
}
