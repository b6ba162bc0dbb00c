//! # tpc-ggml: support for ggml and llama.cpp
//!
//! - [`op`]: ggml's ops.
//! - [`capture`]: reads captured graphs into the IR, and writes them.
//! - [`meta`]: the rules of ggml's tensor split, and repairs of refused graphs.
//! - [`llama_cpp`]: llama.cpp's command lines.
//! - [`engines`]: facts about engine releases, and predictions from them.

pub mod capture;
pub mod engines;
pub mod llama_cpp;
pub mod meta;
pub mod op;
