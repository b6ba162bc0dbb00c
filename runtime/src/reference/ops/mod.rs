//! The ops as functions from tensors to tensors, one file per family.
//!
//! [`eval`] checks operands by type inference ([`Op::infer`] on constant sizes). The other functions only check that
//! indices are in range.

mod attention;
mod collective;
mod curve;
mod elementwise;
mod expert;
mod ggml;
mod hyper;
mod indexer;
mod leaf;
mod matmul;
mod ngram;
mod norm;
mod pool;
mod position;
mod recurrent;
mod reduce;
mod rope;
mod rows;
mod shape;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod top_k_mask;
mod wkv;

use tpc_ir::op::{InferredTypes, Op};
use tpc_ir::{Bindings, Interval, RANK, TensorType};

pub use ggml::{UnknownOps, knows};
pub(super) use leaf::load_weight;

use crate::error::ExecError;
use crate::tensor::{Shape, Tensor};

/// Evaluation of GELU's tanh form and GELU-quick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gelu {
    /// ggml's CPU table: f16 input and output, 0 up to −10, the identity from 10 on.
    #[default]
    GgmlTable,
    /// The formula in f64.
    Exact,
}

/// Options outside the graph that affect results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Evaluation of GELU and GEGLU in the tanh and quick forms.
    pub gelu: Gelu,
    /// Treatment of ggml's ops that tpc does not know.
    pub unknown: UnknownOps,
}

/// Inputs of [`eval`] besides operands.
#[derive(Clone, Copy, Debug)]
pub struct OpContext<'a> {
    /// Values of symbols in attributes.
    pub bindings: &'a Bindings,
    /// Evaluation options.
    pub options: Options,
}

