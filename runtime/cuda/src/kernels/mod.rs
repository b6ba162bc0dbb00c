//! CUDA kernels, and the code that selects them. The CUDA C++ uses no headers, so NVRTC and any C++ compiler accept it.

mod attention;
mod best_logits;
mod cells;
mod collective;
mod expert_gemm;
mod expert_sum;
mod flash_attn;
mod flash_decode;
mod flash_prefill;
mod fused;
mod gemm;
mod gemv;
mod grouped_mul_mat;
mod hc_comb;
mod heads;
mod kernel;
mod lightning_indexer;
mod matmul;
mod merge_attn;
mod movement;
mod mul_mat_glu;
mod mul_mat_id_sum;
mod ngram_rows;
mod norm;
mod params;
mod pointwise;
mod pool_2d;
mod product;
mod product_template;
mod recorded;
mod recurrent;
mod reduce;
mod rope;
mod router;
mod row_source;
mod rows;
mod source;
mod weight_argument;

pub use best_logits::{BestMemory, BestRow, select_best_logits};
pub use collective::select_collective;
pub use expert_sum::ExpertBias;
pub use fused::{FusedOp, WideForm, select_fused};
pub use gemm::Halves;
pub use heads::{Head, Heads};
pub use kernel::{Geometry, Kernel, Request, Scratch, Tensor, Unsupported};

pub use mul_mat_id_sum::MAX_SUMMED_EXPERTS;
pub use norm::MAX_ALL_REDUCE_WIDTH;
pub use product::Terms;
pub use recorded::InstanceRecord;
pub use router::{MAX_ROUTED_EXPERTS, Router, Scores, WeightAxis, WeightNorm};
pub use row_source::{KeepInput, RowSource};
pub use source::{Instance, Source, modules};
pub use weight_argument::WeightArgument;

use tpc_ir::op::MulMatId;
use tpc_ir::{DType, Op, RANK};

use kernel::Selection;

/// The prelude of every module: types, macros and intrinsics. Only the prelude contains PTX; the emulator defines the
/// same names in C++.
pub const PRELUDE: &str = include_str!("prelude.cuh");

/// Selects the kernel of an op.
///
/// # Errors
///
/// Returns [`Unsupported`] for leaves, collectives, and types that kernels cannot read or write.
pub fn select(op: &Op, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    select_unfused(op, request).map_err(|reason| unsupported(op.name(), request, reason))
}

/// Selects the kernel that quantises activations to [`Terms`], for products with weights in planes.
///
/// # Errors
///
/// Returns [`Unsupported`] if the activations are not floats.
pub fn select_terms(request: &Request<'_>) -> Result<Kernel, Unsupported> {
    product::terms(request).map_err(|reason| unsupported("terms", request, reason))
}

/// Selects the kernel that converts activations to [`Halves`], for products of many columns.
///
/// # Errors
///
/// Returns [`Unsupported`] if the activations are not floats.
pub fn select_halves(request: &Request<'_>) -> Result<Kernel, Unsupported> {
    gemm::halves(request).map_err(|reason| unsupported("halves", request, reason))
}

/// Selects the kernel that orders the entries of expert products of many tokens. Operands: the weight in planes and the
/// expert indices.
///
/// # Errors
///
/// Returns [`Unsupported`] for types that are no indices, and for too many experts.
pub fn select_expert_order(op: &MulMatId, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let chosen = expert_gemm::expert_order(op, request);
    chosen.map_err(|reason| unsupported("expert_order", request, reason))
}

/// Selects the kernel that adds the expert products of many tokens for [`FusedOp::MulMatIdSum`], with the same operands.
///
/// # Errors
///
/// Returns [`Unsupported`] for other ops and for types that kernels cannot read or write.
pub fn select_sum_entries(fused: &FusedOp, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let chosen = match fused {
        FusedOp::MulMatIdSum(op, biased, more) => {
            expert_gemm::sum_entries(op, (*biased, *more), request)
        }
        _ => Err("only a weighted sum of experts adds entries"),
    };
    chosen.map_err(|reason| unsupported("sum_entries", request, reason))
}

/// True if expert products with these indices read [`Halves`] and ordered entries.
pub fn orders_experts(ids: &Tensor) -> bool {
    expert_gemm::is_wide(ids)
}

/// True if products of this form read [`Halves`] of these activations.
pub fn reads_halves(form: WideForm, activations: &Tensor) -> bool {
    match form {
        WideForm::Columns => gemm::is_wide(activations),
        WideForm::Experts => activations.max_dims[2] > gemm::MAX_ORDERED_COLUMNS,
    }
}

