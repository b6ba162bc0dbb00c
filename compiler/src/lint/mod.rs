//! What a plan's numbers say that its user should know: one lint per file, one line each in [`LINTS`].

mod capacity;
mod chosen_mode;
mod context;
mod cut_factor;
mod held_twice;
mod idle_device;
mod no_gain;
mod opaque_op;
mod override_unused;
mod round_trips;
mod rounding;
mod shared_kv_heads;
mod unproven;
mod whole_weight;

use tpc_ir::CodeDoc;

use crate::diag::Diagnostic;
use crate::pipeline::Compiled;
use crate::placement::Placement;
use crate::report::PlanReport;

/// A plan as lints see it.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// What was asked for.
    pub placement: &'a Placement,
    /// The plan.
    pub compiled: &'a Compiled,
    /// Its numbers.
    pub report: &'a PlanReport,
}

/// A lint: its code with what `tpc explain` says of it, and what finds it.
pub struct Lint {
    /// The code.
    pub doc: CodeDoc,
    /// Adds a diagnostic per finding.
    check: fn(&Plan<'_>, &mut Vec<Diagnostic>),
}

/// Every lint, in the order in which findings are told.
pub const LINTS: &[&Lint] = &[
    &capacity::LINT,
    &chosen_mode::LINT,
    &override_unused::LINT,
    &context::LINT,
    &whole_weight::LINT,
    &held_twice::LINT,
    &idle_device::LINT,
    &shared_kv_heads::LINT,
    &rounding::LINT,
    &round_trips::LINT,
    &no_gain::LINT,
    &unproven::LINT,
    &cut_factor::LINT,
    &opaque_op::LINT,
];

/// The findings of a plan.
pub fn findings(plan: &Plan<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    LINTS.iter().for_each(|lint| (lint.check)(plan, &mut out));
    out
}
