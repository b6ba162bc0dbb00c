use std::f32::consts::{LN_2, LOG2_E};

use tpc_ir::op::{Clamp, FlashAttn, InputKind, Unary, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::indexer;
use super::kv_cache::{self, CacheKind};
use super::mask::visible_cells;
use super::norm;
use super::qk_norm::{Heads, QUERIES, heads};
use super::rotation::Rotation;
use super::{adapters, own_value, token_values, value_experts};
use crate::description::{
    Direction, GateWidth, OutGate, Presence, QkvForm, ScaleOn, TemperatureForm, ValueNorm,
    ValueSource,
};
use crate::error::ArchError;
use crate::hparams::{HeadElements, LayerFfn, Reach, RopeUse, WindowSpan};
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Projections of a layer's input, `[heads · head size, n_tokens]` each.
struct Qkv {
    q: Value,
    /// `None` in layers that share another layer's caches.
    kv: Option<[Value; 2]>,
}

/// Returns attention's output, `[n_embd, n_tokens]`.
pub(crate) fn attention(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    let form = &cx.model.arch.attention;
    let (hp, layer) = (cx.model.hparams, cx.layer);
    let qkv = project(b, cx, x)?;
    let queries = Heads {
        norm: QUERIES,
        other_norm: "attn_k_norm",
        width: layer.q_width,
        other_width: layer.k_width,
        count: layer.n_head,
        name: "Qcur",
    };
    let keys = Heads {
        norm: queries.other_norm,
        other_norm: queries.norm,
        width: queries.other_width,
        other_width: queries.width,
        count: layer.n_head_kv,
        name: "Kcur",
    };
    let (q, gate) = out_gate(b, cx, qkv.q)?;
    let mut q = heads(b, cx, q, &queries)?;
    if form.scale_on == ScaleOn::Queries {
        q = b.scale(q, layer.attention_scale, "Qcur_scaled")?;
    }
    q = apply_temperature(b, cx, q)?;
    let new = match qkv.kv {
        Some([k, v]) => Some([heads(b, cx, k, &keys)?, values(b, cx, x, v)?]),
        None => None,
    };
    let scale = match form.scale_on {
        ScaleOn::Logits => layer.attention_scale,
        ScaleOn::Queries => 1.0,
    };
    let attending = AttendOptions {
        sizes: layer.heads,
        selected: indexer::mask(b, cx, x, None)?,
        scale,
    };
    let y = attend_to_new(b, cx, q, new, attending)?;
    let y = match new {
        Some([_, v]) => own_value::subtract(b, cx, y, v)?,
        None => y,
    };
    let y = match form.out_norm {
        ValueNorm::None => y,
        ValueNorm::Head => norm::without_weight(b, &cx.model, y, "kqv_normed")?,
    };
    let y = apply_gate(b, cx, x, y, layer.heads.dv)?;
    let mut y = b.reshape(y, [layer.out_width.n.into(), b.n_tokens()], "kqv_out")?;
    if let Some(gate) = gate {
        y = b.mul(y, gate, "kqv_gated")?;
    }
    let (sizes, role) = ([layer.out_width, hp.embd()], TensorRole::Matrix);
    let heads = y;
    let y = b.linear("attn_output", y, sizes, form.out_bias, role, "attn_out")?;
    let y = adapters::add(b, cx, "attn_output", sizes, heads, y)?;
    match hp.attention.value_scale {
        Some(scale) => b.scale(y, scale, "attn_out_scaled"),
        None => Ok(y),
    }
}

/// Returns the values per head, `[head size, heads, n_tokens]`, after their optional norm.
fn values(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    v: Value,
) -> Result<Value, ArchError> {
    let layer = cx.layer;
    let dims = [layer.heads.dv.into(), layer.n_head_kv.into(), b.n_tokens()];
    let v = b.reshape(v, dims, "Vcur")?;
    let v = token_values::add(b, cx, x, v)?;
    match cx.model.arch.attention.value_norm {
        ValueNorm::None => Ok(v),
        ValueNorm::Head => norm::without_weight(b, &cx.model, v, "Vcur_normed"),
    }
}

/// Multiplies queries by the layer's factor that grows with the position, if any.
pub(super) fn apply_temperature(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    q: Value,
) -> Result<Value, ArchError> {
    let form = cx.model.arch.attention.temperature;
    let of_unrotated = matches!(
        form,
        TemperatureForm::Unrotated { .. } | TemperatureForm::UnrotatedPower { .. }
    );
    let temperature = cx.model.hparams.attention.temperature;
    let temperature = temperature.filter(|_| !of_unrotated || cx.layer.rope == RopeUse::Unrotated);
    let Some(temperature) = temperature else {
        return Ok(q);
    };
    let temperature = b.input(InputKind::Temperature(temperature));
    b.mul(q, temperature, "Qcur_tempered")
}

#[derive(Clone, Copy)]
pub(super) struct AttendOptions {
    pub(super) sizes: HeadElements,
    /// Mask of selected cells; `None` for all visible cells.
    pub(super) selected: Option<Value>,
    pub(super) scale: f32,
}

/// Stores the `new` keys and values, `[d, heads, n_tokens]` each, and returns attention to the caches, `[dv, heads,
/// n_tokens]`. If `new` is `None`, attends to another layer's caches.
pub(super) fn attend_to_new(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    mut q: Value,
    new: Option<[Value; 2]>,
    form: AttendOptions,
) -> Result<Value, ArchError> {
    let AttendOptions {
        sizes,
        selected,
        scale,
    } = form;
    let caches = match cx.model.arch.attention.direction {
        Direction::Causal => true,
        Direction::Bidirectional | Direction::BidirectionalByKey => false,
    };
    if let (Some([k, v]), false) = (new, caches) {
        let k = b.swap_heads(k, "k")?;
        let v = b.swap_heads(v, "v")?;
        let mask = b.input(match (cx.layer.reach, cx.model.hparams.attention.window) {
            (Reach::Window, Some(WindowSpan::Near(n))) => InputKind::MaskBatchNear(n),
            _ => InputKind::MaskBatch,
        });
        return attend(b, cx, [q, k, v], mask, scale);
    }
    let options = cx.model.options;
    let key_rotation = Rotation::for_keys(options.cache_type_k, sizes.dk);
    let value_rotation = Rotation::for_values(options.cache_type_v, sizes.dv);
    if let Some(rotation) = key_rotation {
        q = rotation.apply(b, q, "Qcur_rot")?;
    }
    let [k, v] = match new {
        Some([mut k, mut v]) => {
            if let Some(rotation) = key_rotation {
                k = rotation.apply(b, k, "Kcur_rot")?;
            }
            if let Some(rotation) = value_rotation {
                v = rotation.apply(b, v, "Vcur_rot")?;
            }
            let k = kv_cache::store(b, cx, CacheKind::Keys, k)?;
            let v = kv_cache::store(b, cx, CacheKind::Values, v)?;
            b.note_caches(cx.layer.index, [k, v]);
            [k, v]
        }
        None => b.caches_of(cx.layer),
    };
    let mask = selected.unwrap_or_else(|| visible_cells(b, cx));
    let y = attend(b, cx, [q, k, v], mask, scale)?;
    match value_rotation {
        Some(rotation) => rotation.apply(b, y, "kqv_rot"),
        None => Ok(y),
    }
}

/// Attends with `q: [dk, heads, n_tokens]` to `k: [dk, n_kv, n_head_kv]` and `v: [dv, n_kv, n_head_kv]`. The result is
/// `[dv, heads, n_tokens]`.
pub(super) fn attend(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    [q, k, v]: [Value; 3],
    mask: Value,
    scale: f32,
) -> Result<Value, ArchError> {
    let (hp, layer) = (cx.model.hparams, cx.layer);
    let q = b.swap_heads(q, "q")?;
    let mut operands = vec![q, k, v, mask];
    let sinks = b.tensor_name("attn_sinks", "weight");
    let n_head = Size {
        n: layer.n_head,
        from: "attention.head_count",
    };
    let presence = cx.model.arch.attention.sinks;
    operands.extend(b.optional(&sinks, &[n_head], TensorRole::Sinks, presence)?);
    let flash = FlashAttn {
        scale,
        max_bias: hp.attention.max_alibi_bias,
        softcap: hp.attention.softcap,
        heads: None,
        lse: false,
    };
    b.push(flash, operands, "kqv")
}

/// Returns the queries, and the output gate if `attn_q` holds one.
fn out_gate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    q: Value,
) -> Result<(Value, Option<Value>), ArchError> {
    match cx.model.arch.attention.out_gate {
        OutGate::None | OutGate::Projected(..) | OutGate::Softplus2(..) => return Ok((q, None)),
        OutGate::WithQueries => {}
    }
    let layer = cx.layer;
    let HeadElements { dk, dv } = layer.heads;
    let both = [(dk + dv).into(), layer.n_head.into(), b.n_tokens()];
    let x = b.reshape(q, both, "Qcur_full")?;
    let q = b.slice(x, 0, 0, dk.into(), "Qcur")?;
    let gate = b.slice(x, 0, dk, dv.into(), "gate")?;
    let gate = b.reshape(gate, [layer.out_width.n.into(), b.n_tokens()], "gate")?;
    let kind = UnaryKind::Sigmoid;
    let gate = b.push(Unary { kind }, vec![gate], "gate_sigmoid")?;
    Ok((q, Some(gate)))
}