/// Evaluates `op` on `operands`. Results must have the shapes `results`; real results are f64.
///
/// For a collective, `operands` and `results` have one entry per participant.
///
/// # Errors
/// Returns an error if operands do not fit the op, an index is out of range, or results have other shapes.
pub fn eval(
    op: &Op,
    operands: &[&Tensor],
    results: &[Shape],
    ctx: &OpContext<'_>,
) -> Result<Vec<Tensor>, ExecError> {
    let op = &shape::concrete(op, ctx.bindings)?;
    let types: Vec<TensorType> = operands.iter().map(|t| t.constant_type()).collect();
    let types: Vec<&TensorType> = types.iter().collect();
    if let Op::Opaque(op) = op {
        let [result] = results else {
            return Err(ExecError::Malformed {
                what: "an op of ggml has one result".into(),
            });
        };
        return ggml::eval(op, operands, *result, ctx.options.unknown).map(|t| vec![t]);
    }
    let InferredTypes::Types(inferred) = op.infer(&types)? else {
        return Err(ExecError::Leaf { op: op.name() });
    };
    if inferred.len() != results.len() {
        return Err(ExecError::Malformed {
            what: format!(
                "the op has {} results, {} are declared",
                inferred.len(),
                results.len()
            ),
        });
    }
    for (ty, declared) in inferred.iter().zip(results) {
        let found = Shape::of(ty, ctx.bindings)?.dims;
        if found != declared.dims {
            return Err(ExecError::Shape {
                what: "the result".into(),
                expected: declared.dims,
                found,
            });
        }
    }
    let one = |t: Result<Tensor, ExecError>| t.map(|t| vec![t]);
    match op {
        Op::Weight(_) | Op::Input(_) | Op::State(_) | Op::Opaque(_) => leaf::eval(op),
        Op::Hadamard(op) => one(leaf::hadamard(op)),
        Op::Arange(op) => one(leaf::arange(op, results[0].dims)),
        Op::Unary(op) => one(elementwise::unary(op, operands, ctx.options)),
        Op::LeakyRelu(op) => one(curve::leaky_relu(op, operands)),
        Op::Xielu(op) => one(curve::xielu(op, operands)),
        Op::Fill(op) => one(curve::fill(op, operands)),
        Op::Binary(op) => one(elementwise::binary(op, operands)),
        Op::Scale(op) => one(elementwise::scale(op, operands)),
        Op::Clamp(op) => one(elementwise::clamp(op, operands)),
        Op::Cast(op) => one(elementwise::cast(op, operands)),
        Op::Glu(op) => one(elementwise::glu(op, operands, ctx.options)),
        Op::Norm(op) => one(norm::norm(op, operands)),
        Op::NormStats(op) => one(norm::norm_stats(op, operands)),
        Op::NormApply(op) => one(norm::norm_apply(op, operands)),
        Op::MulMat(_) => one(matmul::mul_mat(operands)),
        Op::MulMatId(op) => one(expert::mul_mat_id(op, operands)),
        Op::AddId(op) => one(expert::add_id(op, operands)),
        Op::GetRows(op) => one(rows::get_rows(op, operands)),
        Op::SetRows(op) => one(rows::set_rows(op, operands, results[0].dtype)),
        Op::SetSlice(op) => one(rows::set_slice(
            op,
            operands,
            results[0].dtype,
            ctx.bindings,
        )),
        Op::Rope(op) => one(rope::rope(op, operands)),
        Op::SoftMax(op) => one(attention::soft_max(op, operands)),
        Op::FlashAttn(op) => one(attention::flash_attn(op, operands)),
        Op::MergeAttn(_) => one(attention::merge_attn(operands)),
        Op::SsmConv(_) => one(recurrent::ssm_conv(operands, results[0].dims)),
        Op::SsmScan(_) => recurrent::ssm_scan(operands),
        Op::GatedDeltaNet(_) => recurrent::gated_delta_net(operands),
        Op::Wkv(_) => wkv::wkv(operands),
        Op::Sum(op) => one(reduce::sum(op, operands)),
        Op::Mean(op) => one(reduce::mean(op, operands)),
        Op::Cumsum(_) => one(position::cumsum(operands)),
        Op::LightningIndexer(_) => one(indexer::lightning_indexer(operands)),
        Op::NgramRows(op) => one(ngram::ngram_rows(op, operands)),
        Op::HcComb(op) => one(hyper::hc_comb(op, operands)),
        Op::TopK(op) => one(reduce::top_k(op, operands)),
        Op::TopMask(op) => one(reduce::top_mask(op, operands)),
        Op::TopKMask(op) => one(top_k_mask::top_k_mask(*op, operands)),
        Op::ArgSort(op) => one(reduce::arg_sort(op, operands)),
        Op::Reshape(_) => one(Tensor::new(results[0].dims, operands[0].data().clone())),
        Op::Permute(op) => one(shape::permute(op, operands)),
        Op::Slice(op) => one(shape::slice(op, operands, ctx.bindings)),
        Op::Concat(op) => one(shape::concat(op.axis, operands)),
        Op::Repeat(_) => one(shape::repeat(operands, results[0].dims)),
        Op::Pad(op) => one(shape::pad(op, operands)),
        Op::Tri(op) => one(position::tri(op, operands)),
        Op::Diag(_) => one(position::diag(operands)),
        Op::Pool2d(op) => one(pool::pool_2d(op, operands, results[0].dims)),
        Op::Copy(_) => one(Ok(operands[0].clone())),
        Op::AllReduce(_) => collective::all_reduce(operands),
        Op::AllGather(op) => collective::all_gather(op, operands),
        Op::ReduceScatter(op) => collective::reduce_scatter(op, operands),
        Op::AllToAll(op) => collective::all_to_all(op, operands),
    }
}

fn axis(n: u64) -> Result<usize, ExecError> {
    usize::try_from(n)
        .ok()
        .filter(|&a| a < RANK)
        .ok_or(ExecError::Type(tpc_ir::op::TypeError::Axis(n)))
}

fn index(what: &'static str, index: i64, bound: usize) -> Result<usize, ExecError> {
    usize::try_from(index)
        .ok()
        .filter(|&i| i < bound)
        .ok_or(ExecError::Index { what, index, bound })
}

/// Returns an index read from data, relative to the start of `window`; `None` outside the window. Without a window, the
/// index must be below `bound`.
fn windowed(
    what: &'static str,
    value: i64,
    window: Option<Interval>,
    bound: usize,
) -> Result<Option<usize>, ExecError> {
    let Some(window) = window else {
        return index(what, value, bound).map(Some);
    };
    let global = index(what, value, usize::MAX)? as u64;
    let local = global.checked_sub(window.start).filter(|&i| i < window.len);
    Ok(local.map(|i| i as usize))
}

fn rank_at_most(rank: usize, what: &str, t: &Tensor) -> Result<(), ExecError> {
    if t.dims()[rank..].iter().all(|&d| d == 1) {
        return Ok(());
    }
    Err(ExecError::Parameter {
        what: format!("{what} has sizes {:?}: the op knows {rank} axes", t.dims()),
    })
}

/// Returns the number of elements before, along and after `axis`.
fn around(dims: [usize; RANK], axis: usize) -> (usize, usize, usize) {
    (
        dims[..axis].iter().product(),
        dims[axis],
        dims[axis + 1..].iter().product(),
    )
}
