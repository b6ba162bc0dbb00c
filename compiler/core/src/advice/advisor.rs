//! The adviser on plans of one model.

use tpc_passes::machine::Engine;

use super::effort::Limits;
use super::price::Advice;
use crate::pipeline::{CompiledModel, Origin};

/// A function that the search calls after every plan that it tries.
pub type ProgressHook<'a> = dyn Fn() + Sync + 'a;

/// A check of an advice and its plan, which may reword the advice. It returns true if the advice is shown.
pub type AdviceCheck<'a> = dyn Fn(&mut Advice, &CompiledModel) -> bool + Sync + 'a;

/// The adviser, with the model and the limits of its searches.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The model.
    pub origin: Origin<'a>,
    /// The limits of a search.
    pub limits: Limits,
    /// The function to call after every plan.
    pub watch: &'a ProgressHook<'a>,
    /// The engine of the advice: tensor splits that it refuses are not advised.
    pub engine: Engine,
    /// True if the user gave no shares, and the placement has the engine's own shares for `-sm layer`.
    pub implied_shares: bool,
    /// The last check of an advice. It may reword the advice, and returns true if it is shown.
    pub vet: &'a AdviceCheck<'a>,
}
