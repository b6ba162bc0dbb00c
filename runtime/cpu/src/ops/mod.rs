//! The kernel of every op, one file per family.

mod attention;
mod attention_tile;
mod binary;
mod convolution;
mod delta_rule;
mod elementwise;
mod expert;
mod foreign;
mod glu;
mod hyper;
mod indexer;
mod matmul;
mod merge_attn;
mod movement;
mod ngram;
mod norm;
mod order;
mod pointwise;
mod pool;
mod position;
mod reduce;
mod rope;
mod rows;
mod scan;
mod slopes;
mod soft_max;
mod top_k_mask;
mod update;
mod wkv;

pub(crate) use pointwise::each_chunk;
pub(crate) use rows::windowed;

use tpc_ir::{Dim, Op, RANK};

use crate::launch::{Request, Selected};

pub(crate) fn select(op: &Op, request: &Request<'_>) -> Selected {
    match op {
        Op::Weight(_) | Op::Input(_) | Op::State(_) => Err("a leaf is a buffer and has no kernel"),
        Op::Opaque(op) => foreign::foreign(op, request),
        Op::Hadamard(op) => position::hadamard(op, request),
        Op::Arange(op) => position::arange(op, request),
        Op::Unary(op) => elementwise::unary(op, request),
        Op::LeakyRelu(op) => elementwise::leaky_relu(op, request),
        Op::Xielu(op) => elementwise::xielu(op, request),
        Op::Fill(op) => elementwise::fill(op, request),
        Op::Binary(op) => binary::binary(op, request),
        Op::Scale(op) => elementwise::scale(op, request),
        Op::Clamp(op) => elementwise::clamp(op, request),
        Op::Cast(_) => elementwise::cast(request),
        Op::Glu(op) => glu::glu(op, request),
        Op::Norm(op) => norm::norm(op, request),
        Op::NormStats(op) => norm::norm_stats(op, request),
        Op::NormApply(op) => norm::norm_apply(op, request),
        Op::MulMat(_) => matmul::mul_mat(request),
        Op::MulMatId(op) => matmul::mul_mat_id(op, request),
        Op::AddId(op) => expert::add_id(op, request),
        Op::GetRows(op) => rows::get_rows(op, request),
        Op::SetRows(op) => update::set_rows(op, request),
        Op::SetSlice(op) => update::set_slice(op, request),
        Op::Rope(op) => rope::rope(op, request),
        Op::SoftMax(op) => soft_max::soft_max(op, request),
        Op::FlashAttn(op) => attention::flash_attn(op, request),
        Op::MergeAttn(_) => merge_attn::merge_attn(request),
        Op::SsmConv(_) => convolution::ssm_conv(request),
        Op::SsmScan(_) => scan::ssm_scan(request),
        Op::GatedDeltaNet(_) => delta_rule::gated_delta_net(request),
        Op::Wkv(_) => wkv::wkv(request),
        Op::LightningIndexer(_) => indexer::lightning_indexer(request),
        Op::NgramRows(op) => ngram::ngram_rows(op, request),
        Op::HcComb(op) => hyper::hc_comb(op, request),
        Op::Sum(op) => reduce::sum(op, request),
        Op::Mean(op) => reduce::mean(op, request),
        Op::Cumsum(_) => reduce::cumsum(request),
        Op::TopK(op) => order::top_k(op, request),
        Op::TopMask(op) => order::top_mask(op, request),
        Op::TopKMask(op) => top_k_mask::top_k_mask(*op, request),
        Op::ArgSort(op) => order::arg_sort(op, request),
        Op::Reshape(_) | Op::Copy(_) => movement::flatten(request),
        Op::Permute(op) => movement::permute(op.axes, request),
        Op::Slice(op) => movement::slice(op.axis, op.start.as_const(), request),
        Op::Concat(op) => movement::concat(op, request),
        Op::Repeat(_) => movement::repeat(request),
        Op::Pad(op) => movement::pad(op, request),
        Op::Tri(op) => position::tri(op, request),
        Op::Diag(_) => position::diag(request),
        Op::Pool2d(op) => pool::pool_2d(op, request),
        Op::AllReduce(_) | Op::AllGather(_) | Op::ReduceScatter(_) | Op::AllToAll(_) => {
            Err("a collective cannot run on one device")
        }
    }
}

/// Returns the op's attribute that sizes its kernel. Other sizes come from views.
pub fn size_of(op: &Op) -> Option<&Dim> {
    match op {
        Op::Slice(op) => Some(&op.start),
        Op::SetSlice(op) => Some(&op.start),
        Op::Mean(op) => Some(&op.n),
        _ => None,
    }
}

fn axis(n: u64) -> Result<usize, &'static str> {
    usize::try_from(n)
        .ok()
        .filter(|&a| a < RANK)
        .ok_or("the axis does not exist")
}
