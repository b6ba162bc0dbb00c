use tpc_ir::op::{
    Arange, Binary, BinaryKind, Clamp, GetRows, InputKind, Repeat, SoftMax, Sum, TopK, UnaryKind,
};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::builder::Builder;
use super::context::LayerContext;
use super::norm;
use crate::description::{ExpertForm, Gating, Presence, SelectedBy};
use crate::error::ArchError;
use crate::hparams::{ExpertHParams, GroupExperts, Groups};
use crate::size::Size;
use crate::source::TensorRole;

/// Lower bound of a sum of weights: 2⁻¹⁴, the smallest normal f16.
const LEAST_SUM: f32 = 6.103_515_6e-5;

/// Penalty on a group's experts, per unit of score below the last selected group. For any two different f32 scores, the
/// penalty excludes the experts of the lower group. The largest difference still gives finite numbers.
const EXCLUSION: f32 = 1e30;

/// Number of best expert scores whose sum is a group's score.
const GROUP_BEST: u64 = 2;

pub(super) struct Routing {
    /// Expert ids, `[n_used, n_tokens]`.
    pub(super) ids: Value,
    /// Expert weights, `[1, n_used, n_tokens]`.
    pub(super) weights: Value,
    /// Selection scores of all experts, `[n_expert, n_tokens]`.
    scores: Value,
    /// Weights of all experts, `[1, n_expert, n_tokens]`.
    all: Value,
}

pub(super) fn expert_count(hp: &ExpertHParams) -> Size {
    Size {
        n: hp.count,
        from: "expert_count",
    }
}

/// Returns the router's input `[n_embd, n_tokens]`: the normalised `x`, divided by the root of its width, and times
/// `ffn_gate_inp.scale`.
pub(super) fn scaled_input(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "ffn_moe_router_in";
    let embd = cx.model.hparams.embd();
    let x = norm::without_weight(b, &cx.model, x, NAME)?;
    let x = b.scale(x, (1.0 / (embd.n as f64).sqrt()) as f32, NAME)?;
    let scale = b.tensor_name("ffn_gate_inp", "scale");
    let scale = b.require(&scale, &[embd], TensorRole::Scale)?;
    b.mul(x, scale, NAME)
}

/// Multiplies the weights of a token's experts by the experts' factors, if the file has any.
pub(super) fn scale_outputs(
    b: &mut Builder<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    routing: Routing,
) -> Result<Routing, ArchError> {
    const NAME: &str = "ffn_moe_output_scale";
    let scale = b.tensor_name("ffn_down_exps", "scale");
    let sizes = [expert_count(hp)];
    let Some(scale) = b.optional(&scale, &sizes, TensorRole::Scale, form.output_scale)? else {
        return Ok(routing);
    };
    let (rows, used): (Dim, Dim) = (hp.count.into(), hp.used.into());
    let rows = b.reshape(scale, [Dim::ONE, rows], NAME)?;
    let all = all_of(b, hp.used);
    let ids = b.reshape(routing.ids, [all], NAME)?;
    let scale = b.push(GetRows { window: None }, vec![rows, ids], NAME)?;
    let scale = b.reshape(scale, [Dim::ONE, used, b.n_tokens()], NAME)?;
    Ok(Routing {
        weights: b.mul(routing.weights, scale, "ffn_moe_weights_of_outputs")?,
        ..routing
    })
}

/// Returns the number of selected experts of all tokens.
fn all_of(b: &Builder<'_>, used: u64) -> Dim {
    let all = b.n_tokens().checked_mul(&used.into());
    all.expect("invariant: few experts times a symbol do not overflow")
}

/// Selects each token's experts for `x: [n_embd, n_tokens]`.
pub(super) fn route(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    x: Value,
) -> Result<Routing, ArchError> {
    let count = expert_count(hp);
    let logits = b.linear(
        "ffn_gate_inp",
        x,
        [cx.model.hparams.embd(), count],
        form.router_bias,
        TensorRole::Router,
        "ffn_moe_logits",
    )?;
    let probs = gate(b, hp, logits, "ffn_moe_probs")?;
    if u64::from(cx.layer.index) < hp.by_token {
        let ids = ids_of_tokens(b, cx, hp)?;
        return routing(b, hp, ids, probs, probs);
    }
    let bias = b.bare_name(form.selection_tensor);
    let by = match form.selected_by {
        SelectedBy::Weights => probs,
        SelectedBy::Logits => logits,
    };
    let mut scores = match b.optional(&bias, &[count], TensorRole::Bias, form.selection_bias)? {
        Some(bias) => b.add(by, bias, "ffn_moe_probs_biased")?,
        // Logits have the order of their sigmoids. Large logits still differ when their sigmoids round to 1.
        None if hp.gating == Gating::Sigmoid && hp.groups.is_none() => logits,
        None => by,
    };
    if let Some(groups) = hp.groups {
        scores = mask_groups(b, hp, groups, scores)?;
    }
    let ids = b.push(TopK { k: hp.used }, vec![scores], "ffn_moe_topk")?;
    routing(b, hp, ids, scores, probs)
}

