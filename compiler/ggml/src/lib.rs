//! # tpc-ggml: support for ggml and llama.cpp
//!
//! - [`op`]: ggml's ops, typed.
//! - [`capture`]: captured ggml graphs, read into the IR and written from it.
//! - [`meta`]: the splitting rules of ggml's multi-device back end, and rewrites of graphs that they refuse.
//! - [`llama_cpp`]: command lines of llama.cpp.
//! - [`engines`]: facts about releases of engines, and predictions from them.

pub mod capture;
pub mod engines;
pub mod llama_cpp;
pub mod meta;
pub mod op;
