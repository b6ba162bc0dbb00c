//! # Executing tpc programs
//!
//! A program is a [`tpc_ir::Graph`] whose values are on the host or on single devices. An [`Executor`] runs a program
//! batch by batch. A [`Session`] makes a language model of an executor: tokens in, logits out.
//!
//! [`mod@reference`] defines the ops in simple, slow f64 code. Tests compare faster executors with it, and sharded
//! programs with unsharded ones. In its [`Interpreter`], only copies and collectives move tensors between places. A
//! sharded program with correct results therefore reads only data of its own device.
//!
//! | type              | purpose                                                                              |
//! |-------------------|--------------------------------------------------------------------------------------|
//! | [`Executor`]      | runs the phases of a batch; keeps the states                                         |
//! | [`Host`]          | supplies the inputs of a phase                                                       |
//! | [`Frame`]         | the views of a batch's values, for executors that use a program's addresses          |
//! | [`Session`]       | cells of the caches, sequences, masks: from a [`Batch`] of tokens to logits          |
//! | [`WeightSource`]  | supplies packed weights; [`pack`] cuts a device's shard out of their bytes           |
//! | [`quant`]         | every block format, to f32 and back                                                  |
//! | [`Interpreter`]   | the reference executor                                                               |
//! | [`eval`]          | one op on whole tensors                                                              |
//!
//! The crate does not read files: the caller passes weights as bytes in their GGUF types.

mod best;
mod checksum;
mod codes;
mod error;
mod executor;
mod frame;
pub mod host;
mod launch_work;
mod memories;
mod profile;
pub mod quant;
pub mod ranks;
pub mod reference;
mod run;
mod session;
mod slot;
mod states;
mod tensor;
mod transfers;
mod weights;

pub use best::{BestLogits, Predicted};
pub use checksum::Checksum;
pub use codes::CODES;
pub use error::ExecError;
pub use executor::{Executor, Host, Interface, MaskValues, Outputs};
pub use frame::{Change, Frame};
pub use launch_work::launch_work;
pub use profile::KernelTime;
pub use reference::{
    Gelu, Inputs, Interpreter, NamedOutputs, Observer, OpContext, Options, PlaceStats,
    ProgramInterpreter, UnknownOps, eval, knows,
};
pub use run::{BatchRun, Batches, NextPhase};
pub use session::{
    Batch, KvCells, Logits, Prefix, PrefixLayout, ReferenceSession, SaveError, SequenceText,
    Session, SessionConfig, TokenPos,
};
pub use slot::{Slot, SlotMemory};
pub use states::{CellKind, Rotation, StateInfo};
pub use tensor::{Data, Shape, Tensor};
pub use transfers::{Traffic, Transfers};
pub use weights::{MemoryWeights, PackedWeight, WeightData, WeightSource, pack};
