//! Embeddings of n-grams. A hash of a token and the tokens before it selects rows of a table. One layer's residual
//! streams gate the rows. A convolution along time follows, and the result is added to the streams.

use tpc_ir::op::{Arange, Clamp, GetRows, InputKind, NgramRows, Sum, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::hyper;
use super::recurrent::conv;
use crate::error::ArchError;
use crate::hparams::{HyperHParams, NgramHParams};
use crate::size::Size;
use crate::source::TensorRole;

/// Adds the n-gram embeddings to the streams `x: [n_embd, streams, n_tokens]`, in the layer that reads them.
pub(super) fn add(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    streams: &HyperHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let hp = match &cx.model.hparams.embedding.ngrams {
        Some(hp) if hp.layer == cx.layer.index => hp,
        Some(_) | None => return Ok(x),
    };
    let found = embeddings(b, cx, hp)?;
    let gated = gated_values(b, cx, streams, [found, x], hp)?;
    let y = convolve(b, cx, streams, hp, gated)?;
    let y = b.add(gated, y, "ple_out")?;
    b.add(x, y, "l_inp_ple")
}

/// Returns the rows of the n-grams that end with each token, `[width, n_tokens]`.
fn embeddings(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &NgramHParams,
) -> Result<Value, ArchError> {
    let rows = GetRows { window: None };
    // Token ids plus 1; 0 marks a missing token.
    let numbers = Arange::new(1.0, 1.0, cx.model.hparams.n_vocab.into());
    let numbers = b.push(numbers, Vec::new(), "ple_ids")?;
    let dims = [Dim::ONE, cx.model.hparams.n_vocab.into()];
    let numbers = b.reshape(numbers, dims, "ple_ids")?;
    let tokens = b.input(InputKind::Tokens);
    let ids = b.push(rows.clone(), vec![numbers, tokens], "ple_ids")?;
    let before = hp.hash.factors.len() as u64 - 1;
    let ids = conv::window(b, cx, "cache_ngrams", [before, 1], ids)?.all;
    let [steps, _, seqs, _] = b.dims(ids).clone();
    let ids = b.reshape(ids, [steps, seqs], "ple_ids")?;
    let hash: NgramRows = hp.hash.clone();
    let tables = hash.tables.len() as u64;
    let index = b.push(hash, vec![ids], "ple_rows")?;
    let all = Dim::constant(tables).checked_mul(&b.n_tokens());
    let all = all.ok_or(ArchError::Overflow {
        what: "the rows of all n-grams of a batch",
        of: tables.to_string(),
    })?;
    let index = b.reshape(index, [all], "ple_rows")?;
    const TABLE: &str = "per_layer_token_embd.weight";
    let least = hp.rows;
    // Converters pad the table.
    let rows_of_file = b.columns(TABLE).filter(|&n| n >= least.n);
    let height = Size {
        n: rows_of_file.unwrap_or(least.n),
        ..least
    };
    let table = b.require(TABLE, &[hp.dim, height], TensorRole::Embedding)?;
    let found = b.push(rows, vec![table, index], "ple_embd")?;
    b.reshape(found, [hp.width.n.into(), b.n_tokens()], "ple_embd")
}

/// Returns the embeddings' values, once per stream and multiplied by the stream's gate, `[n_embd, streams, n_tokens]`.
fn gated_values(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    streams: &HyperHParams,
    [found, x]: [Value; 2],
    hp: &NgramHParams,
) -> Result<Value, ArchError> {
    let (model, embd) = (&cx.model, cx.model.hparams.embd());
    let sizes = [hp.width, streams.width];
    let key = b.project("ple_key", found, sizes, "ple_key")?;
    let dims = [embd.n.into(), streams.streams.n.into(), b.n_tokens()];
    let key = b.reshape(key, dims, "ple_key")?;
    let key = hyper::stream_norm(b, model, streams, "ple_norm_key", key)?;
    let query = hyper::stream_norm(b, model, streams, "ple_norm_query", x)?;
    let product = b.mul(key, query, "ple_score")?;
    let score = b.push(Sum { axis: 0 }, vec![product], "ple_score")?;
    let score = b.scale(score, 1.0 / (embd.n as f32).sqrt(), "ple_score")?;
    // Computes the signed root of the score.
    let sign = b.unary(&[UnaryKind::Sgn], score, "ple_sign")?;
    let size = b.unary(&[UnaryKind::Abs], score, "ple_size")?;
    let bounds = Clamp {
        min: 1e-6,
        max: f32::INFINITY,
    };
    let size = b.push(bounds, vec![size], "ple_size")?;
    let size = b.unary(&[UnaryKind::Sqrt], size, "ple_size")?;
    let gate = b.mul(sign, size, "ple_gate")?;
    let gate = b.unary(&[UnaryKind::Sigmoid], gate, "ple_gate")?;
    let sizes = [hp.width, embd];
    let value = b.project("ple_value", found, sizes, "ple_value")?;
    let value = hyper::repeat_streams(b, model, streams, value, "ple_value")?;
    b.mul(value, gate, "ple_gated")
}

/// Returns the dilated convolution along time of each stream's norm, `[n_embd, streams, n_tokens]`.
fn convolve(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    streams: &HyperHParams,
    hp: &NgramHParams,
    gated: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "ple_conv";
    let width = streams.width;
    let x = hyper::stream_norm(b, &cx.model, streams, "ple_norm_conv", gated)?;
    let x = b.reshape(x, [width.n.into(), b.n_tokens()], NAME)?;
    let earlier = (hp.taps.n - 1) * hp.dilation;
    let steps = conv::window(b, cx, "cache_ple", [earlier, width.n], x)?;
    let taps = b.tensor_name("ple_conv1d", "weight");
    let taps = b.require(&taps, &[hp.taps, width], TensorRole::Taps)?;
    let mut sum: Option<Value> = None;
    for tap in 0..hp.taps.n {
        let step = conv::step(b, &steps, tap * hp.dilation, NAME)?;
        let factor = b.slice(taps, 0, tap, Dim::ONE, NAME)?;
        let term = b.mul(step, factor, NAME)?;
        sum = Some(match sum {
            None => term,
            Some(before) => b.add(before, term, NAME)?,
        });
    }
    let sum = sum.expect("invariant: a convolution has taps");
    let y = b.unary(&[UnaryKind::Silu], sum, "ple_conv_silu")?;
    let y = conv::flat(b, y, width.n, NAME)?;
    let dims = [
        cx.model.hparams.n_embd.into(),
        streams.streams.n.into(),
        b.n_tokens(),
    ];
    b.reshape(y, dims, NAME)
}
