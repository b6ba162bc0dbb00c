//! Multi-head latent attention. One short vector per token, the latent vector, gives the keys and values of all heads.
//! All heads share a rotated part of the keys.
//!
//! If the file has a matrix per head (`attn_k_b`, `attn_v_b`), queries are multiplied by `attn_k_b`. Every head then
//! attends to the same cached row, whose first part is the value. If the file has one projection (`attn_kv_b`), keys
//! and values are computed and cached as usual.

use tpc_ir::op::{Concat, Repeat};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::attention::{self, AttendOptions};
use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::{self, CacheKind};
use super::mask::visible_cells;
use super::{indexer, log_scale, norm, rope};
use crate::description::{LatentForm, Presence, RopeLayers};
use crate::error::ArchError;
use crate::hparams::{HeadElements, LatentHParams, RopeUse};
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Returns attention's output, `[n_embd, n_tokens]`.
pub(crate) fn latent(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LatentHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let plain = hp.without_rotation();
    let hp = if has_no_rotated_part(cx) { &plain } else { hp };
    let queries = queries(b, cx, hp, x)?;
    let shared = match cx.layer.kv_from {
        None => Some(shared_kv(b, cx, hp, x)?),
        Some(_) => None,
    };
    let (absorbed, expanded) = match hp.form {
        LatentForm::Absorbed => (Form::Usual, Form::Unusual),
        LatentForm::Expanded => (Form::Unusual, Form::Usual),
    };
    let has_absorbed = b.offers(&b.tensor_name("attn_k_b", "weight"), absorbed);
    let has_expanded = b.offers(&b.tensor_name("attn_kv_b", "weight"), expanded);
    // If the file has neither form, the error names the tensors of the usual form.
    let absorbs = has_absorbed || (hp.form == LatentForm::Absorbed && !has_expanded);
    let y = match &shared {
        Some(shared) if !absorbs => expanded_heads(b, cx, hp, &queries, shared)?,
        shared => {
            let mask = indexer::mask(b, cx, x, queries.latent)?;
            absorbed_heads(b, cx, hp, &queries, shared.as_ref(), mask)?
        }
    };
    let y = attention::apply_gate(b, cx, x, y, hp.dv.n)?;
    let out = Size::product(
        cx.layer.n_head,
        hp.dv.n,
        "attention.head_count × the value length",
    )?;
    let y = b.reshape(y, [out.n.into(), b.n_tokens()], "kqv_out")?;
    let (sizes, bias) = (
        [out, cx.model.hparams.embd()],
        cx.model.arch.attention.out_bias,
    );
    b.linear(
        "attn_output",
        y,
        sizes,
        bias,
        TensorRole::Matrix,
        "attn_out",
    )
}

/// True if this layer's heads have no rotated part.
fn has_no_rotated_part(cx: &LayerContext<'_>) -> bool {
    let rope = cx.model.arch.attention.rope.as_ref();
    let listed = rope.is_some_and(|rope| rope.layers == RopeLayers::ListedOrPlain);
    listed && cx.layer.rope == RopeUse::Unrotated
}

/// Query heads, `[.., heads, n_tokens]`.
struct Queries {
    latent: Option<Value>,
    plain: Option<Value>,
    rotated: Option<Value>,
}

/// Projections that all heads share.
struct SharedKv {
    /// Latent vectors, `[rank, n_tokens]`.
    latent: Value,
    /// Rotated part of the keys, `[rotated, 1, n_tokens]`, if any.
    rotated: Option<Value>,
}

fn queries(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LatentHParams,
    x: Value,
) -> Result<Queries, ArchError> {
    let embd = cx.model.hparams.embd();
    let all = Size::product(
        cx.layer.n_head,
        hp.dk,
        "attention.head_count × the key length",
    )?;
    let (latent, q) = match hp.q_rank {
        Some(rank) => {
            let q = b.project("attn_q_a", x, [embd, rank], "q_a")?;
            let q = norm::with_weight(b, &cx.model, "attn_q_a_norm", &[rank], q, "q_a_norm")?;
            let all = b.project("attn_q_b", q, [rank, all], "q")?;
            (Some(q), all)
        }
        None => (None, b.project("attn_q", x, [embd, all], "q")?),
    };
    let heads = [hp.dk.into(), cx.layer.n_head.into(), b.n_tokens()];
    let q = b.reshape(q, heads, "q")?;
    let (plain, rotated) = match (hp.plain.n, hp.rotated) {
        (_, 0) => (Some(q), None),
        (0, _) => (None, Some(q)),
        (n, _) => (
            Some(b.slice(q, 0, 0, n.into(), "q_nope")?),
            Some(b.slice(q, 0, n, hp.rotated.into(), "q_pe")?),
        ),
    };
    let rotated = match rotated {
        Some(rotated) => Some(rope::rotate(b, cx, rotated, "q_pe")?),
        None => None,
    };
    Ok(Queries {
        latent,
        plain,
        rotated,
    })
}