/// Applies the gating to the router's logits.
fn gate(
    b: &mut Builder<'_>,
    hp: &ExpertHParams,
    logits: Value,
    name: &str,
) -> Result<Value, ArchError> {
    match hp.gating {
        Gating::Softmax => b.push(SoftMax::with_scale(1.0), vec![logits], name),
        Gating::SoftmaxOfSelected => Ok(logits),
        Gating::Sigmoid => b.unary(&[UnaryKind::Sigmoid], logits, name),
        Gating::RootSoftplus => b.unary(&[UnaryKind::Softplus, UnaryKind::Sqrt], logits, name),
    }
}

pub(super) fn value_expert_count(hp: &ExpertHParams) -> Size {
    Size::new(hp.count, "attention.value_expert_count")
}

/// Selects the experts that compute each token's values, for `x: [n_embd, n_tokens]`.
pub(super) fn route_values(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &ExpertHParams,
    x: Value,
) -> Result<Routing, ArchError> {
    const GATE: &str = "attn_v_gate";
    let count = value_expert_count(hp);
    let (sizes, role) = ([cx.model.hparams.embd(), count], TensorRole::Router);
    let logits = b.linear(GATE, x, sizes, Presence::Absent, role, "v_moe_logits")?;
    let probs = gate(b, hp, logits, "v_moe_probs")?;
    let scores = b.add_bias(GATE, probs, count, Presence::Optional, "v_moe_biased")?;
    // Logits have the order of the weights. Large logits still differ when their weights round to the same number.
    let scores = if scores == probs { logits } else { scores };
    let ids = b.push(TopK { k: hp.used }, vec![scores], "v_moe_topk")?;
    routing(b, hp, ids, scores, probs)
}

/// Returns each token's fixed experts, `[n_used, n_tokens]`.
fn ids_of_tokens(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &ExpertHParams,
) -> Result<Value, ArchError> {
    let sizes = [
        Size::try_new(hp.used, "expert_used_count")?,
        Size::try_new(cx.model.hparams.n_vocab, "vocab_size")?,
    ];
    let below = u32::try_from(hp.count).unwrap_or(u32::MAX);
    let table = b.tensor_name("ffn_gate_tid2eid", "weight");
    let table = b.require(&table, &sizes, TensorRole::Ids { below })?;
    let tokens = b.input(InputKind::Tokens);
    b.push(GetRows { window: None }, vec![table, tokens], "ffn_moe_ids")
}

fn routing(
    b: &mut Builder<'_>,
    hp: &ExpertHParams,
    ids: Value,
    scores: Value,
    probs: Value,
) -> Result<Routing, ArchError> {
    let rows = [Dim::ONE, hp.count.into(), b.n_tokens()];
    let rows = b.reshape(probs, rows, "ffn_moe_probs")?;
    let selected = b.push(GetRows { window: None }, vec![rows, ids], "ffn_moe_weights")?;
    let weights = weigh(b, hp, selected)?;
    Ok(Routing {
        ids,
        weights,
        scores,
        all: rows,
    })
}

/// Returns the group experts of each token's best experts.
pub(super) fn route_groups(
    b: &mut Builder<'_>,
    hp: &ExpertHParams,
    groups: &GroupExperts,
    experts: &Routing,
) -> Result<Routing, ArchError> {
    const NAME: &str = "ffn_moe_group_of";
    let gather = GetRows { window: None };
    let k = groups.used;
    let best = b.push(TopK { k }, vec![experts.scores], "ffn_moe_groups_topk")?;
    let of_experts = group_numbers(b, groups)?;
    let all = all_of(b, k);
    let best = b.reshape(best, [all], NAME)?;
    let ids = b.push(gather.clone(), vec![of_experts, best], NAME)?;
    let ids = b.reshape(ids, [k.into(), b.n_tokens()], NAME)?;
    let selected = b.push(gather, vec![experts.all, ids], "ffn_moe_group_weights")?;
    Ok(Routing {
        ids,
        weights: weigh(b, &ExpertHParams { used: k, ..*hp }, selected)?,
        ..*experts
    })
}

