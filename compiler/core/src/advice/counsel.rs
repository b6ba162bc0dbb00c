use super::advisor::Advisor;
use super::class::Class;
use super::growth::Growth;
use super::price::{self, Advice, Shortfall};
use super::search::{Purpose, Search};
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

/// Advice about a plan that does not fit.
#[derive(Clone, Debug, Default)]
pub struct Counsel {
    /// Fitting configurations. Configurations without losses come first; both groups are sorted by speed. A
    /// configuration with more losses than another is faster.
    pub advice: Vec<Advice>,
    /// The number of equal devices that the unchanged request needs.
    pub growth: Option<Growth>,
    /// The smallest amount of missing memory, if no configuration fits.
    pub shortfall: Option<Shortfall>,
    /// Number of plans tried.
    pub tried: usize,
    /// True if the work limit did not stop the search.
    pub complete: bool,
}

impl Advisor<'_> {
    /// Searches for configurations that fit. The plan `compiled` does not fit.
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

    /// Searches for a configuration without losses that is faster than `compiled` by more than the estimates' error.
    pub fn faster(&self, placement: &Placement, compiled: &CompiledModel) -> Option<Advice> {
        let mut search = Search::new(self, placement, compiled, Purpose::Speed)?;
        let now = price::per_token(&compiled.estimate);
        let best = search.fastest(&[Class::default()]).into_iter().next()?;
        let margin = 1.0 + compiled.estimate.error.max(price::LEAST_ERROR);
        (best.us_per_token * margin < now && best.decode_tps > compiled.estimate.decode_tps)
            .then_some(best)
    }
}
