//! Advice about a plan that does not fit, or that is slow.

use super::advisor::Advisor;
use super::class::Class;
use super::growth::Growth;
use super::price::{self, Advice, Shortfall};
use super::search::{Purpose, Search};
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

/// What to do about a plan that does not fit.
#[derive(Clone, Debug, Default)]
pub struct Counsel {
    /// Configurations that fit: first those that give up nothing, then the others, the fastest first; none of them gives up more
    /// than another without being faster.
    pub advice: Vec<Advice>,
    /// How many devices of the same kind suffice for all as it was asked.
    pub growth: Option<Growth>,
    /// Where nothing fits, what is missing at least.
    pub shortfall: Option<Shortfall>,
    /// Plans that were tried.
    pub tried: usize,
    /// Whether the search ended before a limit did.
    pub complete: bool,
}

impl Advisor<'_> {
    /// The configurations under which a model fits that does not fit as `compiled` under `placement`.
    pub fn counsel(&self, placement: &Placement, compiled: &CompiledModel) -> Counsel {
        let Some(mut search) = Search::new(self, placement, compiled, Purpose::Fit) else {
            return Counsel {
                complete: true,
                ..Counsel::default()
            };
        };
        let advice = search.fastest(&Class::all(placement));
        let growth = search.growth();
        let shortfall = (advice.is_empty()).then(|| search.shortfall()).flatten();
        Counsel {
            advice,
            growth,
            shortfall,
            tried: search.effort.tried,
            complete: search.effort.complete,
        }
    }

    /// A configuration that gives up nothing and is faster than `compiled` by more than estimates err; `None` where the
    /// search finds none.
    pub fn faster(&self, placement: &Placement, compiled: &CompiledModel) -> Option<Advice> {
        let mut search = Search::new(self, placement, compiled, Purpose::Speed)?;
        let now = price::per_token(&compiled.estimate);
        let best = search.fastest(&[Class::default()]).into_iter().next()?;
        let margin = 1.0 + compiled.estimate.error.max(price::LEAST_ERROR);
        (best.us_per_token * margin < now && best.decode_tps > compiled.estimate.decode_tps)
            .then_some(best)
    }
}
