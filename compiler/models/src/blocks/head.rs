use tpc_ir::Value;
use tpc_ir::op::{Concat, Fill, GetRows, InputKind, Scale, Unary, UnaryKind};

use super::builder::Builder;
use super::context::Context;
use super::norm;
use super::table::{table, vocabulary};
use crate::description::{ModelResult, Presence};
use crate::error::ArchError;
use crate::source::TensorRole;

const NAME: &str = "result_output";

/// Returns the output tokens' logits, `[n_vocab, n_outputs]`, from the last layer's output `x: [n_embd, n_tokens]`.
pub(crate) fn logits(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    let x = output_columns(b, x, "result_rows")?;
    let x = norm::output(b, cx, x, "result_norm")?;
    project(b, cx, x)
}

/// Tensors that apply to the pooled embedding of a text.
const AFTER_POOLING: [&str; 7] = [
    "cls.weight",
    "cls.bias",
    "cls.norm.weight",
    "cls.output.weight",
    "cls.output.bias",
    "dense_2.weight",
    "dense_3.weight",
];

/// Returns the output tokens' embeddings, `[numbers, n_outputs]`, from the last layer's output `x: [n_embd, n_tokens]`.
pub(crate) fn embeddings(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let x = output_columns(b, x, "result_rows")?;
    let x = norm::output(b, cx, x, "result_norm")?;
    for tensor in AFTER_POOLING {
        b.ignore(tensor);
    }
    if cx.arch.head.result != ModelResult::Projected {
        b.ignore("output.weight");
        return Ok(x);
    }
    let sizes = [cx.hparams.embd(), cx.hparams.n_out];
    b.project("output", x, sizes, "result_embd")
}

pub(super) fn output_columns(
    b: &mut Builder<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let rows = b.input(InputKind::OutputRows);
    b.push(GetRows { window: None }, vec![x, rows], name)
}

/// Returns the logits of normalised columns, with the model's projection.
pub(super) fn project(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    let form = &cx.arch.head;
    let sizes = [cx.hparams.embd(), vocabulary(cx)];
    let output = b.optional("output.weight", &sizes, TensorRole::Output, form.output)?;
    let output = match output {
        Some(output) => output,
        None => table(b, cx)?,
    };
    let x = b.mul_mat(output, x, NAME)?;
    let bias = |b: &mut Builder<'_>| b.add_bias("output", x, vocabulary(cx), form.bias, NAME);
    let x = b.with_model_tensors(bias)?;
    scale_logits(b, cx, x)
}

/// Returns the logits of normalised columns, with this tensor's matrix, if the file has it.
pub(super) fn projected_by(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    tensor: &str,
    x: Value,
) -> Result<Option<Value>, ArchError> {
    let name = b.tensor_name(tensor, "weight");
    let sizes = [cx.hparams.embd(), vocabulary(cx)];
    let own = b.optional(&name, &sizes, TensorRole::Output, Presence::Optional)?;
    let Some(own) = own else {
        return Ok(None);
    };
    let x = b.mul_mat(own, x, NAME)?;
    scale_logits(b, cx, x).map(Some)
}

fn scale_logits(b: &mut Builder<'_>, cx: &Context<'_>, mut x: Value) -> Result<Value, ArchError> {
    if let Some(scale) = cx.hparams.logits.scale {
        x = b.scale(x, scale, NAME)?;
    }
    if let Some(cap) = cx.hparams.logits.softcap {
        let kind = UnaryKind::Tanh;
        x = b.scale(x, 1.0 / cap, "result_scaled")?;
        x = b.push(Unary { kind }, vec![x], "result_bounded")?;
        x = b.scale(x, cap, NAME)?;
    }
    if let Some([height, shift, width]) = cx.hparams.logits.sigmoid {
        let line = Scale {
            scale: 1.0 / width,
            bias: shift / width,
        };
        x = b.push(line, vec![x], "result_scaled")?;
        x = b.unary(&[UnaryKind::Sigmoid], x, "result_bounded")?;
        x = b.scale(x, height, NAME)?;
    }
    match cx.arch.head.hidden {
        Some(tokens) => hide(b, cx, tokens, x),
        None => Ok(x),
    }
}

/// Gives the tokens from `start` on, up to `end`, the lowest logit.
fn hide(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    [start, end]: [u64; 2],
    x: Value,
) -> Result<Value, ArchError> {
    const PARTS: &str = "result_parts";
    let n_vocab = cx.hparams.n_vocab;
    let end = end.min(n_vocab);
    if start >= end {
        return Ok(x);
    }
    let first = b.slice(x, 0, 0, start.into(), PARTS)?;
    let hidden = b.slice(x, 0, start, (end - start).into(), PARTS)?;
    let hidden = b.push(Fill { value: f32::MIN }, vec![hidden], PARTS)?;
    let x_of = |b: &mut Builder<'_>, parts, name| b.push(Concat { axis: 0 }, parts, name);
    if end == n_vocab {
        return x_of(b, vec![first, hidden], NAME);
    }
    let last = b.slice(x, 0, end, (n_vocab - end).into(), PARTS)?;
    let joined = x_of(b, vec![first, hidden], PARTS)?;
    x_of(b, vec![joined, last], NAME)
}
