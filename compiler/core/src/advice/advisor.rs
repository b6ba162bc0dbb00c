//! The adviser on plans of one model.

use tpc_passes::machine::Engine;

use super::effort::Limits;
use super::price::Advice;
use crate::pipeline::{CompiledModel, Origin};

/// What is called after every plan that the search has tried.
pub type ProgressHook<'a> = dyn Fn() + Sync + 'a;

/// A check of an advice and its plan, which may reword the advice: whether it is shown.
pub type AdviceCheck<'a> = dyn Fn(&mut Advice, &CompiledModel) -> bool + Sync + 'a;

/// Whoever gives advice about the plans of one model.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The model.
    pub origin: Origin<'a>,
    /// The limits of a search.
    pub limits: Limits,
    /// What is called after every plan that was tried.
    pub watch: &'a ProgressHook<'a>,
    /// The engine that the advice is for: no advice asks for a tensor split that it refuses.
    pub engine: Engine,
    /// Whether the placement's shares are what the engine does by itself under `-sm layer`, and nobody gave them.
    pub implied_shares: bool,
    /// The last check of an advice, which may reword it: whether it is shown.
    pub vet: &'a AdviceCheck<'a>,
}
