//! # tpc-ggml: ggml and llama.cpp as tpc sees them
//!
//! - [`op`]: ggml's ops, typed.
//! - [`capture`]: captured ggml graphs, read into the IR and written from it.
//! - [`meta`]: the splitting rules of ggml's backend of several devices, and rewrites of what they refuse.
//! - [`llama_cpp`]: command lines of llama.cpp.
//! - [`engines`]: facts about releases of engines, and predictions from them.

pub mod capture;
pub mod engines;
pub mod llama_cpp;
pub mod meta;
pub mod op;
