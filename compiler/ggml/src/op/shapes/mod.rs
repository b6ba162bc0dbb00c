//! The rules that ggml's builders assert: types, sizes and parameters of every op.
//!
//! A graph that was read from a message or a file did not pass through a builder, and ggml's kernels rely on the
//! builders. The rules were read from `ggml.c` of ggml 0.28. Indices that are data cannot be checked here; kernels check
//! them when they run.

mod arithmetic;
mod attention;
mod image;
mod movement;
mod products;
mod recurrent;
mod training;

use tpc_ir::{DType, RANK};

use super::table::OpKind;

/// Type, sizes and strides of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The element type.
    pub dtype: DType,
    /// The sizes.
    pub ne: [u64; RANK],
    /// The strides in bytes.
    pub nb: [u64; RANK],
}

impl Shape {
    /// Returns the number of elements; `None` on overflow.
    fn elements(&self) -> Option<u64> {
        self.ne.iter().try_fold(1_u64, |n, &x| n.checked_mul(x))
    }

    fn is_row(&self) -> bool {
        self.ne[1..] == [1, 1, 1]
    }

    fn is_matrix(&self) -> bool {
        self.ne[2..] == [1, 1]
    }

    /// True if rows are contiguous.
    fn has_dense_rows(&self) -> bool {
        self.ne[0] <= self.dtype.block_len() || self.nb[0] == self.dtype.block_bytes()
    }

    fn is_packed(&self) -> bool {
        let mut step = self.dtype.block_bytes();
        for i in 0..RANK {
            let n = if i == 0 {
                self.ne[0] / self.dtype.block_len()
            } else {
                self.ne[i]
            };
            if n != 1 && self.nb[i] != step {
                return false;
            }
            step = step.saturating_mul(n);
        }
        true
    }

    /// True if copies of this tensor fill a tensor of sizes `ne`.
    fn repeats_to(&self, ne: [u64; RANK]) -> bool {
        self.ne
            .iter()
            .zip(ne)
            .all(|(&own, all)| is_multiple(all, own))
    }
}

/// True if `all` is a multiple of `part`. Only 0 is a multiple of 0.
const fn is_multiple(all: u64, part: u64) -> bool {
    match all.checked_rem(part) {
        Some(rest) => rest == 0,
        None => all == 0,
    }
}

/// An op with its result and its sources.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// The op.
    pub op: OpKind,
    /// ggml's `op_params`.
    pub params: &'a [i32],
    /// The result.
    pub result: Shape,
    /// The sources by position; `None` if absent.
    pub sources: &'a [Option<Shape>],
}

/// A rule that does not hold, as text: `ids has type f32, not i32`.
type Rule = Result<(), String>;

impl Node<'_> {
    /// Checks the rules of the op.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let present = self.sources.iter().flatten().count();
        let least = self.op.facts().least_sources;
        if present < least {
            return Err(format!("it has {present} sources, not {least}"));
        }
        check(self)
    }

    fn param(&self, at: usize) -> i64 {
        self.params.get(at).copied().unwrap_or(0).into()
    }

    /// Returns a parameter that may not be negative.
    fn size(&self, at: usize, name: &str) -> Result<u64, String> {
        let n = self.param(at);
        u64::try_from(n).map_err(|_| format!("parameter {name} is {n}"))
    }

    /// Returns a parameter that must be positive.
    fn positive(&self, at: usize, name: &str) -> Result<u64, String> {
        match self.size(at, name)? {
            0 => Err(format!("parameter {name} is 0")),
            n => Ok(n),
        }
    }

    fn source(&self, at: usize) -> Result<&Shape, String> {
        self.optional(at)
            .ok_or_else(|| format!("source {at} is missing"))
    }

    fn optional(&self, at: usize) -> Option<&Shape> {
        self.sources.get(at).and_then(Option::as_ref)
    }

    /// Checks the sizes of the result.
    fn makes(&self, ne: [u64; RANK]) -> Rule {
        equal("the result", self.result.ne, ne)
    }

    /// Checks type and sizes of the result.
    fn makes_type(&self, dtype: DType, ne: [u64; RANK]) -> Rule {
        has_type("the result", &self.result, &[dtype])?;
        self.makes(ne)
    }
}

fn equal(what: &str, found: [u64; RANK], expected: [u64; RANK]) -> Rule {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what} has sizes {found:?}, not {expected:?}")),
    }
}

fn has_type(what: &str, t: &Shape, allowed: &[DType]) -> Rule {
    if allowed.contains(&t.dtype) {
        return Ok(());
    }
    let names: Vec<&str> = allowed.iter().map(|d| d.name()).collect();
    Err(format!(
        "{what} has type {}, not {}",
        t.dtype,
        names.join(" or ")
    ))
}

/// `what` is a statement about the sizes that does not hold.
fn require(holds: bool, what: &str) -> Rule {
    match holds {
        true => Ok(()),
        false => Err(what.to_owned()),
    }
}

