//! Lints of captured graphs.

mod cache_unread;
mod cache_unwritten;
mod dead;
mod epsilons;
mod flattened_rotation;
mod grouping;
mod half_arithmetic;
mod mask_type;
mod needless_copy;
mod no_effect;
mod no_mask;
mod odd_layer;
mod precision;
mod repeated;
mod rotation_sizes;
mod scales;
mod unread_leaf;
mod weight_copied;
mod zero_epsilon;

use super::{Capture, Check, EntityKind, Lint};

pub(super) static LINTS: &[&Lint] = &[
    &dead::LINT,
    &repeated::LINT,
    &needless_copy::LINT,
    &cache_unread::LINT,
    &cache_unwritten::LINT,
    &no_mask::LINT,
    &mask_type::LINT,
    &precision::LINT,
    &zero_epsilon::LINT,
    &epsilons::LINT,
    &scales::LINT,
    &grouping::LINT,
    &rotation_sizes::LINT,
    &odd_layer::LINT,
    &flattened_rotation::LINT,
    &half_arithmetic::LINT,
    &unread_leaf::LINT,
    &weight_copied::LINT,
    &no_effect::LINT,
];
