//! The reference executor.
//!
//! All real arithmetic is f64, so that sums taken in another order (sharded against unsharded) agree to about 1e-15.
//! Numbers are rounded to a narrower type in two cases only, because the results of ggml depend on it visibly:
//!
//! - GELU, which ggml's CPU code reads from a table with f16 input and output ([`Gelu::GgmlTable`]);
//! - what is stored in a state of a narrower type (an f16 or q8_0 KV cache). States of type f32 keep f64.
//!
//! Weights are dequantised once, to f32 as ggml does, and are widened where they are used.

mod batch;
mod error;
mod interp;
mod ops;
pub mod quant;
mod rounding;
mod schedule;
mod sequences;
mod session;
mod tensor;
mod weights;

pub use batch::{Batch, KvCells, MaskValues, TokenPos};
pub use error::{CODES, ExecError};
pub use interp::{Inputs, Interpreter, Observer, PlaceStats, Progress, Traffic, Transfers};
pub use ops::{Gelu, OpContext, Options, eval};
pub use session::{Session, SessionConfig};
pub use tensor::{Data, Shape, Tensor};
pub use weights::{MemoryWeights, PackedWeight, WeightData, WeightSource, pack};
