//! Tests over the whole pipeline.

mod catalogue;
mod random;
mod rules;
