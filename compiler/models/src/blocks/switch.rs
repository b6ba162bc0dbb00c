//! Low-rank adapters that tokens switch on. Attention with one head finds the switch in a sequence: it reads the switches'
//! numbers, because their logits are much higher than the other tokens'.

use tpc_ir::op::{
    Arange, Binary, BinaryKind, Clamp, GetRows, InputKind, Pad, Repeat, TopK, UnaryKind,
};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::attention::{self, AttendOptions};
use super::builder::Builder;
use super::context::{Context, LayerContext};
use super::table;
use crate::error::ArchError;
use crate::hparams::{AdapterHParams, LayerHParams};

/// If a sequence has two switches, the mean of their numbers may lie halfway between two adapters. llama.cpp rounds such a
/// mean up, because the share of the other tokens vanishes in f32.
const TIE: f32 = 1.0 / 8192.0;

/// Replaces the embeddings `x: [n_embd, n_tokens]` of tokens that switch adapters, and records each token's adapter.
pub(crate) fn switch(b: &mut Builder<'_>, cx: &Context<'_>, x: Value) -> Result<Value, ArchError> {
    let (Some(hp), Some(first)) = (&cx.hparams.adapters, cx.hparams.layers.first()) else {
        return Ok(x);
    };
    let Some(marks) = marks(b, cx, hp)? else {
        let none = none_active(b, x)?;
        let ids = ids(b, hp, none)?;
        b.note_adapters(ids);
        return Ok(x);
    };
    let x = substitute(b, cx, hp, &marks, x)?;
    let slots = active(b, cx, hp, &marks, first)?;
    let ids = ids(b, hp, slots)?;
    b.note_adapters(ids);
    Ok(x)
}

/// Returns a row of zeros for the tokens of `x`, `[1, n_tokens]`.
fn none_active(b: &mut Builder<'_>, x: Value) -> Result<Value, ArchError> {
    let first = b.slice(x, 0, 0, Dim::ONE, "adapter_none")?;
    b.scale(first, 0.0, "adapter_none")
}

/// Returns for each switch 1 at its tokens and 0 elsewhere, `[1, n_tokens]`; `None` without switches.
fn marks(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &AdapterHParams,
) -> Result<Option<Vec<Value>>, ArchError> {
    const NAME: &str = "adapter_mark";
    if hp.switches.is_empty() {
        return Ok(None);
    }
    let numbers = numbers(b, cx.hparams.n_vocab, NAME)?;
    let numbers = b.reshape(numbers, [Dim::ONE, cx.hparams.n_vocab.into()], NAME)?;
    let tokens = b.input(InputKind::Tokens);
    let ids = b.push(GetRows { window: None }, vec![numbers, tokens], NAME)?;
    let marks = hp.switches.iter().map(|switch| {
        let distance = b.line(ids, 1.0, -(switch.token as f32), NAME)?;
        let distance = b.unary(&[UnaryKind::Abs], distance, NAME)?;
        let near = b.line(distance, -1.0, 1.0, NAME)?;
        b.unary(&[UnaryKind::Relu], near, NAME)
    });
    marks.collect::<Result<Vec<_>, _>>().map(Some)
}

/// Returns the numbers 0 to `n - 1`, `[n]`.
fn numbers(b: &mut Builder<'_>, n: u64, name: &str) -> Result<Value, ArchError> {
    let op = Arange {
        start: 0.0,
        step: 1.0,
        n: n.into(),
        held: None,
    };
    b.push(op, Vec::new(), name)
}

