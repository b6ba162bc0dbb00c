use tpc_ir::op::{Temperature, TemperatureCurve};

use super::keys::Keys;
use crate::description::{
    Alibi, AttentionForm, EmbeddingScale, KeyUse, LogitScale, ResidualScale, ScaleRule,
    TemperatureForm,
};
use crate::error::ArchError;

/// Returns a key's number; `None` for 0.
pub(super) fn factor(keys: &Keys<'_>, used: KeyUse, key: &str) -> Result<Option<f32>, ArchError> {
    let given = match used {
        KeyUse::Ignored => return Ok(None),
        KeyUse::Read => keys.float(key)?,
        KeyUse::ReadOr(default) => Some(keys.float(key)?.unwrap_or(default)),
    };
    Ok(given.filter(|&x| x != 0.0))
}

/// Returns a key's bound, if above 0.
pub(super) fn bound(keys: &Keys<'_>, used: KeyUse, key: &str) -> Result<Option<f32>, ArchError> {
    match used {
        KeyUse::Ignored => Ok(None),
        KeyUse::Read | KeyUse::ReadOr(_) => keys.positive(key),
    }
}

pub(super) fn embedding_scale(
    keys: &Keys<'_>,
    form: EmbeddingScale,
    n_embd: u64,
) -> Result<Option<f32>, ArchError> {
    match form {
        EmbeddingScale::One => Ok(None),
        EmbeddingScale::RootOfWidth => Ok(Some((n_embd as f32).sqrt())),
        EmbeddingScale::Key => factor(keys, KeyUse::Read, "embedding_scale"),
        EmbeddingScale::KeyOr(scale) => factor(keys, KeyUse::ReadOr(scale), "embedding_scale"),
        EmbeddingScale::Fixed(scale) => Ok(Some(scale)),
    }
}

pub(super) fn residual_scale(
    keys: &Keys<'_>,
    form: ResidualScale,
    n_layer: usize,
) -> Result<Option<f32>, ArchError> {
    const KEY: &str = "residual_scale";
    let over_root = |scale: f32| scale / (n_layer as f32).sqrt();
    match form {
        ResidualScale::One => Ok(None),
        ResidualScale::Key => factor(keys, KeyUse::Read, KEY),
        ResidualScale::OverRootOfDepth(scale) => Ok(Some(over_root(scale))),
        ResidualScale::KeyOrOverRootOfDepth(scale) => {
            factor(keys, KeyUse::ReadOr(over_root(scale)), KEY)
        }
    }
}

pub(super) fn logit_scale(
    keys: &Keys<'_>,
    form: LogitScale,
    n_embd: u64,
) -> Result<Option<f32>, ArchError> {
    const KEY: &str = "logit_scale";
    let inverse = |divisor: Option<f32>| match divisor {
        None => Ok(None),
        Some(x) if (1.0 / x).is_finite() => Ok(Some(1.0 / x)),
        Some(x) => Err(keys.out_of_range(KEY, x, "a number whose inverse is finite")),
    };
    match form {
        LogitScale::None => Ok(None),
        LogitScale::Factor => factor(keys, KeyUse::Read, KEY),
        LogitScale::FactorOr(scale) => factor(keys, KeyUse::ReadOr(scale), KEY),
        LogitScale::Divisor => inverse(factor(keys, KeyUse::Read, KEY)?),
        LogitScale::DivisorOrOverWidth(scale) => {
            let given = KeyUse::ReadOr(scale / n_embd as f32);
            inverse(factor(keys, given, KEY)?)
        }
        LogitScale::OverWidth(scale) => Ok(Some(scale / n_embd as f32)),
    }
}

pub(super) fn alibi(keys: &Keys<'_>, form: Alibi, n_layer: usize) -> Result<f32, ArchError> {
    const KEY: &str = "attention.max_alibi_bias";
    let default = match form {
        Alibi::None => return Ok(0.0),
        Alibi::Key => 0.0,
        Alibi::In(models, bias) if models.include(n_layer) => bias,
        Alibi::In(..) => 0.0,
    };
    Ok(keys.positive(KEY)?.unwrap_or(default))
}

pub(super) fn temperature(
    keys: &Keys<'_>,
    form: TemperatureForm,
    n_ctx_orig: u64,
) -> Result<Option<Temperature>, ArchError> {
    const SCALE: &str = "attention.temperature_scale";
    const LENGTH: &str = "attention.temperature_length";
    let length = match form {
        TemperatureForm::None => None,
        TemperatureForm::PerContext => Some(n_ctx_orig),
        TemperatureForm::PerLength => keys.count(LENGTH)?,
        TemperatureForm::Unrotated { scale, length } => {
            return Ok(Some(Temperature {
                scale,
                length,
                offset: 1.0,
                curve: TemperatureCurve::Logarithm,
            }));
        }
        TemperatureForm::UnrotatedPower { scale, length } => {
            return Ok(Some(Temperature {
                scale: factor(keys, KeyUse::Read, SCALE)?.unwrap_or(scale),
                length: keys.count(LENGTH)?.unwrap_or(length),
                offset: 1.0,
                curve: TemperatureCurve::Power,
            }));
        }
    };
    let Some(length) = length else {
        return Ok(None);
    };
    let scale = factor(keys, KeyUse::Read, SCALE)?;
    Ok(scale.map(|scale| Temperature {
        scale,
        length,
        offset: 0.0,
        curve: TemperatureCurve::Logarithm,
    }))
}

/// Reads the factor on dot products of heads of `dk` elements. `share` is the model width divided by the number of
/// heads.
pub(super) fn attention_scale(
    keys: &Keys<'_>,
    form: &AttentionForm,
    n_layer: usize,
    dk: u64,
    share: u64,
) -> Result<f32, ArchError> {
    if let ScaleRule::OutputKey(default) = form.scale {
        let given = keys.positive("attention.output_scale")?;
        return Ok(given.unwrap_or(default));
    }
    if let Some(scale) = keys.positive("attention.scale")? {
        return Ok(scale);
    }
    let size = match form.scale {
        ScaleRule::One | ScaleRule::OutputKey(_) => 1,
        ScaleRule::HeadSquared => return Ok(1.0 / dk.max(1) as f32),
        ScaleRule::WidthIn(models) if models.include(n_layer) => share,
        ScaleRule::Head | ScaleRule::WidthIn(_) => dk,
    };
    Ok(1.0 / (size.max(1) as f32).sqrt())
}
