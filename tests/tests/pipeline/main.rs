//! Tests over the whole pipeline.

mod advice;
mod alike;
mod campaign;
mod captures;
mod catalogue;
mod confirmed;
mod copies;
mod cross_check;
mod decoding;
mod drafts;
mod first_screen;
mod ggml_meta;
mod ggml_ops;
mod goldens;
mod graphs;
mod headers;
mod hostile;
mod kv_types;
mod lints;
mod memory;
mod mutants;
mod numeric;
mod placements;
mod proof;
mod random;
mod rare;
mod recurrent;
mod rewriting;
mod router;
mod rules;
mod speeds;
mod states;
mod support;
mod synthetic;
mod tidy;

/// The allocator of the program, so that times and bytes are those that its users have.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
