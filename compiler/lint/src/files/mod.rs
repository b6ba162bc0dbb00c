//! Lints of model files.

mod alignment;
mod aside;
mod beyond_blocks;
mod big_endian;
mod block_lengths;
mod file_type;
mod foreign_key;
mod norm_type;
mod not_finite;
mod odd_blocks;
mod quant_version;
mod rope_base;
mod rope_factor;
mod rope_reach;
mod router_type;
mod special_tokens;
mod token_lists;
mod twice;
mod unknown_key;
mod unused;
mod vocabulary;
mod zeros;

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};

pub use odd_blocks::is_uneven;

/// The code for a width that several devices cannot share evenly.
pub static UNEVEN: &Code = &odd_blocks::LINT.code;

pub(super) static LINTS: &[&Lint] = &[
    &unused::LINT,
    &beyond_blocks::LINT,
    &aside::LINT,
    &vocabulary::LINT,
    &special_tokens::LINT,
    &token_lists::LINT,
    &rope_reach::LINT,
    &rope_factor::LINT,
    &rope_base::LINT,
    &twice::LINT,
    &block_lengths::LINT,
    &odd_blocks::LINT,
    &alignment::LINT,
    &router_type::LINT,
    &norm_type::LINT,
    &not_finite::LINT,
    &zeros::LINT,
    &file_type::LINT,
    &quant_version::LINT,
    &big_endian::LINT,
    &unknown_key::LINT,
    &foreign_key::LINT,
];
