//! Tests over the whole pipeline.

mod advice;
mod alike;
mod captures;
mod catalogue;
mod copies;
mod cross_check;
mod decoding;
mod ggml_ops;
mod goldens;
mod graphs;
mod headers;
mod hostile;
mod kv_types;
mod lints;
mod memory;
mod peer;
mod placements;
mod random;
mod rare;
mod recurrent;
mod router;
mod rules;
mod states;
mod support;
mod synthetic;
mod tidy;
