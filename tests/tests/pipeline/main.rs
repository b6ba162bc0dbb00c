//! Tests over the whole pipeline.

mod random;
mod rules;
