use super::conv::{self, ConvHParams, TapsShape};
use crate::description::{Mamba1Form, ScanHeads, ScanNorms};
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mamba1HParams {
    pub(crate) form: Mamba1Form,
    pub(crate) conv: ConvHParams,
    pub(crate) inner: Size,
    pub(crate) heads: Size,
    pub(crate) head_dim: u64,
    /// Size of the vector that steps are projected from.
    pub(crate) rank: Size,
    pub(crate) d_state: Size,
    /// Rows of the input projection: convolution input and gate.
    pub(crate) projected: Size,
    /// Rows of the projection to steps, `B` and `C`.
    pub(crate) selected: Size,
    /// True if steps, `B` and `C` are normalised.
    pub(crate) normed: bool,
}

const INNER: &str = "ssm.inner_size";
const STEP: &str = "ssm.time_step_rank";
const STATE: &str = "ssm.state_size";

/// Minimum default rank of steps. The default is the width divided by `RANK_SHARE`.
const LEAST_RANK: u64 = 64;
const RANK_SHARE: u64 = 16;

impl Mamba1HParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: Mamba1Form,
        embd: Size,
    ) -> Result<Mamba1HParams, ArchError> {
        let (inner, step, d_state) = (
            keys.require_size(INNER)?,
            keys.require_size(STEP)?,
            keys.require_size(STATE)?,
        );
        let (heads, rank) = match form.heads {
            ScanHeads::Channels => (inner, step),
            ScanHeads::Given => {
                let rank = (embd.n / RANK_SHARE).max(LEAST_RANK);
                (step, Size::new(rank, "embedding_length / 16, at least 64"))
            }
        };
        keys.require_divisor(STEP, heads.n, INNER, inner.n)?;
        Size::product(inner.n, d_state.n, "ssm.inner_size × ssm.state_size")?;
        Ok(Mamba1HParams {
            form,
            conv: ConvHParams {
                tensor: "ssm_conv1d",
                taps: conv::taps(keys, "ssm.conv_kernel")?,
                channels: inner,
                bias: form.conv_bias,
                shape: TapsShape::Matrix,
                state: conv::ONLY_STATE,
            },
            head_dim: inner.n / heads.n,
            projected: Size::product(2, inner.n, "2 × ssm.inner_size")?,
            selected: Size::try_new(
                rank.n + 2 * d_state.n,
                "the rank of steps + 2 × ssm.state_size",
            )?,
            normed: match form.norms {
                ScanNorms::Weighted => true,
                ScanNorms::PlainByKey => keys.flag("ssm.dt_b_c_rms")?.unwrap_or(false),
            },
            inner,
            heads,
            rank,
            d_state,
        })
    }
}
