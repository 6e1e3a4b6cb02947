//! Time of a call: the dispatch, the host's copies, the engine's operations one after the other.
//!
//! | term | form | who says so |
//! |---|---|---|
//! | dispatch | a constant per dispatch, a hundredth of it per operation | ANE guide (arXiv 2606.22283), chapter 2: 0.19 ms on M1, of which 0.13 ms are the firmware's |
//! | host | elements in and out, each at its own rate; fp16 converted in software costs more, by what the numbers are | benchmark results of PyPI aneforge 0.4.0 |
//! | product | operations over rate, against the stream of the weight; the slower of the two counts | roofline, ANE guide chapter 9 |
//! | working set | where neither operand is small, up to some three times as long, in a soft step at tens of megabytes | the same results: 2048^3 against 6144^3 |
//! | activation | time per element of softmax, norms, reductions, moves; results above 16 MB also go through memory | the same results |
//!
//! Two rules of the literature are not in it. "32 MB of memory on the engine" rests on sizes that are powers of two: 40, 50 and 72 MB
//! of weights stream faster than 24 MB, and only 4096 and 8192 channels are slow (maderix/ANE, benchmark submissions), so the step
//! here is one of products with two large operands and leaves streams alone. "A convolution with a 1x1 kernel is three times faster
//! than a product" (the same benchmarks) compares single calls that are mostly dispatch: batched products reach 19 TFLOP/s beside their
//! copies on a chip whose peak is about that, which leaves no room for it. So 1x1 convolutions and products have one rate here, larger
//! kernels another, which on M5 counts the multiplications that Winograd's form saves.
//! A queue of 127 requests (maderix/ANE, README) hides the host's copies behind the engine, see
//! [`Latency::queued`](crate::Latency::queued), and nothing else: one request runs at a time, and two submitting threads give 1.04
//! times the calls (ANE guide, chapter 2).

use crate::parameters::{Layout, PARTS, Part, Shared};
use crate::work::{Kind, Operation, Values, Work};

/// What is known of a machine before anything was measured on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traits {
    /// Generation of the engine: 1 for M1, 5 for M5.
    pub generation: f64,
    /// Bandwidth of the SoC's memory in GB/s.
    pub memory: f64,
    /// Class of its host software.
    pub host: HostClass,
}

/// How the host turns fp16 results into what the caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostClass {
    /// Conversion by vector instructions, or none.
    #[default]
    Native,
    /// Conversion element by element in software, as some builds of numpy do: 1 to 4 ns per element.
    Software,
}

/// Results above this go through memory.
pub const SPILL_BYTES: f64 = 16e6;

/// Requests that an engine's queue holds: maderix/ANE, README.
pub const QUEUE_DEPTH: usize = 127;

/// Generation and bandwidth at which a shared value holds as it is.
const MIDDLE: (f64, f64) = (3.0, 170.0);

/// The rates of one machine.
#[derive(Clone, Debug)]
pub struct Rates {
    floor: f64,
    copy_in: f64,
    copy_out: f64,
    software: f64,
    software_zeros: f64,
    software_subnormal: f64,
    product: f64,
    convolution: f64,
    stream: f64,
    operation: f64,
    vector: [f64; 8],
    cliff: [f64; 3],
    spill: f64,
    formats: [f64; 4],
}

/// The time of one call in milliseconds, by cause.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Latency {
    /// Dispatches.
    pub dispatch_ms: f64,
    /// Copies and conversions on the host.
    pub host_ms: f64,
    /// The engine.
    pub engine_ms: f64,
}

impl Latency {
    /// The call from start to end.
    pub fn total_ms(&self) -> f64 {
        self.dispatch_ms + self.host_ms + self.engine_ms
    }

    /// Time per call where the next one always waits in the engine's queue: copies run while the engine works.
    pub fn queued(&self) -> f64 {
        (self.dispatch_ms + self.engine_ms).max(self.host_ms)
    }
}

/// A product's parts, each in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Arithmetic, with what the working set adds.
    pub compute_ms: f64,
    /// The weight's way from memory.
    pub stream_ms: f64,
}

