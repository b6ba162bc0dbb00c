//! Rotary position embedding: the parameters from the metadata, and the op.

use tpc_ir::Value;
use tpc_ir::op::{InputKind, Rope, RopeMode};

use super::builder::Builder;
use super::hparams::{Rotated, Windowed};
use super::keys::Keys;
use super::{Context, LayerContext};
use crate::description::{
    HeadSizes, Presence, RopeFactors, RopeForm, Sections, WindowedRope, YarnFactor,
};
use crate::error::ArchError;
use crate::source::{Form, Size, TensorRole};
use tpc_diag::suggest::shorten;

/// How frequencies are scaled beyond the trained context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scaling {
    None,
    Linear,
    Yarn,
    LongRope,
}

/// The rotations of layers without and with a window, whose heads have `dk` elements.
pub(super) fn read(
    keys: &Keys<'_>,
    form: &RopeForm,
    sizes: HeadSizes,
    dk: [u64; 2],
    n_ctx_train: u64,
    n_ctx_orig: u64,
) -> Result<[Rope; 2], ArchError> {
    const FACTOR: &str = "rope.scaling.factor";
    let scaling = scaling(keys)?;
    let factor = match keys.positive(FACTOR)? {
        Some(factor) => factor,
        None => keys.positive("rope.scale_linear")?.unwrap_or(1.0),
    };
    let freq_scale = match scaling {
        Scaling::None => 1.0,
        Scaling::Linear | Scaling::Yarn | Scaling::LongRope => 1.0 / factor,
    };
    if !freq_scale.is_finite() || freq_scale == 0.0 {
        return Err(keys.out_of_range(FACTOR, factor, "a number with an inverse"));
    }
    let ext_factor = match keys.float("rope.scaling.yarn_ext_factor")? {
        Some(x) if x >= 0.0 => x,
        _ if scaling == Scaling::Yarn => 1.0,
        _ => 0.0,
    };
    const DIMENSIONS: &str = "rope.dimension_count";
    let n_dims = dimensions(keys, DIMENSIONS, dk[0])?;
    let full = Rope {
        mode: mode(keys, form)?,
        n_dims,
        n_ctx_orig,
        freq_base: keys.positive("rope.freq_base")?.unwrap_or(10_000.0),
        freq_scale,
        ext_factor,
        attn_factor: attention_factor(
            keys,
            form.yarn,
            scaling,
            ext_factor,
            freq_scale,
            n_ctx_train,
            n_ctx_orig,
        )?,
        beta_fast: keys.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
        beta_slow: keys.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
    };
    let unscaled = Rope {
        freq_scale: 1.0,
        ext_factor: 0.0,
        attn_factor: 1.0,
        ..full.clone()
    };
    let windowed = match form.windowed {
        WindowedRope::Same => full.clone(),
        WindowedRope::Unscaled => unscaled,
        WindowedRope::Local(base) => Rope {
            freq_base: keys.positive("rope.freq_base_swa")?.unwrap_or(base),
            ..unscaled
        },
    };
    let windowed = Rope {
        n_dims: match sizes {
            HeadSizes::Same => n_dims,
            HeadSizes::WindowedOwn => dimensions(keys, "rope.dimension_count_swa", dk[1])?,
        },
        ..windowed
    };
    Ok([full, windowed])
}

/// The pairing: that of the description, or by sections where it obeys them and the key gives some.
fn mode(keys: &Keys<'_>, form: &RopeForm) -> Result<RopeMode, ArchError> {
    const KEY: &str = "rope.dimension_sections";
    Ok(match form.sections {
        Sections::Ignored => form.mode,
        Sections::Mrope => match keys.counts::<4>(KEY)? {
            Some(sections) if sections[0] > 0 && sections[1] > 0 => RopeMode::Mrope { sections },
            _ => form.mode,
        },
        Sections::Imrope => match keys.require_counts::<4>(KEY)? {
            [0, 0, 0, 0] => return Err(keys.out_of_range(KEY, "[0, 0, 0, 0]", "pairs to turn")),
            sections => RopeMode::Imrope { sections },
        },
    })
}

fn scaling(keys: &Keys<'_>) -> Result<Scaling, ArchError> {
    const KEY: &str = "rope.scaling.type";
    match keys.text(KEY)? {
        None | Some("linear") => Ok(Scaling::Linear),
        Some("none") => Ok(Scaling::None),
        Some("yarn") => Ok(Scaling::Yarn),
        Some("longrope") => Ok(Scaling::LongRope),
        Some(other) => Err(ArchError::RopeScaling {
            key: keys.name(KEY),
            found: shorten(other),
        }),
    }
}

fn dimensions(keys: &Keys<'_>, key: &str, dk: u64) -> Result<u64, ArchError> {
    let n = keys.count(key)?.unwrap_or(dk);
    if n % 2 == 0 && n <= dk {
        return Ok(n);
    }
    Err(ArchError::Contradiction {
        key: keys.name(key),
        found: n.to_string(),
        with: format!("heads of {dk} elements"),
        expected: "an even number, no larger".into(),
    })
}

