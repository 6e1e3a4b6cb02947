//! The published figures themselves. Only the report reads this table: nothing that draws, computes
//! or runs a workload may.

use serde::{Deserialize, Serialize};

/// How close the rules we know come to a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The figure is reproduced to its printed digits.
    Exact,
    /// The engine's side is exact; the host's reference summed in an order that is not known.
    Close,
    /// A stand-in of the right size: the bits are not the chip's.
    Modelled,
}

/// One published relative error, and the chips it was reported for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The workload's name in [`crate::workload::WORKLOADS`].
    pub workload: &'static str,
    /// Emulator names of the chips with this value (they agree to within a unit of the sixteenth digit).
    pub chips: &'static [&'static str],
    /// The relative error.
    pub value: f64,
    /// What our rules make of it.
    pub status: Status,
    /// Who published it.
    pub source: Source,
}

/// Where a figure was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The paper and the results that its package ships; its host is an M5 Pro.
    Paper,
    /// Results of the package's users, shipped with it or on its result pages.
    Users,
}

impl Source {
    /// A citation.
    pub fn citation(self) -> &'static str {
        match self {
            Self::Paper => "ANEForge, arXiv 2606.17090, and package 0.4.0, benchmark results",
            Self::Users => "ANEForge 0.4.0, results of its users",
        }
    }
}

use Source::{Paper, Users};
use Status::{Close, Exact, Modelled};

/// Chips with a value for the square matrix products.
const PRODUCT_CHIPS: &[&str] = &["m1", "m1max", "m2pro", "m2max", "m4", "m4pro", "m4max", "m5", "m5pro", "m6"];
/// Chips that ran the short list of sizes and share its values.
const QUICK_CHIPS: &[&str] = &["m1", "m1max", "m2pro", "m2max", "m4pro", "m5", "m6"];
const QUICK_DIRECT: &[&str] = &["m1", "m1max", "m2max", "m4pro"];
const COMPARISON_CHIPS: &[&str] = &["m1", "m2", "m4", "m4max", "m5pro"];
const COMPARISON_DIRECT: &[&str] = &["m1", "m2", "m4", "m4max"];
const FULL_CHIPS: &[&str] = &["m4", "m4max", "m5pro"];

