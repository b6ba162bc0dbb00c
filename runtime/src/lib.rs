//! # Executing tpc programs
//!
//! [`mod@reference`] is the meaning of the ops in code: slow, f64, obvious. Whatever runs programs faster is measured
//! against it, and every sharding rule is proved by running the sharded program beside the unsharded one.
//!
//! A program is a [`tpc_ir::Graph`] whose values live on the host or on single devices. The
//! [`Interpreter`] gives each of these places a memory of its own; an op reads from the memory of its own place and
//! from no other, and only copies and collectives carry tensors across. So a per-device program that gets the right
//! answer here is known to need nothing that its device does not hold.
//!
//! The layers, each usable alone:
//!
//! | type              | what it does                                                                         |
//! |-------------------|--------------------------------------------------------------------------------------|
//! | [`eval`]          | one op on whole tensors                                                              |
//! | [`WeightSource`]  | where packed weights come from; [`pack`] cuts a device's shard out of their bytes     |
//! | [`Interpreter`]   | a graph: places, weights, states, one run per batch                                  |
//! | [`KvCells`]       | which cell of the KV cache a token is stored in, and which cells it may see          |
//! | [`Session`]       | a language model: an interpreter with cells, from a [`Batch`] of tokens to logits    |
//!
//! The crate knows nothing of files: weights come as bytes in their GGUF types, from whoever maps the file.

pub mod reference;

pub use reference::{
    Batch, CODES, Data, ExecError, Gelu, Inputs, Interpreter, KvCells, MaskValues, MemoryWeights,
    Observer, OpContext, Options, PackedWeight, PlaceStats, Session, SessionConfig, Shape, Tensor,
    TokenPos, Traffic, Transfers, WeightData, WeightSource, eval, pack,
};