/// Replaces the embeddings of switches by those of their substitutes.
fn substitute(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &AdapterHParams,
    marks: &[Value],
    x: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "adapter_substitute";
    let mut any: Option<Value> = None;
    let mut rows: Option<Value> = None;
    let table = table::table(b, cx)?;
    let numbers = numbers(b, cx.hparams.n_vocab, NAME)?;
    for (switch, &mark) in hp.switches.iter().zip(marks) {
        // The number with the least distance is the substitute's id.
        let distance = b.line(numbers, 1.0, -(switch.substitute as f32), NAME)?;
        let distance = b.unary(&[UnaryKind::Abs, UnaryKind::Neg], distance, NAME)?;
        let id = b.push(TopK { k: 1 }, vec![distance], NAME)?;
        let row = b.push(GetRows { window: None }, vec![table, id], NAME)?;
        let row = b.reshape(row, [Dim::ONE, cx.hparams.n_embd.into()], NAME)?;
        let row = b.mul_mat(row, mark, NAME)?;
        any = Some(sum(b, any, mark, NAME)?);
        rows = Some(sum(b, rows, row, NAME)?);
    }
    let (Some(any), Some(rows)) = (any, rows) else {
        return Ok(x);
    };
    let kept = b.line(any, -1.0, 1.0, NAME)?;
    let x = b.mul(x, kept, NAME)?;
    let rows = table::scale(b, cx, rows)?;
    b.add(x, rows, "inp_switched")
}

fn sum(
    b: &mut Builder<'_>,
    before: Option<Value>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match before {
        None => Ok(x),
        Some(before) => b.add(before, x, name),
    }
}

/// Returns the number of each token's adapter, not rounded, `[1, n_tokens]`.
fn active(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    hp: &AdapterHParams,
    marks: &[Value],
    first: &LayerHParams,
) -> Result<Value, ArchError> {
    const NAME: &str = "adapter_router";
    let (mut any, mut slots) = (None, None);
    for (&mark, slot) in marks.iter().zip(1_u16..) {
        let slot = b.scale(mark, f32::from(slot), NAME)?;
        any = Some(sum(b, any, mark, NAME)?);
        slots = Some(sum(b, slots, slot, NAME)?);
    }
    let (any, slots) = any.zip(slots).expect("invariant: there are switches");
    let gain = b.line(any, 2.0 * hp.gain, -hp.gain, NAME)?;
    let one = b.line(any, 0.0, 1.0, NAME)?;
    let index = u32::try_from(cx.hparams.n_layer_all).unwrap_or(u32::MAX);
    let layer = LayerHParams {
        index,
        n_head: 1,
        n_head_kv: 1,
        kv_from: None,
        ..*first
    };
    let cx = LayerContext {
        model: *cx,
        layer: &layer,
    };
    let heads = layer.heads;
    b.enter(Some(first));
    let [q, k, v] = [(one, heads.dk), (gain, heads.dk), (slots, heads.dv)].map(|(x, d)| {
        let x = b.reshape(x, [Dim::ONE, Dim::ONE, b.n_tokens()], NAME)?;
        let pad = Pad {
            axis: 0,
            before: 0,
            after: d.saturating_sub(1),
        };
        b.push(pad, vec![x], NAME)
    });
    let options = AttendOptions {
        sizes: heads,
        selected: None,
        scale: 1.0,
    };
    let y = attention::attend_to_new(b, &cx, q?, Some([k?, v?]), options)?;
    let y = b.slice(y, 0, 0, Dim::ONE, NAME)?;
    let y = b.reshape(y, [Dim::ONE, b.n_tokens()], NAME)?;
    let y = b.line(y, 1.0, TIE, NAME)?;
    b.enter(None);
    Ok(y)
}

/// Returns the nearest adapters to the numbers `slots: [1, n_tokens]`, as ids `[1, n_tokens]`.
fn ids(b: &mut Builder<'_>, hp: &AdapterHParams, slots: Value) -> Result<Value, ArchError> {
    const NAME: &str = "adapter_ids";
    let n = hp.slots.n;
    let bounds = Clamp {
        min: 0.0,
        max: (n - 1) as f32,
    };
    let slots = b.push(bounds, vec![slots], NAME)?;
    let slots = b.unary(&[UnaryKind::Round], slots, NAME)?;
    let dims = TensorType::new(DType::F32, [n.into(), b.n_tokens()]).dims;
    let slots = b.push(Repeat { dims }, vec![slots], NAME)?;
    let numbers = numbers(b, n, NAME)?;
    let kind = BinaryKind::Sub;
    let distance = b.push(Binary { kind }, vec![slots, numbers], NAME)?;
    let near = b.unary(&[UnaryKind::Abs, UnaryKind::Neg], distance, NAME)?;
    b.push(TopK { k: 1 }, vec![near], NAME)
}