/// Multiplies the heads `y: [dv, heads, n_tokens]` by the optional gate that `attn_gate` projects from `x`.
pub(super) fn apply_gate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    y: Value,
    dv: u64,
) -> Result<Value, ArchError> {
    const TENSOR: &str = "attn_gate";
    let heads = cx.layer.n_head;
    let (kind, width, presence) = match cx.model.arch.attention.out_gate {
        OutGate::None | OutGate::WithQueries => return Ok(y),
        OutGate::Projected(kind, width, presence) => (Some(kind), width, presence),
        OutGate::Softplus2(width, presence) => (None, width, presence),
    };
    let weight = b.tensor_name(TENSOR, "weight");
    let each = match width {
        GateWidth::Heads => 1,
        GateWidth::Elements => dv,
        GateWidth::HeadsOrElements => match b.columns(&weight) {
            Some(columns) if columns != heads => dv,
            _ => 1,
        },
    };
    let from = "attention.head_count × the gate's numbers per head";
    let sizes = [cx.model.hparams.embd(), Size::product(heads, each, from)?];
    let Some(weight) = b.optional(&weight, &sizes, TensorRole::Matrix, presence)? else {
        return Ok(y);
    };
    let gate = b.mul_mat(weight, x, "attn_gate")?;
    let mut gate = b.reshape(gate, [each.into(), heads.into(), b.n_tokens()], "attn_gate")?;
    let bias = b.tensor_name(TENSOR, "bias");
    let per_head = [Size::new(heads, "attention.head_count")];
    let presence = cx.model.arch.attention.gate_bias;
    if let Some(bias) = b.optional(&bias, &per_head, TensorRole::Bias, presence)? {
        let bias = b.reshape(bias, [Dim::ONE, heads.into()], "attn_gate_bias")?;
        gate = b.add(gate, bias, "attn_gate_biased")?;
    }
    let gate = match kind {
        Some(kind) => b.push(Unary { kind }, vec![gate], "attn_gate_act")?,
        None => {
            let gate = b.scale(gate, LN_2, "attn_gate_natural")?;
            let gate = b.unary(&[UnaryKind::Softplus], gate, "attn_gate_act")?;
            b.scale(gate, LOG2_E, "attn_gate_act")?
        }
    };
    b.mul(y, gate, "attn_gated")
}