/// Declares [`check`] from lines `Op | Op => rule;`.
macro_rules! rules {
    ($($($kind:ident)|+ => $rule:path;)*) => {
        /// Checks the rule of the node's op.
        fn check(node: &Node<'_>) -> Rule {
            match node.op {
                $($(OpKind::$kind)|+ => $rule(node),)*
            }
        }
    };
}

rules! {
    None => none;
    Add | Sub | Mul | Div => arithmetic::binary;
    AddId => arithmetic::add_id;
    Add1 => arithmetic::add1;
    Acc => movement::accumulate;
    Set => movement::set;
    Dup | Sqr | Sqrt | Log | Sin | Cos | Clamp | LeakyRelu | Abs | Sgn | Neg | Step | Tanh | Elu | Relu | Sigmoid
    | Gelu | GeluQuick | Silu | Hardswish | Hardsigmoid | Exp | Expm1 | Softplus | GeluErf | Xielu | Floor | Ceil
    | Round | Trunc | Norm | RmsNorm | L2Norm | GroupNorm | Scale | DiagMaskInf | DiagMaskZero
        => arithmetic::same;
    Cumsum => arithmetic::cumsum;
    Tri => arithmetic::tri;
    Fill => arithmetic::fill;
    Reglu | Geglu | Swiglu | SwigluOai | GegluErf | GegluQuick | SwigluClamp => arithmetic::gated;
    Sum => arithmetic::sum;
    SumRows => arithmetic::sum_rows;
    Mean => arithmetic::mean;
    Argmax => arithmetic::argmax;
    Argsort => arithmetic::argsort;
    TopK => arithmetic::top_k;
    CountEqual => arithmetic::count_equal;
    Arange => arithmetic::arange;
    TimestepEmbedding => arithmetic::timestep_embedding;
    Repeat => movement::repeat;
    RepeatBack => movement::repeat_back;
    Concat => movement::concat;
    Cpy => movement::copy;
    Cont => movement::cont;
    Reshape => movement::reshape;
    View => movement::view;
    Permute => movement::permute;
    Transpose => movement::transpose;
    GetRows => movement::get_rows;
    GetRowsBack => movement::get_rows_back;
    SetRows => movement::set_rows;
    Diag => movement::diag;
    Pad => movement::pad;
    PadReflect1d => movement::pad_reflect;
    Roll => movement::roll;
    MulMat => products::mul_mat;
    MulMatId => products::mul_mat_id;
    OutProd => products::out_prod;
    SolveTri => products::solve_tri;
    SoftMax => attention::soft_max;
    Rope | RopeBack => attention::rope;
    FlashAttnExt => attention::flash_attn;
    LightningIndexer => attention::lightning_indexer;
    TopKMask => attention::top_k_mask;
    GetRelPos => attention::get_rel_pos;
    AddRelPos => attention::add_rel_pos;
    SsmConv => recurrent::ssm_conv;
    SsmScan => recurrent::ssm_scan;
    RwkvWkv6 => recurrent::rwkv_wkv6;
    RwkvWkv7 => recurrent::rwkv_wkv7;
    GatedLinearAttn => recurrent::gated_linear_attn;
    GatedDeltaNet => recurrent::gated_delta_net;
    Dsv4HcComb => recurrent::hc_comb;
    Dsv4HcPre => recurrent::hc_pre;
    Dsv4HcPost => recurrent::hc_post;
    ConvTranspose1d => image::conv_transpose_1d;
    ConvTranspose2d => image::conv_transpose_2d;
    Im2col => image::im2col;
    Im2colBack => image::im2col_back;
    Im2col3d => image::im2col_3d;
    Col2im1d => image::col2im_1d;
    Conv2d => image::conv_2d;
    Conv3d => image::conv_3d;
    Conv2dDw => image::conv_2d_dw;
    Pool1d => image::pool_1d;
    Pool2d => image::pool_2d;
    Pool2dBack => image::pool_2d_back;
    Upscale => image::upscale;
    WinPart => image::win_part;
    WinUnpart => image::win_unpart;
    SiluBack | RmsNormBack | SoftMaxBack => training::same_shapes;
    FlashAttnBack => training::flash_attn_back;
    CrossEntropyLoss => training::cross_entropy_loss;
    CrossEntropyLossBack => training::cross_entropy_loss_back;
    OptStepAdamw => training::opt_step_adamw;
    OptStepSgd => training::opt_step_sgd;
    Unary | Glu => group;
    MapCustom1 | MapCustom2 | MapCustom3 | Custom => client_function;
}

fn none(_: &Node<'_>) -> Rule {
    Ok(())
}

fn group(_: &Node<'_>) -> Rule {
    Err("its kind is unknown".to_owned())
}

fn client_function(_: &Node<'_>) -> Rule {
    Err("it calls a function of the client's process".to_owned())
}

#[cfg(test)]
mod tests;
