//! Lints of configurations: options that are probably unintended.

mod batch_beyond;
pub(crate) mod context;
mod device_shared;
mod drafts_aside;
mod host_for_nothing;
mod large_cache;
mod layer_prefix;
mod lopsided;
mod moe_beyond;
mod narrow_sequences;
mod override_shadowed;
mod override_unused;
mod profile_repeated;
mod rounding;
mod slow_link;
mod small_batch;
mod split_ignored;
mod wide_cache;
mod zero_share;

use super::{Check, EntityKind, Lint, Plan};
use tpc_ir::Code;

/// The code for shares that differ from the request.
pub static SHARES: &Code = &rounding::LINT.code;

/// The code for too few cells per sequence.
pub static NARROW: &Code = &narrow_sequences::LINT.code;

pub(super) static LINTS: &[&Lint] = &[
    &override_unused::LINT,
    &override_shadowed::LINT,
    &layer_prefix::LINT,
    &context::LINT,
    &large_cache::LINT,
    &batch_beyond::LINT,
    &small_batch::LINT,
    &narrow_sequences::LINT,
    &rounding::LINT,
    &zero_share::LINT,
    &split_ignored::LINT,
    &lopsided::LINT,
    &wide_cache::LINT,
    &host_for_nothing::LINT,
    &moe_beyond::LINT,
    &profile_repeated::LINT,
    &device_shared::LINT,
    &slow_link::LINT,
    &drafts_aside::LINT,
];
