//! numpy's `default_rng(seed)`, bit for bit.
//!
//! The published engine figures were computed from inputs drawn with numpy's default generator, so
//! recomputing them needs the same numbers to the last bit: [`SeedSequence`] spreads a seed over the
//! state, [`Pcg64`] is the permuted congruential generator with the XSL-RR output function, and
//! [`Generator`] draws f64 uniforms and f64 standard normals (256-layer ziggurat) in numpy's order.
//! Integers and shuffles are left out: no published workload draws them.

mod pcg;
mod seed;
mod ziggurat;
mod ziggurat_table;

pub use pcg::Pcg64;
pub use seed::SeedSequence;

use ziggurat::Ziggurat;

/// Draws in the order of `numpy.random.default_rng(seed)`.
///
/// ```
/// # use aneforge_conform::random::Generator;
/// let mut generator = Generator::from_seed(0);
/// assert_eq!(generator.standard_normal(), 0.1257302210933933);
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    source: Pcg64,
    ziggurat: &'static Ziggurat,
}

impl Generator {
    /// The generator that `numpy.random.default_rng(seed)` returns.
    pub fn from_seed(seed: u64) -> Self {
        Self { source: Pcg64::from_seed_sequence(&SeedSequence::new(seed)), ziggurat: Ziggurat::shared() }
    }

    /// The next raw 64-bit word (`bit_generator.random_raw()`).
    pub fn next_raw(&mut self) -> u64 {
        self.source.next_word()
    }

    /// A uniform f64 in `[0, 1)` with 53 random bits (`Generator.random()`).
    pub fn random(&mut self) -> f64 {
        self.source.next_unit()
    }

    /// A standard normal f64 (`Generator.standard_normal()`).
    pub fn standard_normal(&mut self) -> f64 {
        self.ziggurat.draw(&mut self.source)
    }

    /// Fills `values` with standard normals, in the order of `standard_normal(values.len())`.
    pub fn fill_standard_normal(&mut self, values: &mut [f64]) {
        // A local copy keeps the 128-bit state in registers across the whole fill.
        let mut source = self.source.clone();
        for value in values {
            *value = self.ziggurat.draw(&mut source);
        }
        self.source = source;
    }

    /// `standard_normal(count)` as f64 values.
    pub fn normals(&mut self, count: usize) -> Vec<f64> {
        let mut values = vec![0.0; count];
        self.fill_standard_normal(&mut values);
        values
    }

    /// `standard_normal(count).astype(float32)`.
    pub fn normals_f32(&mut self, count: usize) -> Vec<f32> {
        let mut source = self.source.clone();
        let values = (0..count).map(|_| self.ziggurat.draw(&mut source) as f32).collect();
        self.source = source;
        values
    }

    /// Draws `count` standard normals and drops them. A draw takes a varying number of raw words, so
    /// the generator cannot jump over them.
    pub fn skip_normals(&mut self, count: usize) {
        let mut source = self.source.clone();
        for _ in 0..count {
            self.ziggurat.draw(&mut source);
        }
        self.source = source;
    }
}
