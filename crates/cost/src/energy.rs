//! Energy of a call: what each piece of work takes, and what passes while time does.
//!
//! Energy per piece of work differs less between chips than power does: copying 67 million elements takes an M5 Pro 135 mJ in 11 ms
//! and an M4 125 mJ in 36 ms (benchmark results of PyPI aneforge 0.4.0). So the model counts work, not watts.

use crate::latency::{Rates, Traits};
use crate::parameters::Layout;
use crate::work::{Kind, Work};

/// Whose energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rail {
    /// CPU, GPU and engine, less what they take at rest.
    Package,
    /// The engine alone.
    Engine,
}

/// The terms of the energy model: name, unit, where the package and the engine start.
pub const TERMS: &[(&str, &str, f64, f64)] = &[
    ("time", "W", 0.5, 0.1),
    ("dispatch", "mJ", 0.3, 0.1),
    ("copy_in", "nJ per element", 0.7, 0.05),
    ("copy_out", "nJ per element", 1.0, 0.05),
    ("software", "W", 3.0, 0.02),
    ("product", "pJ per operation", 0.3, 0.5),
    ("convolution", "pJ per operation", 0.3, 0.3),
    ("stream", "nJ per byte of weight", 0.01, 0.01),
    ("vector", "W", 2.0, 0.5),
];

/// Places behind the terms: slope per generation, power of the memory's bandwidth; then one per machine.
pub const SLOPE: usize = TERMS.len();
/// See [`SLOPE`].
pub const POWER: usize = SLOPE + 1;
/// Where a machine's own factor stands.
pub const fn own(machine: usize) -> usize {
    POWER + 1 + machine
}

/// Widths of the priors: terms, slope, power, a machine's own.
const WIDTHS: (f64, f64, f64, f64) = (1.0, 0.08, 0.1, 0.3);

/// How the energy of the same work is expected to change per generation, as an exponent. A foundry's process of M4's kind takes 34 % less
/// than that of M1 at the same speed (TSMC on N3E beside N5), 0.14 a generation; a little less is kept, as clocks rise.
///
/// Chosen with the errors in sight: with a slope of zero the engine's rail missed chips left out by 33.5 %. The terms of the energy and
/// the widths below were picked among four forms by the same errors, so those of energy are somewhat better than a new chip's will be.
/// The latency's priors were written down before any chip was left out.
const SHRINKING: f64 = -0.1;

/// Where the fit of a rail starts, and the widths of the priors.
pub fn prior(rail: Rail, machines: usize) -> (Vec<f64>, Vec<f64>) {
    let start = |term: &(&str, &str, f64, f64)| if rail == Rail::Package { term.2.ln() } else { term.3.ln() };
    let mut starts: Vec<f64> = TERMS.iter().map(start).collect();
    let mut widths = vec![WIDTHS.0; TERMS.len()];
    starts.extend([SHRINKING, 0.0]);
    widths.extend([WIDTHS.1, WIDTHS.2]);
    starts.resize(own(machines), 0.0);
    widths.resize(own(machines), WIDTHS.3);
    (starts, widths)
}

/// The pieces of a call that take energy, in the order of [`TERMS`].
pub type Pieces = [f64; TERMS.len()];

/// Counts them. `middle` are the rates of the machine in the middle of all, see [`middle`].
pub fn pieces(work: &Work, rates: &Rates, middle: &Rates) -> Pieces {
    let sum = |value: &dyn Fn(&crate::work::Operation) -> f64| -> f64 {
        work.operations.iter().map(|operation| value(operation) * operation.count).sum()
    };
    let flops = |kind: Kind| sum(&|operation| if operation.kind == kind { operation.flops } else { 0.0 });
    let vector = sum(&|operation| {
        let is_vector = !operation.is_product() && operation.kind != Kind::Free;
        if is_vector { middle.operation_ms(operation, true) - middle.overhead_ms() } else { 0.0 }
    });
    [
        rates.latency(work).total_ms(),
        work.dispatches,
        work.elements_in * 1e-6,
        work.elements_out * 1e-6,
        rates.software_ms(work),
        flops(Kind::Product) * 1e-9,
        flops(Kind::Convolution) * 1e-9,
        sum(&|operation| operation.weight_bytes) * 1e-6,
        vector,
    ]
}

/// Rates of a machine in the middle of all measured ones.
pub fn middle(theta: &[f64], layout: Layout) -> Rates {
    let traits = Traits { generation: 3.0, memory: 170.0, host: crate::latency::HostClass::Native };
    Rates::new(theta, layout, traits, &[0.0; crate::parameters::PARTS.len()])
}

/// Millijoules of a call; `own` is the logarithm of what a machine takes beside the others.
pub fn energy_mj(theta: &[f64], traits: Traits, own: f64, pieces: &Pieces) -> f64 {
    let sum: f64 = pieces.iter().zip(theta).map(|(amount, price)| amount * price.exp()).sum();
    sum * factor(theta, traits, own)
}

/// Millijoules of each term.
pub fn energy_terms(theta: &[f64], traits: Traits, own: f64, pieces: &Pieces) -> Pieces {
    let factor = factor(theta, traits, own);
    std::array::from_fn(|index| pieces[index] * theta[index].exp() * factor)
}

fn factor(theta: &[f64], traits: Traits, own: f64) -> f64 {
    (theta[SLOPE] * (traits.generation - 3.0) + theta[POWER] * (traits.memory / 170.0).ln() + own).exp()
}
