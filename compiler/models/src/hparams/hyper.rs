use super::keys::Keys;
use crate::description::HyperForm;
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HyperHParams {
    pub(crate) form: HyperForm,
    pub(crate) streams: Size,
    /// Elements of all streams together.
    pub(crate) width: Size,
    /// Number of gates of a sublayer: two per stream, plus the elements of the mixing matrix.
    pub(crate) gates: Size,
    pub(crate) rank: Size,
    /// Epsilon added to gates.
    pub(crate) eps: f32,
    /// Maximum gate on a sublayer's output.
    pub(crate) magnitude: f32,
    /// Number of normalisations of the mixing matrix.
    pub(crate) iterations: u64,
}

/// Maximum number of streams and of normalisations. Published models have far fewer.
const MOST: u64 = 1024;

impl HyperHParams {
    pub(super) fn read(keys: &Keys<'_>, form: HyperForm) -> Result<HyperHParams, ArchError> {
        const COUNT: &str = "hyper_connection.count";
        const RANK: &str = "hyper_connection.low_rank";
        const ITERATIONS: &str = "hyper_connection.sinkhorn_iterations";
        const EPS: &str = "hyper_connection.epsilon";
        let streams = keys.require_size(COUNT)?;
        if streams.n > MOST {
            return Err(keys.out_of_range(COUNT, streams.n, format!("at most {MOST}")));
        }
        let n_embd = keys.require_count("embedding_length")?;
        let width = "embedding_length × hyper_connection.count";
        let width = Size::product(n_embd, streams.n, width)?;
        let pairs = Size::product(2, streams.n, "2 × hyper_connection.count")?;
        let common = HyperHParams {
            form,
            streams,
            width,
            gates: pairs,
            rank: streams,
            eps: 0.0,
            magnitude: 2.0,
            iterations: 0,
        };
        Ok(match form {
            HyperForm::Gated => HyperHParams {
                eps: keys.require_epsilon(EPS)?,
                magnitude: keys.require_above_0("hyper_connection.magnitude")?,
                ..common
            },
            HyperForm::Mixed(_) => HyperHParams {
                gates: Size::product(
                    2 + streams.n,
                    streams.n,
                    "(2 + hyper_connection.count) × hyper_connection.count",
                )?,
                eps: keys.require_epsilon(EPS)?,
                iterations: match keys.require_count(ITERATIONS)? {
                    n if n > MOST => {
                        return Err(keys.out_of_range(ITERATIONS, n, format!("at most {MOST}")));
                    }
                    n => n,
                },
                ..common
            },
            HyperForm::LowRank => HyperHParams {
                rank: keys.require_size(RANK)?,
                ..common
            },
        })
    }
}