impl Rates {
    /// The rates under a vector of parameters; `own` is what the machine has to itself.
    pub fn new(theta: &[f64], layout: Layout, traits: Traits, own: &[f64; PARTS.len()]) -> Self {
        let at = |which: Shared| theta[layout.shared(which)];
        let shared = |which: Shared| at(which).exp();
        let age = traits.generation - MIDDLE.0;
        let memory = (traits.memory / MIDDLE.1).ln();
        let part = |part: Part| theta[layout.slope(part)] * age + theta[layout.power(part)] * memory + own[part as usize];
        let rate = |which: Shared, differs: Part| (at(which) + part(differs)).exp();
        let vector = part(Part::Vector).exp();
        let floor = rate(Shared::Floor, Part::Floor);
        let int8 = at(Shared::Int8) + if traits.generation >= 5.0 { at(Shared::Int8FromA17) } else { 0.0 };
        let is_software = traits.host == HostClass::Software;
        let software = |which: Shared| if is_software { shared(which) * 1e-6 } else { 0.0 };
        Self {
            floor,
            // ns per element are 1e-6 ms per element; TFLOP/s are 1e9 operations per ms; GB/s are 1e6 bytes per ms.
            copy_in: rate(Shared::CopyIn, Part::CopyIn) * 1e-6,
            copy_out: rate(Shared::CopyOut, Part::CopyOut) * 1e-6,
            software: software(Shared::SoftwareOrdinary),
            software_zeros: software(Shared::SoftwareZeros),
            software_subnormal: software(Shared::SoftwareSubnormal),
            product: rate(Shared::Product, Part::Product) * 1e9,
            convolution: rate(Shared::Convolution, Part::Convolution) * 1e9,
            stream: rate(Shared::Stream, Part::Stream) * 1e6,
            operation: shared(Shared::Operation) * floor / 0.09,
            vector: [
                Shared::Elementwise,
                Shared::Softmax,
                Shared::LayerNorm,
                Shared::RmsNorm,
                Shared::GroupNorm,
                Shared::L2Norm,
                Shared::Reduction,
                Shared::Movement,
            ]
            .map(|which| shared(which) * vector * 1e-6),
            cliff: [Shared::CliffHeight, Shared::CliffPlace, Shared::CliffSteepness].map(shared),
            spill: shared(Shared::Spill) * 1e-9,
            formats: [1.0, int8.exp(), shared(Shared::Int4), shared(Shared::Sparse)],
        }
    }

    /// Milliseconds of a call.
    pub fn latency(&self, work: &Work) -> Latency {
        let is_alone = work.operations.iter().map(|operation| operation.count).sum::<f64>() <= 1.0;
        let engine = work.operations.iter().map(|operation| self.operation_ms(operation, is_alone) * operation.count);
        Latency { dispatch_ms: work.dispatches * self.floor, host_ms: self.host_ms(work), engine_ms: engine.sum() }
    }

    /// Milliseconds that the host copies and converts.
    pub fn host_ms(&self, work: &Work) -> f64 {
        work.elements_in * self.copy_in + work.elements_out * self.copy_out + self.software_ms(work)
    }

    /// Milliseconds of those that software conversion takes.
    pub fn software_ms(&self, work: &Work) -> f64 {
        let rate = match work.values {
            Values::Ordinary => self.software,
            Values::ManyZeros => self.software_zeros,
            Values::Subnormal => self.software_subnormal,
        };
        work.elements_out * rate
    }

    /// Milliseconds of one operation. What goes in and out of a program whose only operation it is, is the host's.
    pub fn operation_ms(&self, operation: &Operation, is_alone: bool) -> f64 {
        if operation.kind == Kind::Free {
            return 0.0;
        }
        let spilled = if is_alone || operation.output_bytes <= SPILL_BYTES { 0.0 } else { operation.output_bytes * self.spill };
        let work = match self.bounds(operation) {
            // The slower of the two counts, and where they are alike they get in each other's way.
            Some(Bounds { compute_ms, stream_ms }) => (compute_ms.powi(3) + stream_ms.powi(3)).cbrt(),
            None => operation.elements * self.vector_ms(operation.kind),
        };
        self.operation + work + spilled
    }

    /// What bounds a product; `None` for other operations.
    pub fn bounds(&self, operation: &Operation) -> Option<Bounds> {
        let rate = match operation.kind {
            Kind::Product => self.product,
            Kind::Convolution => self.convolution,
            _ => return None,
        };
        let moved = operation.weight_bytes * self.formats[operation.format as usize];
        Some(Bounds { compute_ms: operation.flops / rate * self.cliff(operation), stream_ms: moved / self.stream })
    }

    /// By how much a working set slows a product: a soft step in the size of the smaller operand.
    fn cliff(&self, operation: &Operation) -> f64 {
        let [height, place, steepness] = self.cliff;
        let smaller = operation.input_bytes.min(operation.weight_bytes) * 1e-6;
        if smaller <= 1e-3 { 1.0 } else { 1.0 + height / (1.0 + (place / smaller).powf(steepness)) }
    }

    fn vector_ms(&self, kind: Kind) -> f64 {
        let index = match kind {
            Kind::Elementwise => 0,
            Kind::Softmax => 1,
            Kind::LayerNorm => 2,
            Kind::RmsNorm => 3,
            Kind::GroupNorm => 4,
            Kind::L2Norm => 5,
            Kind::Reduction => 6,
            Kind::Movement => 7,
            Kind::Product | Kind::Convolution | Kind::Free => return 0.0,
        };
        self.vector[index]
    }

    /// Milliseconds that every operation takes beside its work.
    pub fn overhead_ms(&self) -> f64 {
        self.operation
    }

    /// Arithmetic per second of products and of convolutions, and bytes of weights per second: the roofs of a roofline.
    pub fn roofs(&self) -> (f64, f64, f64) {
        (self.product * 1e3, self.convolution * 1e3, self.stream * 1e3)
    }
}
