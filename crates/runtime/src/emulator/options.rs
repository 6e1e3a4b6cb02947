//! Questions about the engine that no published figure decides, as switches with a default each.

pub use super::rules::Switches;

/// What happens to products of fp16-subnormal inputs on the multiply-accumulate path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SubnormalProducts {
    /// Kept: the product rule without an exception, which no published figure contradicts.
    #[default]
    Kept,
    /// Subnormal inputs count as zero.
    Flushed,
    /// Zero below A17 and kept from A17 on, as the ANE guide (arXiv 2606.22283, chapter 3) measured on M1 and M5.
    PerChip,
}

/// What happens when a running sum passes 2^15 and later terms bring it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PartialOverflow {
    /// Only the final sum counts: sums are exact, as every published figure has it.
    #[default]
    FinalOnly,
    /// Infinite at once, as the ANE guide (arXiv 2606.22283, chapter 3) words it.
    Immediate,
}

/// Where the result of a 1x1 convolution of a single channel becomes infinite: it adds nothing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SingleTap {
    /// Beyond 65504, like an element-wise product, as the ANE guide (arXiv 2606.22283, chapter 3) measured on M1: 60000 passes.
    #[default]
    Element,
    /// From 2^15 on, like every other product that leaves the multiply-accumulate array.
    Port,
}

/// The form in which 3x3 convolutions with stride 1 and padding 1 run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ConvolutionForm {
    /// One-dimensional Winograd on M5 and M6 and direct elsewhere, as published figures have it; there is none of an M3.
    #[default]
    PerChip,
    /// Direct.
    Direct,
    /// One-dimensional Winograd along the width.
    Winograd,
}

/// Switches of the emulator. The defaults are what the published seeded figures support; the alternatives name who says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EmulatorOptions {
    /// Subnormal inputs of products.
    pub subnormal_products: SubnormalProducts,
    /// Interior partial sums above 2^15.
    pub partial_overflow: PartialOverflow,
    /// 1x1 convolutions of one channel.
    pub single_tap: SingleTap,
    /// 3x3 convolutions.
    pub convolution: ConvolutionForm,
    /// Reductions.
    pub planar: Switches,
}
