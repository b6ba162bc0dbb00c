//! # Executing tpc programs
//!
//! A program is a [`tpc_ir::Graph`] whose values live on the host or on single devices. An [`Executor`] runs it batch by
//! batch; a [`Session`] makes a language model of it: tokens in, logits out.
//!
//! [`mod@reference`] is the meaning of the ops in code: slow, f64, obvious. Faster executors are measured against it,
//! and every sharding rule is tested by running the sharded program beside the unsharded one. Its [`Interpreter`] gives
//! each place a memory of its own; an op reads from the memory of its own place and from no other, and only copies and
//! collectives carry tensors across. So a device program that gets the right answer here needs nothing that its device
//! does not hold.
//!
//! | type              | what it does                                                                         |
//! |-------------------|--------------------------------------------------------------------------------------|
//! | [`Executor`]      | runs the phases of a batch; keeps the states                                         |
//! | [`Host`]          | supplies the inputs of a phase                                                       |
//! | [`Frame`]         | where the values of a batch lie, for executors that use a program's addresses        |
//! | [`Session`]       | cells of the caches, sequences, masks: from a [`Batch`] of tokens to logits          |
//! | [`WeightSource`]  | supplies packed weights; [`pack`] cuts a device's shard out of their bytes           |
//! | [`quant`]         | every block format, to f32 and back                                                  |
//! | [`Interpreter`]   | the reference executor                                                               |
//! | [`eval`]          | one op on whole tensors                                                              |
//!
//! The crate knows nothing of files: weights come as bytes in their GGUF types, from whoever maps the file. A session
//! names no executor but for the shorthand [`Session::new`].

mod checksum;
mod codes;
mod error;
mod executor;
mod frame;
mod memories;
mod profile;
pub mod quant;
pub mod reference;
mod run;
mod session;
mod slot;
mod states;
mod tensor;
mod transfers;
mod weights;

pub use checksum::Checksum;
pub use codes::CODES;
pub use error::ExecError;
pub use executor::{Executor, Host, Interface, MaskValues, Outputs};
pub use frame::{Change, Frame};
pub use profile::KernelTime;
pub use reference::{
    Gelu, Inputs, Interpreter, NamedOutputs, Observer, OpContext, Options, PlaceStats,
    ProgramInterpreter, eval, knows,
};
pub use run::{BatchRun, Batches, NextPhase};
pub use session::{
    Batch, KvCells, Logits, ReferenceSession, SaveError, SequenceText, Session, SessionConfig,
    TokenPos,
};
pub use slot::{Slot, SlotMemory};
pub use states::{CellKind, Rotation, StateInfo};
pub use tensor::{Data, Shape, Tensor};
pub use transfers::{Traffic, Transfers};
pub use weights::{MemoryWeights, PackedWeight, WeightData, WeightSource, pack};
