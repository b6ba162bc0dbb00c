use super::keys::Keys;
use crate::description::Activation;
use crate::error::ArchError;
use tpc_ir::op::Xielu;

/// A layer's parameters of xIELU. Files hold the factors before a softplus, and the lower one without `beta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct XieluHParams {
    alpha_n: f32,
    alpha_p: f32,
    beta: f32,
    eps: f32,
}

impl XieluHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        activation: &Activation,
        n_layer: usize,
    ) -> Result<Option<Vec<XieluHParams>>, ArchError> {
        match activation {
            Activation::Xielu => {}
            Activation::Gated(_)
            | Activation::GatedFused(_)
            | Activation::Situ
            | Activation::Plain(_) => return Ok(None),
        }
        let read = |key| keys.require_shared_floats(key, n_layer);
        let (alpha_n, alpha_p) = (read("xielu.alpha_n")?, read("xielu.alpha_p")?);
        let (beta, eps) = (read("xielu.beta")?, read("xielu.eps")?);
        let layer = |il: usize| {
            let hp = XieluHParams {
                alpha_n: beta[il] + softplus(alpha_n[il]),
                alpha_p: softplus(alpha_p[il]),
                beta: beta[il],
                eps: eps[il],
            };
            if hp.alpha_n.is_finite() {
                return Ok(hp);
            }
            Err(ArchError::OutOfRange {
                key: "xielu.alpha_n".into(),
                found: alpha_n[il].to_string(),
                expected: "a number whose sum with xielu.beta is finite".into(),
            })
        };
        (0..n_layer).map(layer).collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn op(self) -> Xielu {
        Xielu {
            alpha_n: self.alpha_n,
            alpha_p: self.alpha_p,
            beta: self.beta,
            eps: self.eps,
        }
    }
}

fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}
