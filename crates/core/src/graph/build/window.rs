//! Where the windows of convolutions and pools lie.

/// Window of a convolution or pool. A list with one entry holds for every spatial axis (a single pad for every side); an empty one
/// means the default: strides and dilations 1 (for pools the stride is the kernel), no padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Window extents of a pool.
    pub kernel: Vec<i64>,
    /// Steps.
    pub strides: Vec<i64>,
    /// Padding before and after each spatial axis: `[top, bottom, left, right]`.
    pub pad: Vec<i64>,
    /// Distances of taps.
    pub dilations: Vec<i64>,
    /// Groups of a convolution.
    pub groups: i64,
    /// Elements added behind each spatial axis of a transposed convolution, fewer than its stride.
    pub output_padding: Vec<i64>,
    /// A pool's last window may hang over the edge.
    pub ceil_mode: bool,
    /// A mean leaves padding out.
    pub exclude_padding: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            kernel: Vec::new(),
            strides: Vec::new(),
            pad: Vec::new(),
            dilations: Vec::new(),
            groups: 1,
            output_padding: Vec::new(),
            ceil_mode: false,
            exclude_padding: false,
        }
    }
}

impl Window {
    /// A square window, for pools.
    pub fn square(size: i64) -> Self {
        Self::default().kernel(size)
    }

    /// The same kernel extent on every axis.
    #[must_use]
    pub fn kernel(mut self, size: i64) -> Self {
        self.kernel = vec![size];
        self
    }

    /// The same stride on every axis.
    #[must_use]
    pub fn stride(mut self, stride: i64) -> Self {
        self.strides = vec![stride];
        self
    }

    /// The same padding on every side.
    #[must_use]
    pub fn padding(mut self, pad: i64) -> Self {
        self.pad = vec![pad];
        self
    }

    /// Padding per side: before and after each spatial axis.
    #[must_use]
    pub fn padding_per_side(mut self, pad: &[i64]) -> Self {
        self.pad = pad.to_vec();
        self
    }

    /// The same dilation on every axis.
    #[must_use]
    pub fn dilation(mut self, dilation: i64) -> Self {
        self.dilations = vec![dilation];
        self
    }

    /// Groups of channels.
    #[must_use]
    pub fn groups(mut self, groups: i64) -> Self {
        self.groups = groups;
        self
    }

    /// The same number of elements added behind every spatial axis of a transposed convolution.
    #[must_use]
    pub fn output_padding(mut self, extra: i64) -> Self {
        self.output_padding = vec![extra];
        self
    }

    /// One entry per place, so that equal windows give equal nodes.
    pub(super) fn spread(values: &[i64], count: usize, default: i64) -> Vec<i64> {
        match values {
            [] => vec![default; count],
            [one] => vec![*one; count],
            all => all.to_vec(),
        }
    }
}
