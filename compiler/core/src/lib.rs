//! # tpc-core: from a model and a configuration to a plan
//!
//! - [`cards`]: graphics cards by name, with memory, speed and links.
//! - [`placement`]: the user's options, and the device of each layer.
//! - [`pipeline`]: the passes in order.
//! - [`advice`]: configurations that fit if the requested one does not.
//! - [`beside`]: files loaded in addition to the model.
//! - [`shrink`]: the same model with small sizes, to run.
//! - [`report`]: plans as tables, JSON and pages.
//! - [`foreign_types`]: tensors that only `ik_llama.cpp` runs.
//! - [`mod@format`]: numbers as text.
//! - [`golden`]: files of known logits.
//! - [`topology`]: topology files.
//! - [`units`]: quantities with units.

pub mod advice;
pub mod beside;
pub mod calibration;
pub mod cards;
pub mod foreign_types;
pub mod format;
pub mod golden;
pub mod pipeline;
pub mod placement;
pub mod report;
pub mod shrink;
pub mod topology;
pub mod units;
