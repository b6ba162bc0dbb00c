//! Lints of plans.

pub(super) mod capacity;
mod chosen_mode;
mod cut_factor;
mod foreign_types;
mod held_twice;
mod idle_device;
mod no_gain;
mod opaque_op;
mod round_trips;
mod shared_kv_heads;
mod towers;
mod unproven;
mod unsaturated;
mod whole_op;
mod whole_weight;

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};

/// The code of the note on the split mode chosen by `auto`.
pub static CHOSEN_MODE: &Code = &chosen_mode::LINT.code;

/// The code for a device or host with too little memory.
pub static CAPACITY: &Code = &capacity::LINT.code;

/// The codes of findings that are notes for tpc and errors for a llama.cpp command line.
pub(super) static ENGINE_ERRORS: [&Code; 2] = [&towers::LINT.code, &foreign_types::LINT.code];

pub(super) static LINTS: &[&Lint] = &[
    &towers::LINT,
    &foreign_types::LINT,
    &capacity::LINT,
    &chosen_mode::LINT,
    &whole_weight::LINT,
    &whole_op::LINT,
    &held_twice::LINT,
    &idle_device::LINT,
    &shared_kv_heads::LINT,
    &round_trips::LINT,
    &no_gain::LINT,
    &unproven::LINT,
    &unsaturated::LINT,
    &cut_factor::LINT,
    &opaque_op::LINT,
];
