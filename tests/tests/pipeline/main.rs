//! Tests over the whole pipeline.

mod alike;
mod captures;
mod catalogue;
mod decoding;
mod goldens;
mod graphs;
mod headers;
mod hostile;
mod kv_types;
mod random;
mod recurrent;
mod router;
mod rules;
mod states;
mod support;
mod synthetic;
mod tidy;
