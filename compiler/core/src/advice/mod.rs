//! Advice: configurations that fit where the one asked for does not, or that are faster, each planned before it is named.
//!
//! A configuration is a point of a `space`: a way to divide the model, shares, what is on the host, the context,
//! the types of the caches, sequences and batches. The points are too many to be planned. A `bound` tells of each
//! in microseconds whether it can fit and about how fast it is; it is learnt from a few sketches of plans. The
//! `search` plans the best points for real, corrects the bound by what it finds, and proves what it names.
//!
//! Points differ in what they give up: context, precision of the caches, sequences. Of each set of these the fastest point
//! is named, unless one that gives up less is as fast.

mod bound;
mod change;
mod class;
mod effort;
mod growth;
mod learning;
mod moves;
mod naming;
mod placed;
mod price;
mod search;
mod shares;
mod space;
mod trial;

pub use change::Change;
pub use effort::Limits;
pub use growth::Growth;
pub use price::{Advice, Shortfall};

use tpc_passes::machine::Engine;

use crate::pipeline::{Compiled, Origin};
use crate::placement::Placement;
use class::Class;
use search::{Purpose, Search};

/// What is called after every plan that the search has tried.
pub type Watch<'a> = dyn Fn() + Sync + 'a;

/// A check of an advice and its plan, which may reword the advice: whether it is shown.
pub type Vet<'a> = dyn Fn(&mut Advice, &Compiled) -> bool + Sync + 'a;

/// Whoever gives advice about the plans of one model.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The model.
    pub origin: Origin<'a>,
    /// The limits of a search.
    pub limits: Limits,
    /// What is called after every plan that was tried.
    pub watch: &'a Watch<'a>,
    /// The engine that the advice is for: no advice asks for a tensor split that it refuses.
    pub engine: Engine,
    /// Whether the placement's shares are what the engine does by itself under `-sm layer`, and nobody gave them.
    pub implied_shares: bool,
    /// The last check of an advice, which may reword it: whether it is shown.
    pub vet: &'a Vet<'a>,
}

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
    pub fn counsel(&self, placement: &Placement, compiled: &Compiled) -> Counsel {
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
    pub fn faster(&self, placement: &Placement, compiled: &Compiled) -> Option<Advice> {
        let mut search = Search::new(self, placement, compiled, Purpose::Speed)?;
        let now = price::per_token(&compiled.estimate);
        let best = search.fastest(&[Class::default()]).into_iter().next()?;
        let margin = 1.0 + compiled.estimate.error.max(price::LEAST_ERROR);
        (best.us_per_token * margin < now && best.decode_tps > compiled.estimate.decode_tps)
            .then_some(best)
    }
}
