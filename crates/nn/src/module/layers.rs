//! Dense layers, convolutions and embeddings.

use crate::{Initialiser, NnError, Parameter, Pass, Scope};
use aneforge_core::{Tensor, Window};

/// A dense layer: `x W^T + b`, `[..., in]` to `[..., out]`, with `weight` `[out, in]` and `bias` `[out]`.
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// A layer whose weight and bias are uniform within `1 / sqrt(in)`.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, inputs: usize, outputs: usize, bias: bool) -> Result<Self, NnError> {
        let bound = Initialiser::Uniform { bound: (inputs.max(1) as f64).sqrt().recip() };
        Self::with(scope, inputs, outputs, bound, bias.then_some(bound))
    }

    /// A layer with initialisers of one's own; no bias where none is given for it.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`], [`NnError::Setting`].
    pub fn with(
        scope: &mut Scope<'_>,
        inputs: usize,
        outputs: usize,
        weight: Initialiser,
        bias: Option<Initialiser>,
    ) -> Result<Self, NnError> {
        let weight = scope.parameter("weight", &[outputs, inputs], weight)?;
        let bias = bias.map(|bias| scope.parameter("bias", &[outputs], bias)).transpose()?;
        Ok(Self { weight, bias })
    }

    /// Applies it to `[..., in]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.linear(&pass.tensor(self.weight), self.bias.map(|bias| pass.tensor(bias)).as_ref())
    }
}

/// A convolution over images `[batch, in, height, width]` with `weight` `[out, in / groups, kernel, kernel]` and `bias` `[out]`.
#[derive(Clone, Debug)]
pub struct Conv2d {
    weight: Parameter,
    bias: Option<Parameter>,
    window: Window,
}

impl Conv2d {
    /// A convolution with a square kernel; stride, padding, dilation and groups come from `window`. Weight and bias are uniform
    /// within `1 / sqrt(in / groups * kernel^2)`.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`], and [`NnError::Setting`] where groups do not divide the channels.
    pub fn new(
        scope: &mut Scope<'_>,
        channels: (usize, usize),
        kernel: usize,
        window: &Window,
        bias: bool,
    ) -> Result<Self, NnError> {
        let (inputs, outputs) = channels;
        let groups = usize::try_from(window.groups).unwrap_or(0);
        if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let rule = "groups is positive and divides the channels that come in and those that go out";
            return Err(NnError::Setting { what: "groups of a convolution", got: window.groups.to_string(), rule });
        }
        let shape = [outputs, inputs / groups, kernel, kernel];
        let bound = Initialiser::Uniform { bound: (shape[1..].iter().product::<usize>().max(1) as f64).sqrt().recip() };
        let weight = scope.parameter("weight", &shape, bound)?;
        let bias = if bias { Some(scope.parameter("bias", &[outputs], bound)?) } else { None };
        Ok(Self { weight, bias, window: window.clone() })
    }

    /// Applies it to `[batch, in, height, width]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.conv(&pass.tensor(self.weight), self.bias.map(|bias| pass.tensor(bias)).as_ref(), &self.window)
    }
}

/// A table of vectors: row `i` of `weight` `[entries, width]` for each index `i`.
#[derive(Clone, Debug)]
pub struct Embedding {
    weight: Parameter,
}

impl Embedding {
    /// A table of normal numbers of that deviation.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`], [`NnError::Setting`].
    pub fn new(scope: &mut Scope<'_>, entries: usize, width: usize, deviation: f64) -> Result<Self, NnError> {
        Ok(Self { weight: scope.parameter("weight", &[entries, width], Initialiser::Normal { deviation })? })
    }

    /// The rows that int32 `indices` name: `[...]` to `[..., width]`. An index outside names the nearest row.
    pub fn apply(&self, pass: &Pass, indices: &Tensor) -> Tensor {
        pass.tensor(self.weight).gather(indices, 0)
    }

    /// Logits over the table's entries, `x W^T`, for models whose output layer is the table: `[..., width]` to `[..., entries]`.
    pub fn logits(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.linear(&pass.tensor(self.weight), None)
    }
}
