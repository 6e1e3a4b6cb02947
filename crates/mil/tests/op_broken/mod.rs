//! Uses of operators with one thing wrong, family by family.

mod compressed;
mod created;
mod images;
mod indexed;

use aneforge_mil::op::{Data, Given, sample};

/// Operator, label of the rule it breaks first, arguments.
pub type Broken = (&'static str, &'static str, &'static [(&'static str, Given)]);

/// fp16 values from a seed: rules look at shapes.
pub const fn t(shape: &'static [usize]) -> Given {
    sample(shape, 7)
}

/// The same in fp32.
pub const fn f32s(shape: &'static [usize]) -> Given {
    Given::Tensor(aneforge_mil::DType::Fp32, shape, Data::Seeded(3))
}

/// The uses of every family here.
pub fn families() -> impl Iterator<Item = Broken> {
    [compressed::BROKEN, created::BROKEN, images::BROKEN, indexed::BROKEN].into_iter().flatten().copied()
}
