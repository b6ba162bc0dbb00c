//! # tpc: a compiler for tensor-parallel inference of quantised GGUF models
//!
//! The crate reads GGUF files ([`gguf`]), lowers architectures to the IR ([`arch`]), runs the passes over it
//! ([`pipeline`]) and reports what came out ([`report`]); [`synth`] makes models to try all that on.
//! The `tpc` program is [`cli`].

pub mod advice;
pub mod arch;
pub mod capture;
pub mod cli;
pub mod diag;
pub mod gguf;
pub mod golden;
pub mod lint;
pub mod llama;
pub mod peer;
pub mod pipeline;
pub mod placement;
pub mod report;
mod resize;
pub mod shrink;
pub mod synth;
