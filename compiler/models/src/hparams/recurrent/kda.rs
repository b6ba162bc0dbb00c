use super::conv::{self, ConvHParams, TapsShape};
use crate::description::{KdaDecay, KdaForm, Presence};
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KdaHParams {
    pub(crate) form: KdaForm,
    pub(crate) convs: [ConvHParams; 3],
    pub(crate) heads: Size,
    pub(crate) head_dim: Size,
    pub(crate) width: Size,
    pub(crate) bound: Option<f32>,
}

const CONVS: [[&str; 2]; 3] = [
    ["ssm_conv1d_q", "cache_r_q"],
    ["ssm_conv1d_k", "cache_r_k"],
    ["ssm_conv1d_v", "cache_r_v"],
];

impl KdaHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: KdaForm,
        heads: u64,
    ) -> Result<KdaHParams, ArchError> {
        const BOUND: &str = "kda.gate_lower_bound";
        let heads = keys.require_in_layer(0, heads, "attention.head_count")?;
        let head_dim = keys.require_size("kda.head_dim")?;
        let width = Size::product(heads.n, head_dim.n, "attention.head_count × kda.head_dim")?;
        Size::product(width.n, head_dim.n, "attention.head_count × kda.head_dim²")?;
        let taps = conv::taps(keys, "ssm.conv_kernel")?;
        let bound = keys.below_0(BOUND)?;
        let bound = match form.decay {
            KdaDecay::Softplus => None,
            KdaDecay::SoftplusOrBounded => bound,
            KdaDecay::Bounded if bound.is_some() => bound,
            KdaDecay::Bounded => {
                return Err(keys.out_of_range(BOUND, "none", "a number below 0"));
            }
        };
        let conv = |[tensor, state]: [&'static str; 2]| ConvHParams {
            tensor,
            taps,
            channels: width,
            bias: Presence::Absent,
            shape: TapsShape::Separate,
            state,
        };
        Ok(KdaHParams {
            form,
            convs: CONVS.map(conv),
            heads,
            head_dim,
            width,
            bound,
        })
    }
}