const fn row(workload: &'static str, chips: &'static [&'static str], value: f64, status: Status, source: Source) -> Published {
    Published { workload, chips, value, status, source }
}

/// Every figure, grouped by workload.
#[rustfmt::skip]
pub const PUBLISHED: &[Published] = &[
    row("gemm/N=512", PRODUCT_CHIPS, 0.002578003970237922, Exact, Users),
    row("gemm/N=1024", PRODUCT_CHIPS, 0.005528352999597531, Exact, Users),
    row("gemm/N=2048", PRODUCT_CHIPS, 0.012131920427695522, Exact, Users),
    row("gemm/N=4096", PRODUCT_CHIPS, 0.027237621125542084, Exact, Users),
    row("gemm/N=6144", &["m4", "m5pro"], 0.043990474210234866, Exact, Users),
    row("gemm/N=8192", &["m5pro"], 0.061638068725750665, Exact, Paper),
    row("square_sweep/N=512,K=512", &["m5pro"], 0.0024445968323742575, Exact, Paper),
    row("square_sweep/N=1024,K=1024", &["m5pro"], 0.005398935782845327, Exact, Paper),
    row("square_sweep/N=2048,K=2048", &["m5pro"], 0.01207323982683335, Exact, Paper),
    row("square_sweep/N=4096,K=4096", &["m5pro"], 0.026957951213090588, Exact, Paper),
    row("square_sweep/N=6144,K=6144", &["m5pro"], 0.04428429985703587, Exact, Paper),
    row("square_sweep/N=8192,K=8192", &["m5pro"], 0.06303353241862372, Exact, Paper),
    row("rect_sweep/N=2048,K=8192", &["m5pro"], 0.06285746046434972, Exact, Paper),
    row("rect_sweep/N=8192,K=2048", &["m5pro"], 0.012062673496956096, Exact, Paper),
    row("rect_sweep/N=11008,K=4096", &["m5pro"], 0.027021826933622362, Exact, Paper),
    row("GEMM floor (M=64,K=256,N=256)", COMPARISON_CHIPS, 0.001252285452716944, Exact, Users),
    row("GEMM bandwidth (M=128,K=1024,N=1024)", COMPARISON_CHIPS, 0.005521493491066958, Exact, Users),
    row("GEMM compute (M=256,K=4096,N=4096)", COMPARISON_CHIPS, 0.027275490149715163, Exact, Users),
    row("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=1", &["m4", "m5pro"], 0.005539185713959134, Exact, Paper),
    row("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=16", &["m4", "m5pro"], 0.005510041960589296, Exact, Paper),
    row("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=4", &["m5pro"], 0.00551049675543526, Exact, Paper),
    row("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=256", &["m5pro"], 0.005504351343981753, Exact, Paper),
    row("gemm (batched [B,M,K]@[K,N], M=128,K=1024,N=1024) B=64", &["m4", "m5pro"], 0.005510521011153194, Exact, Users),
    row("DFT-as-matmul (N=1024)", COMPARISON_CHIPS, 0.00035014059095186067, Exact, Users),
    row("conv/C=64,B=8", QUICK_DIRECT, 0.0003671660721200675, Exact, Users),
    row("conv/C=64,B=8", &["m2pro"], 0.00036719206236946063, Exact, Users),
    row("conv/C=64,B=8", &["m5", "m6"], 0.0005162338465671137, Exact, Users),
    row("conv/C=128,B=8", QUICK_DIRECT, 0.00037520404231831836, Exact, Users),
    row("conv/C=128,B=8", &["m2pro"], 0.0003751852371063253, Exact, Users),
    row("conv/C=128,B=8", &["m5", "m6"], 0.0005214500415248461, Exact, Users),
    row("conv/C=256,B=4", &["m1", "m1max"], 0.0003900783744201331, Exact, Users),
    row("conv/C=256,B=4", &["m2pro"], 0.0003901075540107346, Exact, Users),
    row("conv/C=512,B=2", &["m1", "m1max"], 0.0004190581983637061, Exact, Users),
    row("conv/C=512,B=2", &["m2pro"], 0.00041904779177991044, Exact, Users),
    row("conv/C=64,B=16", &["m4", "m4max"], 0.00036713452579315676, Exact, Users),
    row("conv/C=64,B=16", &["m5pro"], 0.0005134171098867606, Exact, Paper),
    row("conv/C=128,B=16", &["m4", "m4max"], 0.000373510899298669, Exact, Users),
    row("conv/C=128,B=16", &["m5pro"], 0.0005217801877804339, Exact, Paper),
    row("conv/C=256,B=8", &["m4", "m4max"], 0.00039034647589447895, Exact, Users),
    row("conv/C=256,B=8", &["m5pro"], 0.0005320349374792266, Exact, Paper),
    row("conv/C=512,B=4", &["m4"], 0.000418456590926874, Exact, Users),
    row("conv/C=512,B=4", &["m5pro"], 0.0005542261420426406, Exact, Paper),
    row("conv single (C=64,32x32,k=3,depth=1)", COMPARISON_DIRECT, 0.0003663655858424183, Exact, Users),
    row("conv single (C=64,32x32,k=3,depth=1)", &["m5pro"], 0.0005102488034377338, Exact, Users),
    row("conv resnet-ish (C=256,32x32,k=3,depth=16)", COMPARISON_DIRECT, 0.0014396985212474691, Exact, Users),
    row("conv resnet-ish (C=256,32x32,k=3,depth=16)", &["m5pro"], 0.003343217049092961, Exact, Users),
    row("conv stack (C=256,32x32,k=3,depth=16)", &["m5pro"], 0.003343217049092961, Exact, Paper),
    row("stencil 5pt (256x256, steps=32)", COMPARISON_DIRECT, 0.0014647346688676309, Exact, Users),
    row("stencil 5pt (256x256, steps=32)", &["m5pro"], 0.013931483142566859, Exact, Paper),
    row("Jacobi solve (n=512, iters=25)", &["m1", "m2"], 0.00039985988472345587, Close, Users),
    row("Jacobi solve (n=512, iters=25)", &["m4", "m5pro"], 0.0003998604341057898, Exact, Users),
    row("relu, short sweep [256,4096]", QUICK_CHIPS, 0.00020780100009547826, Exact, Users),
    row("relu, short sweep [2048,4096]", QUICK_CHIPS, 0.00020761950117413944, Exact, Users),
    row("relu, short sweep [8192,4096]", QUICK_CHIPS, 0.0002077222359444811, Exact, Users),
    row("relu, long sweep [64,4096]", FULL_CHIPS, 0.00020866909419798202, Exact, Users),
    row("relu, long sweep [256,4096]", FULL_CHIPS, 0.0002075605387374664, Exact, Users),
    row("relu, long sweep [1024,4096]", FULL_CHIPS, 0.00020754630129932424, Exact, Users),
    row("relu, long sweep [4096,4096]", &["m4", "m5pro"], 0.0002077403707006755, Exact, Users),
    row("relu, long sweep [8192,4096]", &["m4", "m5pro"], 0.00020770198411711478, Exact, Users),
    row("relu, long sweep [16384,4096]", &["m5pro"], 0.00020771373912650487, Exact, Paper),
    row("reduce_sum, short sweep [256,4096]", &["m1", "m1max", "m2pro"], 0.00072242209676, Modelled, Users),
    row("reduce_sum, short sweep [2048,4096]", &["m1max", "m2pro"], 0.00080921320723, Modelled, Users),
    row("reduce_sum, short sweep [8192,4096]", &["m1", "m1max"], 0.00081283900122, Modelled, Users),
    row("reduce_sum, short sweep [256,4096]", &["m4pro", "m5", "m6"], 0.00080791798749, Modelled, Users),
    row("reduce_sum, short sweep [2048,4096]", &["m4pro", "m5", "m6"], 0.00080717177112, Modelled, Users),
    row("reduce_sum, short sweep [8192,4096]", &["m4pro", "m5", "m6"], 0.00079753425633, Modelled, Users),
    row("softmax, short sweep [256,4096]", &["m1", "m2pro"], 0.00102406668, Modelled, Users),
    row("softmax, short sweep [256,4096]", &["m4pro", "m5", "m6"], 0.00102565276, Modelled, Users),
    row("gelu, short sweep [256,4096]", &["m1", "m1max", "m2max", "m4pro", "m5", "m6"], 0.00239912583998, Modelled, Users),
    row("gelu, short sweep [256,4096]", &["m2pro"], 0.00239912567866, Modelled, Users),
    row("layer_norm, short sweep [256,4096]", &["m1", "m2pro"], 0.000659937244, Modelled, Users),
    row("layer_norm, short sweep [256,4096]", &["m4pro", "m6"], 0.000663225739, Modelled, Users),
    row("layer_norm vit (197, 768)", &["m1", "m2"], 0.00066668254, Modelled, Users),
    row("layer_norm vit (197, 768)", &["m4", "m5pro"], 0.000672192495, Modelled, Users),
    row("rms_norm vit (197, 768)", &["m1", "m2"], 0.000557951916, Modelled, Users),
    row("rms_norm vit (197, 768)", &["m4"], 0.000582972746, Modelled, Users),
    row("rms_norm vit (197, 768)", &["m5pro"], 0.00056612516, Modelled, Users),
    row("attention vit (S=197,D=768,H=12)", &["m1", "m2"], 0.00157432039, Modelled, Users),
    row("attention vit (S=197,D=768,H=12)", &["m4", "m5pro"], 0.00162954181, Modelled, Users),
    row("gelu, long sweep [64,4096]", &["m4", "m5pro"], 0.0024077288650788567, Modelled, Paper),
    row("gelu, long sweep [256,4096]", &["m4", "m5pro"], 0.0023955107862632993, Modelled, Paper),
    row("gelu, long sweep [2048,4096]", &["m5pro"], 0.002399864679010996, Modelled, Paper),
    row("gelu, long sweep [4096,4096]", &["m5pro"], 0.0024024174412155303, Modelled, Paper),
    row("gelu, long sweep [8192,4096]", &["m4", "m5pro"], 0.0024034491677650187, Modelled, Paper),
    row("gelu, long sweep [16384,4096]", &["m4", "m5pro"], 0.0024015598368060226, Modelled, Paper),
    row("reduce_sum, long sweep [256,4096]", &["m4", "m5pro"], 0.0008192885359946541, Modelled, Paper),
    row("reduce_sum, long sweep [1024,4096]", &["m4", "m5pro"], 0.0008264193150660284, Modelled, Paper),
    row("reduce_sum, long sweep [4096,4096]", &["m4", "m5pro"], 0.0007985912455092107, Modelled, Paper),
    row("reduce_sum, long sweep [16384,4096]", &["m4", "m5pro"], 0.0007931689389407068, Modelled, Paper),
    row("softmax, long sweep [256,4096]", &["m4", "m5pro"], 0.0010302605562656905, Modelled, Paper),
    row("softmax, long sweep [1024,4096]", &["m4", "m5pro"], 0.001049640177421753, Modelled, Paper),
    row("softmax, long sweep [2048,4096]", &["m4", "m5pro"], 0.0010617395002181834, Modelled, Paper),
    row("softmax, long sweep [4096,4096]", &["m4", "m5pro"], 0.0010568058469969921, Modelled, Paper),
    row("softmax, long sweep [8192,4096]", &["m4", "m5pro"], 0.0010626917247173891, Modelled, Paper),
    row("layer_norm, long sweep [1024,4096]", &["m4", "m5pro"], 0.0006617711740545887, Modelled, Paper),
    row("layer_norm, long sweep [2048,4096]", &["m4", "m5pro"], 0.0006707525552265332, Modelled, Paper),
    row("layer_norm, long sweep [4096,4096]", &["m4", "m5pro"], 0.0006665799121390861, Modelled, Paper),
    row("layer_norm, long sweep [8192,4096]", &["m5pro"], 0.0006627977301943962, Modelled, Paper),
    row("layer_norm, long sweep [16384,4096]", &["m4", "m5pro"], 0.0006661524736704106, Modelled, Paper),
    row("vision (conv-stack->GAP->FC classifier) B=4", &["m5pro"], 0.0014858859374842306, Modelled, Paper),
    row("vision (conv-stack->GAP->FC classifier) B=4", &["m4"], 0.0007938075850277912, Modelled, Users),
    row("vision (conv-stack->GAP->FC classifier) B=16", &["m5pro"], 0.0014935684425516308, Modelled, Paper),
    row("vision (conv-stack->GAP->FC classifier) B=16", &["m4"], 0.0007851266828403182, Modelled, Users),
    row("vision (conv-stack->GAP->FC classifier) B=64", &["m5pro"], 0.0014952043002588332, Modelled, Paper),
    row("vision (conv-stack->GAP->FC classifier) B=64", &["m4"], 0.0007686683484564603, Modelled, Users),
    row("encoder (transformer block, S=128) B=1", &["m5pro"], 0.0020526640665177766, Modelled, Paper),
    row("encoder (transformer block, S=128) B=16", &["m4", "m5pro"], 0.0020352577818177685, Modelled, Paper),
    row("attention (self-attn block, S=128) B=1", &["m4", "m5pro"], 0.001500895026952376, Modelled, Paper),
    row("attention (self-attn block, S=128) B=16", &["m5pro"], 0.0014908496042203903, Modelled, Paper),
    row("attention longseq (S=512,D=768,H=12)", &["m1"], 0.002349398736464838, Modelled, Users),
    row("attention longseq (S=512,D=768,H=12)", &["m2"], 0.0023464806760607687, Modelled, Users),
    row("attention longseq (S=512,D=768,H=12)", &["m4"], 0.0023463584022740125, Modelled, Users),
    row("group_norm fmap (1, 256, 64, 64)", &["m1", "m2"], 0.0007409982149321947, Modelled, Users),
    row("group_norm fmap (1, 256, 64, 64)", &["m5pro"], 0.0007410157930155374, Modelled, Paper),
    row("gelu, short sweep [2048,4096]", &["m1", "m1max"], 0.0024010734360187464, Modelled, Users),
    row("gelu, short sweep [2048,4096]", &["m2pro"], 0.002401073282622596, Modelled, Users),
    row("softmax, short sweep [2048,4096]", &["m1", "m1max", "m2pro"], 0.0010582602743854563, Modelled, Users),
    row("softmax, short sweep [8192,4096]", &["m1", "m1max"], 0.0010575844059696365, Modelled, Users),
    row("softmax, short sweep [8192,4096]", &["m2pro"], 0.0010575844059423666, Modelled, Users),
    row("gelu, short sweep [8192,4096]", &["m1", "m1max"], 0.002402333254135391, Modelled, Users),
    row("gelu, short sweep [8192,4096]", &["m2pro"], 0.002402333092679968, Modelled, Users),
    row("gelu, long sweep [1024,4096]", &["m4", "m5pro"], 0.0024012110017771985, Modelled, Users),
    row("reduce_sum, long sweep [64,4096]", &["m4", "m5pro"], 0.0007592270061840784, Modelled, Users),
    row("reduce_sum, long sweep [8192,4096]", &["m4", "m5pro"], 0.0007879114968265977, Modelled, Users),
    row("softmax, long sweep [64,4096]", &["m4", "m5pro"], 0.0010453731724024647, Modelled, Users),
    row("vision (conv-stack->GAP->FC classifier) B=1", &["m4"], 0.000819941767500971, Modelled, Users),
    row("vision (conv-stack->GAP->FC classifier) B=1", &["m5pro"], 0.0015567585492832021, Modelled, Users),
    row("encoder (transformer block, S=128) B=4", &["m4", "m5pro"], 0.0020347474569521315, Modelled, Users),
    row("layer_norm, long sweep [64,4096]", &["m5pro"], 0.0006597042490412499, Modelled, Users),
    row("layer_norm, long sweep [256,4096]", &["m5pro"], 0.0006712269503326697, Modelled, Users),
    row("attention (self-attn block, S=128) B=4", &["m5pro"], 0.001481801219860619, Modelled, Users),
];
