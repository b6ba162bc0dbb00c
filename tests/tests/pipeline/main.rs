//! Tests over the whole pipeline.

mod goldens;
mod headers;
mod random;
mod rules;
mod support;
mod tidy;
