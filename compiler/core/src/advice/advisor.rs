//! The adviser on plans of one model.

use tpc_passes::machine::Engine;

use super::effort::Limits;
use super::price::Advice;
use crate::pipeline::{CompiledModel, Origin};

/// A function that the search calls after every plan.
pub type ProgressHook<'a> = dyn Fn() + Sync + 'a;

/// Checks an advice and its plan. The function may reword the advice, and returns true to show it.
pub type AdviceCheck<'a> = dyn Fn(&mut Advice, &CompiledModel) -> bool + Sync + 'a;

/// The adviser on plans of one model.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The model.
    pub origin: Origin<'a>,
    /// Limits of a search.
    pub limits: Limits,
    /// Called after every plan.
    pub watch: &'a ProgressHook<'a>,
    /// The engine of the advice; tensor splits that it refuses are not advised.
    pub engine: Engine,
    /// True if the user gave no shares, so that the placement has the engine's own for `-sm layer`.
    pub implied_shares: bool,
    /// The last check of an advice.
    pub vet: &'a AdviceCheck<'a>,
}
