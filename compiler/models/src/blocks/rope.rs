use tpc_ir::Value;
use tpc_ir::op::{Concat, InputKind, Rope};

use super::builder::Builder;
use super::context::{Context, LayerContext};
use crate::description::{Presence, RopeFactors, RopeForm, RotatedPart, WindowedRope};
use crate::error::ArchError;
use crate::hparams::{Reach, RopeUse};
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Rotates the heads `x: [dk, heads, n_tokens]`, if the layer rotates.
pub(super) fn rotate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let hp = cx.model.hparams;
    let (Some(form), Some([full, windowed]), RopeUse::Rotated) = (
        &cx.model.arch.attention.rope,
        &hp.positions.rope,
        cx.layer.rope,
    ) else {
        return Ok(x);
    };
    let rope = cx.layer.reach.select([full, windowed]);
    let positions = b.input(match rope.mode.sections() {
        None => InputKind::Positions,
        Some(_) => InputKind::PositionsMrope,
    });
    let mut operands = vec![x, positions];
    let divided = match (cx.layer.reach, form.windowed) {
        (Reach::Full, _) | (_, WindowedRope::Same | WindowedRope::OwnBase) => true,
        (
            Reach::Window,
            WindowedRope::Unscaled
            | WindowedRope::UnscaledOwnBase
            | WindowedRope::UnscaledPlainBase
            | WindowedRope::Local(_),
        ) => false,
    };
    if divided {
        operands.extend(divisors(b, cx, form, rope.n_dims)?);
    }
    b.push(rope.clone(), operands, name)
}

/// Rotates the last elements of the heads `x: [d, heads, n_tokens]`. `by` holds the other operands.
pub(super) fn rotate_last(
    b: &mut Builder<'_>,
    rope: &Rope,
    x: Value,
    by: Vec<Value>,
    name: &str,
) -> Result<Value, ArchError> {
    let d = b.dims(x)[0].as_const();
    let plain = d.map_or(0, |d| d.saturating_sub(rope.n_dims));
    let operands = |x| std::iter::once(x).chain(by).collect();
    if plain == 0 {
        return b.push(rope.clone(), operands(x), name);
    }
    let first = b.slice(x, 0, 0, plain.into(), name)?;
    let last = b.slice(x, 0, plain, rope.n_dims.into(), name)?;
    let last = b.push(rope.clone(), operands(last), name)?;
    b.push(Concat { axis: 0 }, vec![first, last], name)
}

/// Returns the optional divisors of the frequencies of `n_dims` elements. If layers rotate different numbers of
/// elements, they read the first divisors of one list.
fn divisors(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &RopeForm,
    n_dims: u64,
) -> Result<Option<Value>, ArchError> {
    let ropes = cx.model.hparams.positions.rope.as_ref();
    let layers = cx.model.hparams.layers.iter();
    let all = match (form.part, ropes) {
        (RotatedPart::HalfIfFull, Some([full, windowed])) => layers
            .map(|layer| layer.reach.select([full, windowed]).n_dims)
            .max(),
        _ => None,
    };
    let all = all.unwrap_or(n_dims).max(n_dims);
    let found = factors(b, &cx.model, form, all)?;
    match found {
        Some(found) if all > n_dims => b
            .slice(found, 0, 0, (n_dims / 2).into(), "rope_factors")
            .map(Some),
        found => Ok(found),
    }
}

/// Returns the optional divisors of the frequencies: one set for all contexts, or one set up to the original length and
/// another for longer contexts.
pub(super) fn factors(
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
        RopeFactors::One | RopeFactors::Required => Form::Usual,
        RopeFactors::ByContext => Form::Unusual,
    };
    let sizes = [Size {
        n: n_dims / 2,
        from: "half of rope.dimension_count",
    }];
    let find = |b: &mut Builder<'_>, name: &str| {
        b.find(name, &sizes, TensorRole::RopeFactors, Presence::Optional)
    };
    if form.factors == RopeFactors::Required {
        return b.require(ONE, &sizes, TensorRole::RopeFactors).map(Some);
    }
    if b.offers(ONE, usual) {
        return Ok(find(b, ONE)?.map(|one| b.load(&one)));
    }
    match (find(b, LONG)?, find(b, SHORT)?) {
        (Some(long), Some(short)) => {
            let extended = cx.options.ctx_size > cx.hparams.positions.n_ctx_orig;
            Ok(Some(b.load(if extended { &long } else { &short })))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing_partner(LONG, SHORT)),
        (None, Some(_)) => Err(missing_partner(SHORT, LONG)),
    }
}

fn missing_partner(present: &str, missing: &str) -> ArchError {
    ArchError::MissingPartner {
        present: present.to_owned(),
        missing: missing.to_owned(),
    }
}