fn clamp(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Value, ArchError> {
    match cx.model.hparams.attention.qkv_clamp {
        Some(max) => b.push(Clamp { min: -max, max }, vec![x], "qkv_clamped"),
        None => Ok(x),
    }
}

fn project(b: &mut Builder<'_>, cx: &LayerContext<'_>, x: Value) -> Result<Qkv, ArchError> {
    let form = &cx.model.arch.attention;
    let (embd, layer) = (cx.model.hparams.embd(), cx.layer);
    let (fused, separate) = match form.qkv {
        QkvForm::Separate => (Form::Unusual, Form::Usual),
        QkvForm::Fused | QkvForm::FusedThirds => (Form::Usual, Form::Unusual),
    };
    let has_fused = b.offers(&b.tensor_name("attn_qkv", "weight"), fused);
    let has_separate = b.offers(&b.tensor_name("attn_q", "weight"), separate);
    let one = |b: &mut Builder<'_>, tensor, width, name| {
        let (sizes, role) = ([embd, width], TensorRole::Matrix);
        let y = b.linear(tensor, x, sizes, form.qkv_bias, role, name)?;
        let y = match tensor {
            "attn_qkv" => y,
            _ => adapters::add(b, cx, tensor, sizes, x, y)?,
        };
        clamp(b, cx, y)
    };
    if layer.kv_from.is_some() {
        let q = one(b, "attn_q", layer.q_width, "Qcur")?;
        return Ok(Qkv { q, kv: None });
    }
    // If the file has neither form, the error names the tensors of the usual form.
    if has_fused || (form.qkv != QkvForm::Separate && !has_separate) {
        let y = one(b, "attn_qkv", layer.qkv_width, "wqkv")?;
        let (q, k, v) = (layer.q_projected.n, layer.k_width.n, layer.v_width.n);
        let [keys, values] = match form.qkv {
            QkvForm::FusedThirds => [embd.n, 2 * embd.n],
            QkvForm::Separate | QkvForm::Fused => [q, q + k],
        };
        let mut part = |start, len: u64, name| b.slice(y, 0, start, Dim::constant(len), name);
        let [q, k, v] = [
            part(0, q, "Qcur")?,
            part(keys, k, "Kcur")?,
            part(values, v, "Vcur")?,
        ];
        return Ok(Qkv {
            q: adapters::add(b, cx, "attn_q", [embd, layer.q_projected], x, q)?,
            kv: Some([
                adapters::add(b, cx, "attn_k", [embd, layer.k_width], x, k)?,
                adapters::add(b, cx, "attn_v", [embd, layer.v_width], x, v)?,
            ]),
        });
    }
    let q = one(b, "attn_q", layer.q_projected, "Qcur")?;
    let k = one(b, "attn_k", layer.k_width, "Kcur")?;
    let routed = cx.model.hparams.attention.value_experts.as_ref();
    let v = match (routed, layer.ffn) {
        (Some(hp), Some(LayerFfn::Experts(_))) => value_experts::values(b, cx, hp, x)?,
        _ if has_values(b, cx)? => one(b, "attn_v", layer.v_width, "Vcur")?,
        _ => k,
    };
    let kv = Some([k, v]);
    Ok(Qkv { q, kv })
}

/// True if a layer projects values. Otherwise keys serve as values, and both must have the same size.
fn has_values(b: &mut Builder<'_>, cx: &LayerContext<'_>) -> Result<bool, ArchError> {
    let (embd, layer) = (cx.model.hparams.embd(), cx.layer);
    let presence = match cx.model.arch.attention.value_source {
        ValueSource::ProjectedOrKeys if layer.k_width.n == layer.v_width.n => Presence::Optional,
        ValueSource::ProjectedOrKeys
        | ValueSource::Projected
        | ValueSource::RoutedBesideExperts => Presence::Required,
    };
    let name = b.tensor_name("attn_v", "weight");
    let sizes = [embd, layer.v_width];
    Ok(b.find(&name, &sizes, TensorRole::Matrix, presence)?
        .is_some())
}
