use tpc_passes::machine::Engine;

use super::effort::Limits;
use super::price::Advice;
use crate::pipeline::{CompiledModel, Origin};

/// A function that the search calls after every plan.
pub type ProgressHook<'a> = dyn Fn() + Sync + 'a;

/// Checks an advice and its plan. The function may reword the advice; it returns true to show the advice.
pub type AdviceCheck<'a> = dyn Fn(&mut Advice, &CompiledModel) -> bool + Sync + 'a;

/// Searches for better configurations of one model.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The model.
    pub origin: Origin<'a>,
    /// Work limit of a search.
    pub limits: Limits,
    /// Called after every plan.
    pub watch: &'a ProgressHook<'a>,
    /// The engine that the advice is for. The advice contains no tensor split that this engine refuses.
    pub engine: Engine,
    /// True if the user gave no shares. The placement then has the engine's shares for `-sm layer`.
    pub implied_shares: bool,
    /// The last check of each advice.
    pub vet: &'a AdviceCheck<'a>,
}