fn shared_kv(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LatentHParams,
    x: Value,
) -> Result<SharedKv, ArchError> {
    let sizes = [cx.model.hparams.embd(), hp.cached];
    let both = b.project("attn_kv_a_mqa", x, sizes, "kv_cmpr_pe")?;
    let latent = match hp.rotated {
        0 => both,
        _ => b.slice(both, 0, 0, hp.rank.n.into(), "kv_cmpr")?,
    };
    let latent = norm::with_weight(
        b,
        &cx.model,
        "attn_kv_a_norm",
        &[hp.rank],
        latent,
        "kv_cmpr",
    )?;
    if hp.rotated == 0 {
        let rotated = None;
        return Ok(SharedKv { latent, rotated });
    }
    let rotated = b.slice(both, 0, hp.rank.n, hp.rotated.into(), "k_pe")?;
    let dims = [hp.rotated.into(), Dim::ONE, b.n_tokens()];
    let mut rotated = b.reshape(rotated, dims, "k_pe")?;
    let sizes = [Size {
        n: hp.rotated,
        from: "rope.dimension_count",
    }];
    let presence = cx.model.arch.attention.latent_key_norm;
    if norm::exists(b, &cx.model, "attn_k_norm", &sizes, presence)? {
        rotated = norm::with_weight(b, &cx.model, "attn_k_norm", &sizes, rotated, "k_pe")?;
    }
    let rotated = Some(rope::rotate(b, cx, rotated, "k_pe")?);
    Ok(SharedKv { latent, rotated })
}

/// Returns attention to the latent vectors, `[dv, heads, n_tokens]`.
fn absorbed_heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LatentHParams,
    queries: &Queries,
    shared: Option<&SharedKv>,
    mask: Option<Value>,
) -> Result<Value, ArchError> {
    let heads = Size {
        n: cx.layer.n_head,
        from: "attention.head_count",
    };
    let by_head = |b: &mut Builder<'_>, tensor, sizes: [Size; 3], x, name| {
        let w = b.tensor_name(tensor, "weight");
        let w = b.require(&w, &sizes, TensorRole::Matrix)?;
        let x = b.swap_heads(x, name)?;
        let y = b.mul_mat(w, x, name)?;
        b.swap_heads(y, name)
    };
    let q = match queries.plain {
        None => {
            return Err(no_plain_part(cx, hp));
        }
        Some(plain) => {
            let sizes = [hp.plain, hp.rank, heads];
            by_head(b, "attn_k_b", sizes, plain, "q_nope_absorbed")?
        }
    };
    let q = join_parts(b, q, queries.rotated, "Qcur")?;
    let q = attention::apply_temperature(b, cx, q)?;
    let q = log_scale::apply(b, cx, "attn_ssmax", cx.layer.n_head, q)?;
    let k = match shared {
        Some(shared) => {
            let latent = [hp.rank.n.into(), Dim::ONE, b.n_tokens()];
            let latent = b.reshape(shared.latent, latent, "kv_cmpr")?;
            let k = join_parts(b, latent, shared.rotated, "Kcur")?;
            let k = kv_cache::store(b, cx, CacheKind::Keys, k)?;
            b.note_caches(cx.layer.index, [k, k]);
            k
        }
        None => b.caches_of(cx.layer)[0],
    };
    let v = match hp.rotated {
        0 => k,
        _ => b.slice(k, 0, 0, hp.rank.n.into(), "cache_v")?,
    };
    let mask = mask.unwrap_or_else(|| visible_cells(b, cx));
    let y = attention::attend(b, cx, [q, k, v], mask, hp.scale)?;
    by_head(b, "attn_v_b", [hp.rank, hp.dv, heads], y, "kqv_mla")
}

fn join_parts(
    b: &mut Builder<'_>,
    plain: Value,
    rotated: Option<Value>,
    name: &str,
) -> Result<Value, ArchError> {
    match rotated {
        Some(rotated) => b.push(Concat { axis: 0 }, vec![plain, rotated], name),
        None => Ok(plain),
    }
}

fn no_plain_part(cx: &LayerContext<'_>, hp: &LatentHParams) -> ArchError {
    ArchError::Contradiction {
        key: format!("{}.rope.dimension_count", cx.model.arch.name),
        found: hp.rotated.to_string(),
        with: format!("keys of {} elements", hp.dk),
        expected: "a smaller number for files with attn_k_b".into(),
    }
}

/// Returns attention to keys and values per head, `[dv, heads, n_tokens]`.
fn expanded_heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LatentHParams,
    queries: &Queries,
    shared: &SharedKv,
) -> Result<Value, ArchError> {
    let n_head = cx.layer.n_head;
    let each = hp.plain.n + hp.dv.n;
    let all = Size::product(
        n_head,
        each,
        "attention.head_count × the value length and the part of the key length that is not rotated",
    )?;
    let (sizes, bias) = ([hp.rank, all], Presence::Absent);
    let kv = b.linear(
        "attn_kv_b",
        shared.latent,
        sizes,
        bias,
        TensorRole::Matrix,
        "kv",
    )?;
    let kv = b.reshape(kv, [each.into(), n_head.into(), b.n_tokens()], "kv")?;
    let dims = [hp.rotated.into(), n_head.into(), b.n_tokens()];
    let dims = TensorType::new(DType::F32, dims).dims;
    let rotated = match shared.rotated {
        Some(rotated) => Some(b.push(Repeat { dims }, vec![rotated], "k_pe")?),
        None => None,
    };
    let (q, k, v) = match (queries.plain, queries.rotated, rotated) {
        (None, Some(q), Some(k)) => (q, k, kv),
        (None, _, _) => return Err(no_plain_part(cx, hp)),
        (Some(plain), _, _) => {
            let k = b.slice(kv, 0, 0, hp.plain.n.into(), "k_nope")?;
            let v = b.slice(kv, 0, hp.plain.n, hp.dv.n.into(), "Vcur")?;
            let q = join_parts(b, plain, queries.rotated, "Qcur")?;
            (q, join_parts(b, k, rotated, "Kcur")?, v)
        }
    };
    let q = attention::apply_temperature(b, cx, q)?;
    let sizes = HeadElements {
        dk: hp.dk,
        dv: hp.dv.n,
    };
    let form = AttendOptions {
        sizes,
        selected: None,
        scale: hp.scale,
    };
    attention::attend_to_new(b, cx, q, Some([k, v]), form)
}
