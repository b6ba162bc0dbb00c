//! Weighted sums of consecutive tokens' values. The weights are, per element, a softmax of scores.

use tpc_ir::op::{Binary, BinaryKind, UnaryKind};
use tpc_ir::{Dim, Value};

use crate::blocks::builder::Builder;
use crate::error::ArchError;

const NAME: &str = "block_pool";

/// Values and scores, `[steps, channels, n_seqs]` each.
#[derive(Clone, Copy)]
pub(super) struct ScoredValues {
    pub(super) values: Value,
    pub(super) scores: Value,
}

/// Returns the weighted sum of each block of `tokens` consecutive steps. `tokens` is a power of two: each round merges
/// adjacent sums, which doubles the number of steps per sum.
pub(super) fn pool(
    b: &mut Builder<'_>,
    x: ScoredValues,
    tokens: u64,
) -> Result<ScoredValues, ArchError> {
    let mut x = x;
    let mut len = 1;
    while len < tokens {
        let steps = b.dims(x.values)[0].clone();
        let both = steps
            .checked_sub(&len.into())
            .expect("invariant: a window has the steps of a block before its tokens");
        let earlier = part(b, x, 0, both.clone())?;
        let later = part(b, x, len, both)?;
        x = merge(b, earlier, later, None)?;
        len *= 2;
    }
    Ok(x)
}

/// Returns the weighted sum of two parts. `share` multiplies the weight of `first`; the result then keeps only the
/// scores of `second`.
pub(super) fn merge(
    b: &mut Builder<'_>,
    first: ScoredValues,
    second: ScoredValues,
    share: Option<Value>,
) -> Result<ScoredValues, ArchError> {
    let minus = Binary {
        kind: BinaryKind::Sub,
    };
    // The larger score gets the larger weight, so very different scores do not overflow.
    let above = b.push(minus.clone(), vec![first.scores, second.scores], NAME)?;
    let mut weight = b.unary(&[UnaryKind::Sigmoid], above, NAME)?;
    let mut scores = second.scores;
    match share {
        Some(share) => weight = b.mul(weight, share, NAME)?,
        None => {
            let more = b.unary(&[UnaryKind::Softplus], above, NAME)?;
            scores = b.add(second.scores, more, NAME)?;
        }
    }
    let apart = b.push(minus, vec![first.values, second.values], NAME)?;
    let apart = b.mul(apart, weight, NAME)?;
    let values = b.add(second.values, apart, NAME)?;
    Ok(ScoredValues { values, scores })
}

pub(super) fn part(
    b: &mut Builder<'_>,
    x: ScoredValues,
    start: u64,
    len: Dim,
) -> Result<ScoredValues, ArchError> {
    Ok(ScoredValues {
        values: b.slice(x.values, 0, start, len.clone(), NAME)?,
        scores: b.slice(x.scores, 0, start, len, NAME)?,
    })
}
