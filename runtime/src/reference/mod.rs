//! The reference executor, which defines the ops in f64.
//!
//! With f64, sharded and unsharded sums agree to about 1e-15. Two values are rounded to a narrower type, because ggml's
//! results visibly depend on the rounding:
//!
//! - GELU, which ggml's CPU code reads from a table with f16 input and output ([`Gelu::GgmlTable`]);
//! - states of a narrower type (an f16 or q8_0 KV cache). States of type f32 keep f64.
//!
//! Weights are dequantised once, to f32 as in ggml.

mod interpreter;
mod ops;
mod programs;
mod rounding;
mod schedule;
mod stale;

pub use interpreter::{Inputs, Interpreter, NamedOutputs, Observer, PlaceStats};
pub use ops::{Gelu, OpContext, Options, UnknownOps, eval, knows};
pub use programs::ProgramInterpreter;
