//! From the residual stream to logits.

use tpc_ir::Value;
use tpc_ir::op::{GetRows, InputKind, Unary, UnaryKind};

use super::builder::Builder;
use super::embedding::{table, vocabulary};
use super::{Context, norm};
use crate::arch::error::ArchError;
use crate::arch::source::TensorRole;

/// The logits `[n_vocab, n_outputs]` of the tokens that they are wanted of.
pub(in crate::arch) fn logits(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "result_output";
    let form = &cx.arch.head;
    let rows = b.input(InputKind::OutputRows);
    let x = b.push(GetRows { window: None }, vec![x, rows], "result_rows")?;
    let x = norm::stream(b, cx, form.norm, x, "result_norm")?;
    let sizes = [cx.hparams.embd(), vocabulary(cx)];
    let output = b.optional("output.weight", &sizes, TensorRole::Output, form.output)?;
    let output = match output {
        Some(output) => output,
        None => table(b, cx)?,
    };
    let mut x = b.mul_mat(output, x, NAME)?;
    x = b.biased("output", x, vocabulary(cx), form.bias, NAME)?;
    if let Some(scale) = cx.hparams.logit_scale {
        x = b.scale(x, scale, NAME)?;
    }
    if let Some(cap) = cx.hparams.final_softcap {
        let kind = UnaryKind::Tanh;
        x = b.scale(x, 1.0 / cap, "result_scaled")?;
        x = b.push(Unary { kind }, vec![x], "result_bounded")?;
        x = b.scale(x, cap, NAME)?;
    }
    Ok(x)
}
