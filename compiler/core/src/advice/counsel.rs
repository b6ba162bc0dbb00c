//! Advice about a plan that does not fit, or that is slow.

use super::advisor::Advisor;
use super::class::Class;
use super::growth::Growth;
use super::price::{self, Advice, Shortfall};
use super::search::{Purpose, Search};
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

/// The advice about a plan that does not fit.
#[derive(Clone, Debug, Default)]
pub struct Counsel {
    /// Configurations that fit. Configurations that keep context, precision and sequences come first. Both groups are
    /// sorted by speed, the fastest first. A configuration that gives up more than another is faster.
    pub advice: Vec<Advice>,
    /// The number of devices of the same kind that the unchanged request needs.
    pub growth: Option<Growth>,
    /// The smallest amount of missing memory, if no configuration fits.
    pub shortfall: Option<Shortfall>,
    /// Plans tried.
    pub tried: usize,
    /// True if the search reached no limit.
    pub complete: bool,
}

impl Advisor<'_> {
    /// Searches for configurations that fit, given a plan `compiled` that does not.
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

    /// Searches for a configuration without losses that is faster than `compiled` by more than the error of estimates.
    pub fn faster(&self, placement: &Placement, compiled: &CompiledModel) -> Option<Advice> {
        let mut search = Search::new(self, placement, compiled, Purpose::Speed)?;
        let now = price::per_token(&compiled.estimate);
        let best = search.fastest(&[Class::default()]).into_iter().next()?;
        let margin = 1.0 + compiled.estimate.error.max(price::LEAST_ERROR);
        (best.us_per_token * margin < now && best.decode_tps > compiled.estimate.decode_tps)
            .then_some(best)
    }
}
