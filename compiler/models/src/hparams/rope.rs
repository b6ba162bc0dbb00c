use tpc_ir::op::{Rope, RopeMode};

use super::keys::Keys;
use super::windows::Reach;
use crate::description::{
    AttentionForm, HeadSizes, RopeBase, RopeForm, RotatedPart, Sections, WindowedRope, YarnFactor,
};
use crate::error::ArchError;
use tpc_diag::suggest::shorten;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScalingType {
    None,
    Linear,
    Yarn,
    LongRope,
}

#[derive(Clone, Copy)]
struct Scaling {
    kind: ScalingType,
    freq_scale: f32,
    ext_factor: f32,
    n_ctx_train: u64,
    n_ctx_orig: u64,
}

/// Reads the rotations with full attention and with a window, for heads of `dk` elements. If the form has one number of
/// rotated elements, the number is the first layer's, whose reach is `first`.
pub(super) fn read(
    keys: &Keys<'_>,
    attention: &AttentionForm,
    (dk, first): ([u64; 2], Reach),
    [n_ctx_train, n_ctx_orig]: [u64; 2],
) -> Result<Option<[Rope; 2]>, ArchError> {
    let Some(form) = &attention.rope else {
        return Ok(None);
    };
    if form.base == RopeBase::Fixed {
        return Ok(Some(dk.map(|dk| fixed_rotation(form, dk, n_ctx_orig))));
    }
    if form.part == RotatedPart::HalfOfHead {
        if let Some(dk) = dk.iter().find(|dk| !dk.is_multiple_of(4)) {
            return Err(keys.out_of_range("attention.key_length", dk, "a multiple of 4"));
        }
        let base = base(keys, form.base, dk[0])?;
        let half = |dk: u64| Rope {
            freq_base: base,
            ..fixed_rotation(form, dk / 2, n_ctx_orig)
        };
        return Ok(Some(dk.map(half)));
    }
    let scaling = Scaling::read(keys, n_ctx_train, n_ctx_orig)?;
    let n_dims = match (attention.head_sizes, first) {
        (HeadSizes::Same, Reach::Window) => {
            let default = keys.count("rope.dimension_count")?.unwrap_or(dk[0]);
            dimensions_or(keys, "rope.dimension_count_swa", dk[0], default)?
        }
        _ => dimensions(keys, "rope.dimension_count", dk[0])?,
    };
    let full = Rope {
        mode: mode(keys, form)?,
        n_dims,
        n_ctx_orig,
        freq_base: base(keys, form.base, dk[0])?,
        freq_scale: scaling.freq_scale,
        ext_factor: scaling.ext_factor,
        attn_factor: scaling.attention_factor(keys, form.yarn)?,
        beta_fast: keys
            .above_0("rope.scaling.yarn_beta_fast")?
            .unwrap_or(form.beta_fast),
        beta_slow: keys.above_0("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
    };
    let windowed = Rope {
        n_dims: match attention.head_sizes {
            HeadSizes::Same => n_dims,
            HeadSizes::WindowedOwn if attention.latent.is_none() => {
                dimensions(keys, "rope.dimension_count_swa", dk[1])?
            }
            HeadSizes::WindowedRotation | HeadSizes::WindowedOwn => {
                dimensions_or(keys, "rope.dimension_count_swa", dk[1], n_dims)?
            }
        },
        ..windowed(keys, form, &full)?
    };
    let full = match form.part {
        RotatedPart::Given | RotatedPart::HalfOfHead => full,
        RotatedPart::HalfIfFull => Rope {
            n_dims: half(keys, full.n_dims)?,
            ..full
        },
    };
    Ok(Some([full, windowed]))
}

/// Returns the rotation of layers with a window, except the number of rotated elements.
fn windowed(keys: &Keys<'_>, form: &RopeForm, full: &Rope) -> Result<Rope, ArchError> {
    let unscaled = Rope {
        freq_scale: 1.0,
        ext_factor: 0.0,
        attn_factor: 1.0,
        ..full.clone()
    };
    let with_base = |rope: Rope, base: f32| -> Result<Rope, ArchError> {
        Ok(Rope {
            freq_base: keys.positive("rope.freq_base_swa")?.unwrap_or(base),
            ..rope
        })
    };
    Ok(match form.windowed {
        WindowedRope::Same => full.clone(),
        WindowedRope::OwnBase => with_base(full.clone(), full.freq_base)?,
        WindowedRope::Unscaled => unscaled,
        WindowedRope::UnscaledOwnBase => with_base(unscaled, full.freq_base)?,
        WindowedRope::Local(base) => {
            let local = Rope {
                freq_scale: 1.0,
                ..full.clone()
            };
            with_base(local, base)?
        }
        WindowedRope::UnscaledPlainBase => Rope {
            freq_base: given_base(keys)?,
            ..unscaled
        },
    })
}

/// Returns half of the rotated elements, an even number.
fn half(keys: &Keys<'_>, n_dims: u64) -> Result<u64, ArchError> {
    const KEY: &str = "rope.dimension_count";
    if n_dims.is_multiple_of(4) {
        return Ok(n_dims / 2);
    }
    Err(keys.out_of_range(KEY, n_dims, "a multiple of 4"))
}

/// Returns the rotation of all `dk` elements, without keys.
fn fixed_rotation(form: &RopeForm, dk: u64, n_ctx_orig: u64) -> Rope {
    Rope {
        n_ctx_orig,
        beta_fast: form.beta_fast,
        ..Rope::with_defaults(form.mode, dk)
    }
}

fn given_base(keys: &Keys<'_>) -> Result<f32, ArchError> {
    Ok(keys.positive("rope.freq_base")?.unwrap_or(10_000.0))
}

/// Returns the base of the frequencies for heads of `dk` elements.
fn base(keys: &Keys<'_>, form: RopeBase, dk: u64) -> Result<f32, ArchError> {
    const ALPHA: &str = "rope.scaling.alpha";
    if form == RopeBase::OfBlocks {
        return keys.require_above_0("attention.compress_rope_freq_base");
    }
    let given = given_base(keys)?;
    let alpha = match form {
        RopeBase::Given | RopeBase::Fixed | RopeBase::OfBlocks => None,
        RopeBase::TimesAlpha => keys.above_0(ALPHA)?,
    };
    let Some(alpha) = alpha.filter(|_| dk > 2) else {
        return Ok(given);
    };
    let stretched = given * alpha.powf(dk as f32 / (dk - 2) as f32);
    if stretched.is_finite() && stretched > 0.0 {
        return Ok(stretched);
    }
    Err(keys.out_of_range(ALPHA, alpha, "a factor that leaves the base finite"))
}

/// Returns the pairing, by sections if the description reads sections and the file has them.
fn mode(keys: &Keys<'_>, form: &RopeForm) -> Result<RopeMode, ArchError> {
    const KEY: &str = "rope.dimension_sections";
    Ok(match form.sections {
        Sections::Ignored => form.mode,
        Sections::Mrope => match keys.counts::<4>(KEY)? {
            Some(sections) if sections[0] > 0 && sections[1] > 0 => RopeMode::Mrope { sections },
            _ => form.mode,
        },
        Sections::Imrope => match keys.require_counts::<4>(KEY)? {
            [0, 0, 0, 0] => {
                return Err(keys.out_of_range(KEY, "[0, 0, 0, 0]", "a section above 0"));
            }
            sections => RopeMode::Imrope { sections },
        },
    })
}

fn scaling_type(keys: &Keys<'_>) -> Result<ScalingType, ArchError> {
    const KEY: &str = "rope.scaling.type";
    match keys.text(KEY)? {
        None | Some("linear") => Ok(ScalingType::Linear),
        Some("none") => Ok(ScalingType::None),
        Some("yarn") => Ok(ScalingType::Yarn),
        Some("longrope") => Ok(ScalingType::LongRope),
        Some(other) => Err(ArchError::RopeScaling {
            key: keys.name(KEY),
            found: shorten(other),
        }),
    }
}

/// Returns the number of rotated elements per head: even, at most `dk`.
fn dimensions(keys: &Keys<'_>, key: &str, dk: u64) -> Result<u64, ArchError> {
    dimensions_or(keys, key, dk, dk)
}

/// Returns the result of [`dimensions`], or `default` without the key.
fn dimensions_or(keys: &Keys<'_>, key: &str, dk: u64, default: u64) -> Result<u64, ArchError> {
    let n = keys.count(key)?.unwrap_or(default);
    if n % 2 == 0 && n <= dk {
        return Ok(n);
    }
    Err(ArchError::Contradiction {
        key: keys.name(key),
        found: n.to_string(),
        with: format!("heads of {dk} elements"),
        expected: format!("an even number, at most {dk}"),
    })
}

impl Scaling {
    fn read(keys: &Keys<'_>, n_ctx_train: u64, n_ctx_orig: u64) -> Result<Scaling, ArchError> {
        const FACTOR: &str = "rope.scaling.factor";
        let kind = scaling_type(keys)?;
        let factor = match keys.positive(FACTOR)? {
            Some(factor) => factor,
            None => keys.positive("rope.scale_linear")?.unwrap_or(1.0),
        };
        let freq_scale = match kind {
            ScalingType::None => 1.0,
            ScalingType::Linear | ScalingType::Yarn | ScalingType::LongRope => 1.0 / factor,
        };
        if !freq_scale.is_finite() || freq_scale == 0.0 {
            return Err(keys.out_of_range(FACTOR, factor, "a number whose inverse is finite"));
        }
        let ext_factor = match keys.float("rope.scaling.yarn_ext_factor")? {
            Some(x) if x >= 0.0 => x,
            _ if kind == ScalingType::Yarn => 1.0,
            _ => 0.0,
        };
        Ok(Scaling {
            kind,
            freq_scale,
            ext_factor,
            n_ctx_train,
            n_ctx_orig,
        })
    }

    /// Returns the factor on rotated elements.
    ///
    /// YaRN's op itself multiplies by `1 + 0.1 ln(1 / freq_scale)`, so the model's factor is divided by this number.
    /// With `m(x) = 0.1 x ln(factor) + 1`, the factor is `m(1) / m(log_multiplier)` if the file has a multiplier, else
    /// `m(1)`.
    fn attention_factor(&self, keys: &Keys<'_>, form: YarnFactor) -> Result<f32, ArchError> {
        const KEY: &str = "rope.scaling.attn_factor";
        if form == YarnFactor::None {
            return Ok(match self.ext_factor {
                0.0 => 1.0,
                _ => 1.0 / (1.0 + 0.1 * (1.0 / self.freq_scale).ln()),
            });
        }
        let stated = match keys.positive(KEY)? {
            Some(stated) => stated,
            None => self.long_rope_factor(),
        };
        let yarn = if self.ext_factor == 0.0 {
            keys.positive("rope.scaling.yarn_attn_factor")?
                .unwrap_or(1.0)
        } else {
            let factor = 1.0 / self.freq_scale;
            let m = |multiplier: f32| {
                if factor <= 1.0 {
                    1.0
                } else {
                    0.1 * multiplier * factor.ln() + 1.0
                }
            };
            let model = match (log_multiplier(keys)?, form) {
                (None, _) => m(1.0),
                (Some(multiplier), YarnFactor::OnElements) => m(1.0) / m(multiplier),
                (Some(_), YarnFactor::OnLogits | YarnFactor::None) => 1.0,
            };
            model * (1.0 / (1.0 + 0.1 * factor.ln()))
        };
        let product = stated * yarn;
        if product.is_finite() && product > 0.0 {
            return Ok(product);
        }
        Err(keys.out_of_range(KEY, stated, "a factor that leaves numbers finite"))
    }

    /// Returns LongRoPE's factor: `√(1 + ln(s) / ln(n_ctx_orig))` for a ratio `s` of the contexts.
    fn long_rope_factor(&self) -> f32 {
        let s = self.n_ctx_train as f32 / self.n_ctx_orig as f32;
        let grows = self.kind == ScalingType::LongRope && s > 1.0 && self.n_ctx_orig > 1;
        if grows {
            (1.0 + s.ln() / (self.n_ctx_orig as f32).ln()).sqrt()
        } else {
            1.0
        }
    }
}

fn log_multiplier(keys: &Keys<'_>) -> Result<Option<f32>, ArchError> {
    let multiplier = keys.float("rope.scaling.yarn_log_multiplier")?;
    Ok(multiplier.filter(|&x| x != 0.0))
}

/// Returns the square root of YaRN's factor on the logits.
pub(super) fn logit_factor(
    keys: &Keys<'_>,
    form: &RopeForm,
    rope: &Rope,
) -> Result<f32, ArchError> {
    if form.yarn != YarnFactor::OnLogits {
        return Ok(1.0);
    }
    let length = (1.0 / rope.freq_scale).ln();
    // The factor on the elements, including the op's part.
    let elements = rope.attn_factor * (1.0 + 0.1 * length);
    let factor = elements * (1.0 + log_multiplier(keys)?.unwrap_or(0.0) * length);
    if (factor * factor).is_finite() && factor > 0.0 {
        return Ok(factor);
    }
    Err(keys.out_of_range(
        "rope.scaling.yarn_log_multiplier",
        factor,
        "a multiplier that leaves logits finite",
    ))
}
