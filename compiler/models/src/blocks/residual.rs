//! Residual streams that attend to streams kept by earlier layers.

use tpc_ir::op::{Concat, SoftMax};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::Context;
use super::kept_stream::KeptStream;
use super::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::source::TensorRole;

pub(super) fn keep(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<(), ArchError> {
    let normed = norm::without_weight(b, cx, x, "res_kept")?;
    b.keep(KeptStream { raw: x, normed });
    Ok(())
}

/// Mixes `x` and the kept streams, weighted by the scores of `tensor`. Returns `x` itself without kept streams.
pub(crate) fn mix_streams(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    x: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "res_mixed";
    let mut parts = b.kept_streams().to_vec();
    let score = b.tensor_name(tensor, "weight");
    let sizes = [cx.hparams.embd()];
    if parts.is_empty() {
        b.find(&score, &sizes, TensorRole::Router, Presence::Required)?;
        return Ok(x);
    }
    let score = b.require(&score, &sizes, TensorRole::Router)?;
    parts.push(KeptStream {
        raw: x,
        normed: norm::without_weight(b, cx, x, "res_norm")?,
    });
    let mut scores: Option<Value> = None;
    for part in &parts {
        let one = b.mul_mat(score, part.normed, "res_score")?;
        scores = Some(match scores {
            None => one,
            Some(before) => b.push(Concat { axis: 0 }, vec![before, one], "res_scores")?,
        });
    }
    let scores = scores.expect("invariant: there is a part");
    let weights = b.push(SoftMax::with_scale(1.0), vec![scores], "res_weights")?;
    let mut sum: Option<Value> = None;
    for (i, part) in (0..).zip(&parts) {
        let weight = b.slice(weights, 0, i, Dim::ONE, "res_weight")?;
        let term = b.mul(part.raw, weight, NAME)?;
        sum = Some(match sum {
            None => term,
            Some(before) => b.add(before, term, NAME)?,
        });
    }
    Ok(sum.expect("invariant: there is a part"))
}
