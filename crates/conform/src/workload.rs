//! The workloads with a published figure: what each is called and what it computes.

use crate::case::{Computation, RowOperation, Sizes};
use crate::reference::Host;

/// A named workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The name under which its figures were published.
    pub name: &'static str,
    /// What it computes.
    pub computation: Computation,
    /// Chips whose host ran NumPy 1. Inferred: the figures of these machines come out exactly with
    /// NumPy 1's promotion and with no other, those of all others with NumPy 2's.
    pub numpy1: &'static [&'static str],
}

impl Workload {
    /// The workload of that name.
    pub fn find(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// The numpy of the machine that reported this workload for a chip.
    pub fn host(&self, chip: &str) -> Host {
        if self.numpy1.contains(&chip) { Host::NumPy1 } else { Host::NumPy2 }
    }
}

const fn workload(name: &'static str, computation: Computation) -> Workload {
    Workload { name, computation, numpy1: &[] }
}

const fn streaming(name: &'static str, operation: RowOperation, sizes: Sizes, rows: usize) -> Workload {
    workload(name, Computation::Streaming { operation, sizes, rows })
}

const fn sweep(name: &'static str, channels: usize, batch: usize, numpy1: &'static [&'static str]) -> Workload {
    Workload { name, computation: Computation::ConvolutionSweep { channels, batch }, numpy1 }
}

const fn product(name: &'static str, rows: usize, depth: usize, columns: usize) -> Workload {
    workload(name, Computation::Product { rows, depth, columns })
}

const DEEP_STACK: Computation = Computation::ConvolutionStack { input_channels: 64, channels: 256, depth: 16 };

/// Every workload with a published figure.
#[rustfmt::skip]
pub const WORKLOADS: &[Workload] = &[
    workload("gemm/N=512", Computation::SquareProduct { size: 512 }),
    workload("gemm/N=1024", Computation::SquareProduct { size: 1024 }),
    workload("gemm/N=2048", Computation::SquareProduct { size: 2048 }),
    workload("gemm/N=4096", Computation::SquareProduct { size: 4096 }),
    workload("gemm/N=6144", Computation::SquareProduct { size: 6144 }),
    workload("gemm/N=8192", Computation::SquareProduct { size: 8192 }),
    product("square_sweep/N=512,K=512", 1, 512, 512),
    product("square_sweep/N=1024,K=1024", 1, 1024, 1024),
    product("square_sweep/N=2048,K=2048", 1, 2048, 2048),
    product("square_sweep/N=4096,K=4096", 1, 4096, 4096),
    product("square_sweep/N=6144,K=6144", 1, 6144, 6144),
    product("square_sweep/N=8192,K=8192", 1, 8192, 8192),
    product("rect_sweep/N=2048,K=8192", 1, 8192, 2048),
    product("rect_sweep/N=8192,K=2048", 1, 2048, 8192),
    product("rect_sweep/N=11008,K=4096", 1, 4096, 11008),
    product("GEMM floor (M=64,K=256,N=256)", 64, 256, 256),
    product("GEMM bandwidth (M=128,K=1024,N=1024)", 128, 1024, 1024),
    product("GEMM compute (M=256,K=4096,N=4096)", 256, 4096, 4096),
    workload("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=1", Computation::BatchedProduct { batch: 1 }),
    workload("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=4", Computation::BatchedProduct { batch: 4 }),
    workload("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=16", Computation::BatchedProduct { batch: 16 }),
    workload("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=64", Computation::BatchedProduct { batch: 64 }),
    workload("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=256", Computation::BatchedProduct { batch: 256 }),
    workload("DFT-as-matmul (N=1024)", Computation::FourierTransform { size: 1024 }),
    sweep("conv/C=64,B=8", 64, 8, &["m2pro"]),
    sweep("conv/C=128,B=8", 128, 8, &["m2pro"]),
    sweep("conv/C=256,B=4", 256, 4, &["m2pro"]),
    sweep("conv/C=512,B=2", 512, 2, &["m2pro"]),
    sweep("conv/C=64,B=16", 64, 16, &[]),
    sweep("conv/C=128,B=16", 128, 16, &[]),
    sweep("conv/C=256,B=8", 256, 8, &[]),
    sweep("conv/C=512,B=4", 512, 4, &[]),
    workload("conv single (C=64,32x32,k=3,depth=1)", Computation::ConvolutionStack { input_channels: 16, channels: 64, depth: 1 }),
    workload("conv resnet-ish (C=256,32x32,k=3,depth=16)", DEEP_STACK),
    workload("conv stack (C=256,32x32,k=3,depth=16)", DEEP_STACK),
    workload("stencil 5pt (256x256, steps=32)", Computation::Stencil { size: 256, steps: 32 }),
    workload("Jacobi solve (n=512, iters=25)", Computation::Jacobi { size: 512, iterations: 25 }),
    streaming("relu, short sweep [256,4096]", RowOperation::Relu, Sizes::Quick, 256),
    streaming("relu, short sweep [2048,4096]", RowOperation::Relu, Sizes::Quick, 2048),
    streaming("relu, short sweep [8192,4096]", RowOperation::Relu, Sizes::Quick, 8192),
    streaming("relu, long sweep [64,4096]", RowOperation::Relu, Sizes::Full, 64),
    streaming("relu, long sweep [256,4096]", RowOperation::Relu, Sizes::Full, 256),
    streaming("relu, long sweep [1024,4096]", RowOperation::Relu, Sizes::Full, 1024),
    streaming("relu, long sweep [4096,4096]", RowOperation::Relu, Sizes::Full, 4096),
    streaming("relu, long sweep [8192,4096]", RowOperation::Relu, Sizes::Full, 8192),
    streaming("relu, long sweep [16384,4096]", RowOperation::Relu, Sizes::Full, 16384),
    streaming("reduce_sum, short sweep [256,4096]", RowOperation::Sum, Sizes::Quick, 256),
    streaming("reduce_sum, short sweep [2048,4096]", RowOperation::Sum, Sizes::Quick, 2048),
    streaming("reduce_sum, short sweep [8192,4096]", RowOperation::Sum, Sizes::Quick, 8192),
    streaming("reduce_sum, long sweep [64,4096]", RowOperation::Sum, Sizes::Full, 64),
    streaming("reduce_sum, long sweep [256,4096]", RowOperation::Sum, Sizes::Full, 256),
    streaming("reduce_sum, long sweep [1024,4096]", RowOperation::Sum, Sizes::Full, 1024),
    streaming("reduce_sum, long sweep [4096,4096]", RowOperation::Sum, Sizes::Full, 4096),
    streaming("reduce_sum, long sweep [8192,4096]", RowOperation::Sum, Sizes::Full, 8192),
    streaming("reduce_sum, long sweep [16384,4096]", RowOperation::Sum, Sizes::Full, 16384),
    streaming("softmax, short sweep [256,4096]", RowOperation::Softmax, Sizes::Quick, 256),
    streaming("softmax, short sweep [2048,4096]", RowOperation::Softmax, Sizes::Quick, 2048),
    streaming("softmax, short sweep [8192,4096]", RowOperation::Softmax, Sizes::Quick, 8192),
    streaming("softmax, long sweep [64,4096]", RowOperation::Softmax, Sizes::Full, 64),
    streaming("softmax, long sweep [256,4096]", RowOperation::Softmax, Sizes::Full, 256),
    streaming("softmax, long sweep [1024,4096]", RowOperation::Softmax, Sizes::Full, 1024),
    streaming("softmax, long sweep [2048,4096]", RowOperation::Softmax, Sizes::Full, 2048),
    streaming("softmax, long sweep [4096,4096]", RowOperation::Softmax, Sizes::Full, 4096),
    streaming("softmax, long sweep [8192,4096]", RowOperation::Softmax, Sizes::Full, 8192),
    streaming("gelu, short sweep [256,4096]", RowOperation::Gelu, Sizes::Quick, 256),
    streaming("gelu, short sweep [2048,4096]", RowOperation::Gelu, Sizes::Quick, 2048),
    streaming("gelu, short sweep [8192,4096]", RowOperation::Gelu, Sizes::Quick, 8192),
    streaming("gelu, long sweep [64,4096]", RowOperation::Gelu, Sizes::Full, 64),
    streaming("gelu, long sweep [256,4096]", RowOperation::Gelu, Sizes::Full, 256),
    streaming("gelu, long sweep [1024,4096]", RowOperation::Gelu, Sizes::Full, 1024),
    streaming("gelu, long sweep [2048,4096]", RowOperation::Gelu, Sizes::Full, 2048),
    streaming("gelu, long sweep [4096,4096]", RowOperation::Gelu, Sizes::Full, 4096),
    streaming("gelu, long sweep [8192,4096]", RowOperation::Gelu, Sizes::Full, 8192),
    streaming("gelu, long sweep [16384,4096]", RowOperation::Gelu, Sizes::Full, 16384),
    streaming("layer_norm, short sweep [256,4096]", RowOperation::LayerNorm, Sizes::Quick, 256),
    streaming("layer_norm, long sweep [64,4096]", RowOperation::LayerNorm, Sizes::Full, 64),
    streaming("layer_norm, long sweep [256,4096]", RowOperation::LayerNorm, Sizes::Full, 256),
    streaming("layer_norm, long sweep [1024,4096]", RowOperation::LayerNorm, Sizes::Full, 1024),
    streaming("layer_norm, long sweep [2048,4096]", RowOperation::LayerNorm, Sizes::Full, 2048),
    streaming("layer_norm, long sweep [4096,4096]", RowOperation::LayerNorm, Sizes::Full, 4096),
    streaming("layer_norm, long sweep [8192,4096]", RowOperation::LayerNorm, Sizes::Full, 8192),
    streaming("layer_norm, long sweep [16384,4096]", RowOperation::LayerNorm, Sizes::Full, 16384),
    workload("layer_norm vit (197, 768)", Computation::Normalisation { operation: RowOperation::LayerNorm }),
    workload("rms_norm vit (197, 768)", Computation::Normalisation { operation: RowOperation::RmsNorm }),
    workload("attention vit (S=197,D=768,H=12)", Computation::Attention { sequence: 197 }),
    workload("attention longseq (S=512,D=768,H=12)", Computation::Attention { sequence: 512 }),
    workload("group_norm fmap (1, 256, 64, 64)", Computation::GroupNorm),
    workload("attention (self-attn block, S=128) B=1", Computation::ServingAttention { batch: 1 }),
    workload("attention (self-attn block, S=128) B=4", Computation::ServingAttention { batch: 4 }),
    workload("attention (self-attn block, S=128) B=16", Computation::ServingAttention { batch: 16 }),
    workload("encoder (transformer block, S=128) B=1", Computation::ServingEncoder { batch: 1 }),
    workload("encoder (transformer block, S=128) B=4", Computation::ServingEncoder { batch: 4 }),
    workload("encoder (transformer block, S=128) B=16", Computation::ServingEncoder { batch: 16 }),
    workload("vision (conv-stack->GAP->FC classifier) B=1", Computation::ServingVision { batch: 1 }),
    workload("vision (conv-stack->GAP->FC classifier) B=4", Computation::ServingVision { batch: 4 }),
    workload("vision (conv-stack->GAP->FC classifier) B=16", Computation::ServingVision { batch: 16 }),
    workload("vision (conv-stack->GAP->FC classifier) B=64", Computation::ServingVision { batch: 64 }),
];