/// Returns the group of every expert, `[1, n_expert]`.
fn group_numbers(b: &mut Builder<'_>, groups: &GroupExperts) -> Result<Value, ArchError> {
    const NAME: &str = "ffn_moe_group_numbers";
    let (one, size, count): (Dim, Dim, Dim) = (Dim::ONE, groups.size.into(), groups.count.n.into());
    let falling = Arange::new(0.0, -1.0, count.clone());
    let falling = b.push(falling, Vec::new(), NAME)?;
    let k = groups.count.n;
    let numbers = b.push(TopK { k }, vec![falling], NAME)?;
    let numbers = b.reshape(numbers, [one.clone(), count.clone()], NAME)?;
    let dims = TensorType::new(DType::I32, [size, count]).dims;
    let repeated = b.push(Repeat { dims }, vec![numbers], NAME)?;
    b.reshape(repeated, [one, (groups.size * k).into()], NAME)
}

/// Returns the selected experts' final weights, `[1, n_used, n_tokens]`.
fn weigh(b: &mut Builder<'_>, hp: &ExpertHParams, selected: Value) -> Result<Value, ArchError> {
    let mut weights = selected;
    if hp.gating == Gating::SoftmaxOfSelected {
        const NAME: &str = "ffn_moe_weights_softmax";
        let used: Dim = hp.used.into();
        let flat = b.reshape(weights, [used.clone(), b.n_tokens()], NAME)?;
        let flat = b.push(SoftMax::with_scale(1.0), vec![flat], NAME)?;
        weights = b.reshape(flat, [Dim::ONE, used, b.n_tokens()], NAME)?;
    }
    if hp.normalised {
        let sum = b.push(Sum { axis: 1 }, vec![weights], "ffn_moe_weights_sum")?;
        let clamp = Clamp {
            min: LEAST_SUM,
            max: f32::INFINITY,
        };
        let sum = b.push(clamp, vec![sum], "ffn_moe_weights_sum_clamped")?;
        let kind = BinaryKind::Div;
        weights = b.push(Binary { kind }, vec![weights, sum], "ffn_moe_weights_norm")?;
    }
    if let Some(scale) = hp.scale {
        weights = b.scale(weights, scale, "ffn_moe_weights_scaled")?;
    }
    Ok(weights)
}

/// Returns the scores `[n_expert, n_tokens]`, lowered outside the best groups to exclude their experts. Groups that tie
/// with the last selected one stay in.
fn mask_groups(
    b: &mut Builder<'_>,
    hp: &ExpertHParams,
    groups: Groups,
    scores: Value,
) -> Result<Value, ArchError> {
    const GROUP: &str = "ffn_moe_group_scores";
    const LAST: &str = "ffn_moe_group_last";
    let size = hp.count / groups.count;
    let (one, each, count): (Dim, Dim, Dim) = (Dim::ONE, size.into(), groups.count.into());
    let gather = GetRows { window: None };
    let apart = [each.clone(), count.clone(), b.n_tokens()];
    let apart = b.reshape(scores, apart, "ffn_moe_groups")?;
    let k = GROUP_BEST.min(size);
    let best = b.push(TopK { k }, vec![apart], "ffn_moe_group_best")?;
    let rows = [one.clone(), each, count.clone(), b.n_tokens()];
    let rows = b.reshape(scores, rows, "ffn_moe_groups")?;
    let best = b.push(gather.clone(), vec![rows, best], "ffn_moe_group_best")?;
    let total = b.push(Sum { axis: 1 }, vec![best], GROUP)?;
    let total = b.reshape(total, [count.clone(), b.n_tokens()], GROUP)?;
    let k = groups.used;
    let chosen = b.push(TopK { k }, vec![total], "ffn_moe_group_topk")?;
    let rows = b.reshape(total, [one.clone(), count.clone(), b.n_tokens()], GROUP)?;
    let chosen = b.push(gather, vec![rows, chosen], LAST)?;
    let last = b.slice(chosen, 1, groups.used - 1, Dim::ONE, LAST)?;
    let last = b.reshape(last, [one.clone(), b.n_tokens()], LAST)?;
    let kind = BinaryKind::Sub;
    let above = b.push(Binary { kind }, vec![total, last], "ffn_moe_group_margin")?;
    let below = b.scale(above, -EXCLUSION, "ffn_moe_group_margin")?;
    let below = b.unary(&[UnaryKind::Relu], below, "ffn_moe_group_out")?;
    let below = b.reshape(below, [one, count, b.n_tokens()], "ffn_moe_group_out")?;
    let masked = b.push(Binary { kind }, vec![apart, below], "ffn_moe_probs_masked")?;
    let all = [hp.count.into(), b.n_tokens()];
    b.reshape(masked, all, "ffn_moe_probs_masked")
}