/// The factor on the rotated elements.
///
/// With YaRN the op multiplies by `1 + 0.1 ln(1 / freq_scale)` on its own account, so what the model wants is divided
/// by that: `m(1) / m(log_multiplier)` with `m(x) = 0.1 x ln(factor) + 1` for a model that states a multiplier, else
/// `m(1)`. LongRoPE's is `√(1 + ln(s) / ln(n_ctx_orig))` with `s` the ratio of the contexts.
fn attention_factor(
    keys: &Keys<'_>,
    form: YarnFactor,
    scaling: Scaling,
    ext_factor: f32,
    freq_scale: f32,
    n_ctx_train: u64,
    n_ctx_orig: u64,
) -> Result<f32, ArchError> {
    const KEY: &str = "rope.scaling.attn_factor";
    let long_rope = || {
        let s = n_ctx_train as f32 / n_ctx_orig as f32;
        let grows = scaling == Scaling::LongRope && s > 1.0 && n_ctx_orig > 1;
        if grows {
            (1.0 + s.ln() / (n_ctx_orig as f32).ln()).sqrt()
        } else {
            1.0
        }
    };
    let stated = keys.positive(KEY)?.unwrap_or_else(long_rope);
    let yarn = if ext_factor == 0.0 {
        keys.positive("rope.scaling.yarn_attn_factor")?
            .unwrap_or(1.0)
    } else {
        let factor = 1.0 / freq_scale;
        let m = |multiplier: f32| {
            if factor <= 1.0 {
                1.0
            } else {
                0.1 * multiplier * factor.ln() + 1.0
            }
        };
        let wanted = match (log_multiplier(keys)?, form) {
            (None, _) => m(1.0),
            (Some(multiplier), YarnFactor::OnElements) => m(1.0) / m(multiplier),
            (Some(_), YarnFactor::OnLogits) => 1.0,
        };
        wanted * (1.0 / (1.0 + 0.1 * factor.ln()))
    };
    let product = stated * yarn;
    if product.is_finite() && product > 0.0 {
        return Ok(product);
    }
    Err(keys.out_of_range(KEY, stated, "a factor that leaves numbers finite"))
}

fn log_multiplier(keys: &Keys<'_>) -> Result<Option<f32>, ArchError> {
    let multiplier = keys.float("rope.scaling.yarn_log_multiplier")?;
    Ok(multiplier.filter(|&x| x != 0.0))
}

/// The root of YaRN's factor on the logits.
pub(super) fn logit_factor(
    keys: &Keys<'_>,
    form: &RopeForm,
    rope: &Rope,
) -> Result<f32, ArchError> {
    if form.yarn == YarnFactor::OnElements {
        return Ok(1.0);
    }
    let length = (1.0 / rope.freq_scale).ln();
    // The file's factor on the elements, without what the op multiplies by on its own account.
    let elements = rope.attn_factor * (1.0 + 0.1 * length);
    let factor = elements * (1.0 + log_multiplier(keys)?.unwrap_or(0.0) * length);
    if factor.is_finite() && factor > 0.0 {
        return Ok(factor);
    }
    Err(keys.out_of_range(
        "rope.scaling.yarn_log_multiplier",
        factor,
        "a multiplier that leaves logits finite",
    ))
}

/// Rotates the heads of `x: [dk, heads, n_tokens]`; `x` itself where the layer does not rotate.
pub(super) fn rotate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let hp = cx.model.hparams;
    let (Some(form), Some([full, windowed]), Rotated::Yes) =
        (&cx.model.arch.attention.rope, &hp.rope, cx.layer.rotated)
    else {
        return Ok(x);
    };
    let rope = cx.layer.windowed.of([full, windowed]);
    let positions = b.input(match rope.mode.sections() {
        None => InputKind::Positions,
        Some(_) => InputKind::PositionsMrope,
    });
    let mut operands = vec![x, positions];
    let divided = match (cx.layer.windowed, form.windowed) {
        (Windowed::No, _) | (_, WindowedRope::Same) => true,
        (Windowed::Yes, WindowedRope::Unscaled | WindowedRope::Local(_)) => false,
    };
    if divided {
        operands.extend(factors(b, &cx.model, form, rope.n_dims)?);
    }
    b.push(rope.clone(), operands, name)
}

/// The factors by which frequencies are divided, if the file has some: one set for all contexts, or one for contexts
/// up to that of the original training and one for longer ones.
fn factors(
    b: &mut Builder<'_>,
    cx: &Context<'_>,
    form: &RopeForm,
    n_dims: u64,
) -> Result<Option<Value>, ArchError> {
    const ONE: &str = "rope_freqs.weight";
    const LONG: &str = "rope_factors_long.weight";
    const SHORT: &str = "rope_factors_short.weight";
    let usual = match form.factors {
        RopeFactors::None => return Ok(None),
        RopeFactors::One => Form::Usual,
        RopeFactors::ByContext => Form::Unusual,
    };
    let sizes = [Size {
        n: n_dims / 2,
        from: "half of rope.dimension_count",
    }];
    let find = |b: &mut Builder<'_>, name: &str| {
        b.find(name, &sizes, TensorRole::RopeFactors, Presence::Optional)
    };
    if b.offers(ONE, usual) {
        return Ok(find(b, ONE)?.map(|one| b.load(&one)));
    }
    match (find(b, LONG)?, find(b, SHORT)?) {
        (Some(long), Some(short)) => {
            let extended = cx.options.n_ctx > cx.hparams.n_ctx_orig;
            Ok(Some(b.load(if extended { &long } else { &short })))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(half(LONG, SHORT)),
        (None, Some(_)) => Err(half(SHORT, LONG)),
    }
}

fn half(present: &str, missing: &str) -> ArchError {
    ArchError::HalfPair {
        present: present.to_owned(),
        missing: missing.to_owned(),
    }
}
