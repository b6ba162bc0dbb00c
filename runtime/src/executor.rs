//! The executor: runs a model's programs batch by batch.
//!
//! # States
//! KV caches and recurrent states belong to the executor. A phase writes *staged* states, which later phases read. The
//! [`Session`](crate::Session) [commits](Executor::commit) them, or after an error [discards](Executor::discard) them,
//! so that a failed batch does not change states.

use tpc_ir::op::{InputKind, Op};
use tpc_ir::{DType, Graph, Output, TensorType, Value};

use crate::error::ExecError;
use crate::profile::KernelTime;
use crate::run::BatchRun;
use crate::slot::Slot;
use crate::states::StateInfo;
use crate::tensor::Tensor;

/// The host's side of a phase.
pub trait Host {
    /// Writes the input of this kind, declared with type `ty`.
    ///
    /// # Errors
    /// [`ExecError::MissingInput`] if the host does not know the input, and errors of the [`Slot`].
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError>;

    /// Receives a result, if the executor keeps intermediate values.
    fn produced(&mut self, _value: Value, _tensor: &Tensor) {}
}

impl<F: FnMut(&InputKind, &TensorType) -> Result<Tensor, ExecError>> Host for F {
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        to.tensor(self(kind, ty)?)
    }
}

/// Mask value of a cell that a token attends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskValues {
    /// 0.
    #[default]
    Zero,
    /// Minus the distance of the positions, for ALiBi to multiply by each head's slope.
    Distance,
}

/// A session's view of a model's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Values of the masks.
    pub mask_values: MaskValues,
    /// True with recurrent states; sequences of a batch then have equal numbers of tokens.
    pub recurrent: bool,
    /// True if tokens attend to later tokens of the batch too, and not to earlier batches.
    pub both_ways: bool,
    /// The states: one part per place.
    pub states: Vec<StateInfo>,
}

impl Interface {
    /// Returns the interface of a graph.
    pub fn from_graph(graph: &Graph) -> Interface {
        let has = |sought: &dyn Fn(&Op) -> bool| graph.insts().any(|(_, i)| sought(&i.op));
        let alibi = has(&|op| match op {
            Op::FlashAttn(a) => a.max_bias > 0.0,
            Op::SoftMax(s) => s.max_bias > 0.0,
            _ => false,
        });
        let outputs = graph.outputs.iter().filter_map(|o| match o {
            Output::Named(name, _) => Some(name.clone()),
            Output::State { .. } => None,
        });
        Interface {
            outputs: outputs.collect(),
            mask_values: match alibi {
                true => MaskValues::Distance,
                false => MaskValues::Zero,
            },
            recurrent: has(&|op| matches!(op, Op::Input(i) if i.kind == InputKind::StateCells)),
            both_ways: has(&|op| matches!(op, Op::Input(i) if i.kind == InputKind::MaskBatch)),
            states: StateInfo::of(graph),
        }
    }

    /// Returns the number of the output of this name.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|o| o == name)
    }
}

/// The named outputs of phases, in the order of [`Interface::outputs`]; uncomputed outputs are empty.
///
/// Batches reuse their memory.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    places: Vec<Option<Tensor>>,
    unread: bool,
}

impl Outputs {
    /// Returns one empty output per output of the interface.
    pub fn new(interface: &Interface) -> Outputs {
        Outputs {
            places: vec![None; interface.outputs.len()],
            unread: false,
        }
    }

    /// Returns outputs for callers that use [`Executor::output`] instead.
    pub fn unread() -> Outputs {
        Outputs {
            places: Vec::new(),
            unread: true,
        }
    }

    /// True if executors leave the outputs unwritten.
    pub const fn are_unread(&self) -> bool {
        self.unread
    }

    /// Returns the output of this number; `None` if no phase has computed it.
    pub fn get(&self, output: usize) -> Option<&Tensor> {
        self.places.get(output).and_then(Option::as_ref)
    }

    /// Returns an output's tensor for writing.
    ///
    /// # Errors
    /// [`ExecError::Malformed`] if `output` is out of range.
    pub fn place(&mut self, output: usize) -> Result<&mut Option<Tensor>, ExecError> {
        self.places
            .get_mut(output)
            .ok_or_else(|| ExecError::Malformed {
                what: format!("output {output} does not exist"),
            })
    }
}

/// Runs the programs of a model.
///
/// A batch runs in *phases*: the first needs the batch's tokens, later ones the tokens further ahead, for blocks that
/// draft.
pub trait Executor {
    /// Returns the interface of the model.
    fn interface(&self) -> &Interface;

    /// Returns the number of tokens after the batch that the next phase needs, 0 for the first; `None` after the last
    /// phase.
    fn lookahead(&self, run: &BatchRun) -> Option<u32>;

    /// Runs the next phase, if any, writes its outputs and stages its states. The first phase requests all inputs
    /// except [`InputKind::NextTokens`], a later phase the `NextTokens` of its number.
    ///
    /// # Errors
    /// Fails if an input does not match its declaration or an op fails. The caller then ends the batch and discards the
    /// staged states.
    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError>;

    /// Makes the staged states permanent.
    fn commit(&mut self);

    /// Drops the staged states.
    fn discard(&mut self);

    /// Zeroes all states, including staged ones; they may get other sizes.
    ///
    /// # Errors
    /// Fails if the device's memory cannot be written.
    fn reset_states(&mut self) -> Result<(), ExecError>;

    /// Returns a state's elements in its type without gaps, between batches; `None` if the executor does not keep it.
    ///
    /// # Errors
    /// Fails if the device's memory cannot be read.
    fn state(&self, _state: Value) -> Result<Option<&[u8]>, ExecError> {
        Ok(None)
    }

    /// Returns the memory of [`Self::state`] for writing.
    ///
    /// # Errors
    /// Same as [`Self::state`].
    fn state_mut(&mut self, _state: Value) -> Result<Option<&mut [u8]>, ExecError> {
        Ok(None)
    }

    /// Returns a named output's elements after the last batch, in their type, without gaps; `None` if the executor does
    /// not have it.
    ///
    /// # Errors
    /// Fails if the device's memory cannot be read.
    fn output(&self, _output: usize) -> Result<Option<(DType, Vec<u8>)>, ExecError> {
        Ok(None)
    }

    /// Returns a weight; `None` if the executor does not keep it in the file's type.
    ///
    /// # Errors
    /// Fails if the device's memory cannot be read.
    fn weight(&self, _weight: Value) -> Result<Option<Tensor>, ExecError> {
        Ok(None)
    }

    /// Returns kernel times since the last call; empty without a profile.
    fn take_profile(&mut self) -> Vec<KernelTime> {
        Vec::new()
    }
}
