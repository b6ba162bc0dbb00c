//! The sum of a sublayer's input and output.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use crate::description::ResidualSum;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sublayer {
    Mixer,
    Ffn,
}

/// Returns the sum of the sublayer's input `x` and output `y`, `[n_embd, n_tokens]`.
pub(super) fn add(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sublayer: Sublayer,
    [x, y]: [Value; 2],
    name: &str,
) -> Result<Value, ArchError> {
    let [x, y] = match cx.model.arch.residual_sum {
        ResidualSum::Plain => [x, y],
        ResidualSum::ByElement => {
            let [alpha, beta] = match sublayer {
                Sublayer::Mixer => ["attn_resid_alpha", "attn_resid_beta"],
                Sublayer::Ffn => ["ffn_resid_alpha", "ffn_resid_beta"],
            };
            let embd = cx.model.hparams.embd();
            [weigh(b, alpha, embd, x)?, weigh(b, beta, embd, y)?]
        }
        ResidualSum::Kept => {
            let tensor = match sublayer {
                Sublayer::Mixer => "attn_resid_scale",
                Sublayer::Ffn => "ffn_resid_scale",
            };
            let one = Size::new(1, "one number");
            [weigh(b, tensor, one, x)?, y]
        }
        ResidualSum::ByDepth => {
            let [kept, added] = by_depth(cx.layer.index, sublayer);
            [
                b.scale(x, kept, "residual_kept")?,
                b.scale(y, added, "residual_scaled")?,
            ]
        }
    };
    b.add(y, x, name)
}

/// Multiplies the elements of `x` by the numbers of a tensor of this size.
fn weigh(b: &mut Builder<'_>, tensor: &str, size: Size, x: Value) -> Result<Value, ArchError> {
    let name = b.tensor_name(tensor, "weight");
    let weight = b.require(&name, &[size], TensorRole::Scale)?;
    b.mul(x, weight, tensor)
}

/// Returns the factors on a sublayer's input and output.
fn by_depth(layer: u32, sublayer: Sublayer) -> [f32; 2] {
    let before = match sublayer {
        Sublayer::Mixer => 2 * layer,
        Sublayer::Ffn => 2 * layer + 1,
    };
    let n = f64::from(before) + 2.0;
    [((n - 1.0) / n).sqrt() as f32, (1.0 / n.sqrt()) as f32]
}