fn unsupported(op: &'static str, request: &Request<'_>, reason: &'static str) -> Unsupported {
    let types = |tensors: &[Tensor]| tensors.iter().map(|t| t.dtype).collect();
    Unsupported {
        op,
        operands: types(request.operands),
        results: types(request.results),
        reason,
    }
}

fn select_planes(op: &Op, request: &Request<'_>) -> Selection {
    match op {
        Op::MulMat(_) => product::mul_mat(request),
        Op::MulMatId(op) => product::mul_mat_id(op, request),
        Op::GetRows(op) => product::get_rows(op, request),
        _ => Err("the op does not read weights in planes"),
    }
}

fn select_unfused(op: &Op, request: &Request<'_>) -> Selection {
    if product::in_planes(request) {
        return select_planes(op, request);
    }
    match op {
        Op::Weight(_) | Op::Input(_) | Op::State(_) => Err("a leaf has a buffer and no kernel"),
        Op::Opaque(_) => Err("tpc runs opaque ggml ops on the CPU only"),
        Op::Hadamard(op) => movement::hadamard(op, request),
        Op::Arange(op) => movement::arange(op, request),
        Op::Unary(op) => pointwise::unary(op, request),
        Op::LeakyRelu(op) => pointwise::leaky_relu(op, request),
        Op::Xielu(op) => pointwise::xielu(op, request),
        Op::Fill(op) => pointwise::fill(op, request),
        Op::Binary(op) => pointwise::binary(op, request),
        Op::Scale(op) => pointwise::scale(op, request),
        Op::Clamp(op) => pointwise::clamp(op, request),
        Op::Cast(_) => pointwise::cast(request),
        Op::Glu(op) => pointwise::glu(op, request),
        Op::Norm(op) => norm::norm(op, request),
        Op::NormStats(op) => norm::norm_stats(op, request),
        Op::NormApply(op) => norm::norm_apply(op, request),
        Op::MulMat(_) => matmul::mul_mat(request),
        Op::MulMatId(op) => matmul::mul_mat_id(op, request),
        Op::AddId(op) => rows::add_id(op, request),
        Op::GetRows(op) => rows::get_rows(op, request),
        Op::SetRows(op) => rows::set_rows(op, request),
        Op::SetSlice(op) => rows::set_slice(op, request),
        Op::Rope(op) => rope::rope(op, request),
        Op::SoftMax(op) => attention::soft_max(op, request),
        Op::FlashAttn(op) => flash_attn::flash_attn(op, request),
        Op::MergeAttn(_) => merge_attn::merge_attn(request),
        Op::SsmConv(_) => recurrent::ssm_conv(request),
        Op::SsmScan(_) => recurrent::ssm_scan(request),
        Op::GatedDeltaNet(_) => recurrent::gated_delta_net(request),
        Op::Wkv(_) => recurrent::wkv(request),
        Op::LightningIndexer(_) => lightning_indexer::lightning_indexer(request),
        Op::NgramRows(op) => ngram_rows::ngram_rows(op, request),
        Op::HcComb(op) => hc_comb::hc_comb(op, request),
        Op::Sum(op) => reduce::sum(op, request),
        Op::Mean(_) => reduce::mean(request),
        Op::Cumsum(_) => reduce::cumsum(request),
        Op::TopK(_) => reduce::top_k(request),
        Op::TopMask(op) => reduce::top_mask(op, request),
        Op::TopKMask(op) => reduce::top_k_mask(*op, request),
        Op::ArgSort(op) => reduce::arg_sort(op, request),
        Op::Reshape(_) | Op::Copy(_) => movement::flatten(request),
        Op::Permute(op) => movement::permute(op, request),
        Op::Slice(op) => movement::slice(op, request),
        Op::Concat(op) => movement::concat(op, request),
        Op::Repeat(_) => movement::repeat(request),
        Op::Pad(op) => movement::pad(op, request),
        Op::Tri(op) => movement::tri(op, request),
        Op::Diag(_) => movement::diag(request),
        Op::Pool2d(op) => pool_2d::pool_2d(op, request),
        Op::AllReduce(_) | Op::AllGather(_) | Op::ReduceScatter(_) | Op::AllToAll(_) => {
            Err("the request has one device of a collective")
        }
    }
}

fn axis(n: u64) -> Result<usize, &'static str> {
    usize::try_from(n)
        .ok()
        .filter(|&a| a < RANK)
        .ok_or("the axis is out of range")
}

fn writable(dtype: DType) -> Result<(), &'static str> {
    match dtype {
        DType::F32
        | DType::F16
        | DType::Bf16
        | DType::Q8_0
        | DType::Q4_0
        | DType::Q4_1
        | DType::Q5_0
        | DType::Q5_1
        | DType::Iq4Nl => Ok(()),
        _ => Err("kernels cannot write blocks of this type"),
    }
}
