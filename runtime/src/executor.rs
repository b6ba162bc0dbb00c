//! The executor's states.
//!
//! KV caches and recurrent states belong to the executor. A phase writes *staged* states, which later phases read. The
//! [`Session`](crate::Session) [commits](Executor::commit) staged states, or [discards](Executor::discard) them after
//! an error, so a failed batch does not change states.

use tpc_ir::op::{InputKind, Op};
use tpc_ir::{CellUnit, DType, Graph, Output, TensorType, Value};

use crate::best::BestLogits;
use crate::error::ExecError;
use crate::profile::KernelTime;
use crate::run::BatchRun;
use crate::slot::Slot;
use crate::states::StateInfo;
use crate::tensor::Tensor;

/// The supplier of a phase's inputs.
pub trait Host {
    /// Writes the input `kind`, which the graph declares with type `ty`.
    ///
    /// # Errors
    /// Returns [`ExecError::MissingInput`] for an unknown input, and errors of the [`Slot`].
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError>;

    /// Receives a result, if the executor keeps intermediate values.
    fn produced(&mut self, _value: Value, _tensor: &Tensor) {}
}

impl<F: FnMut(&InputKind, &TensorType) -> Result<Tensor, ExecError>> Host for F {
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        to.tensor(self(kind, ty)?)
    }
}

/// Mask values for the cells that a token attends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskValues {
    /// 0.
    #[default]
    Zero,
    /// Minus the distance between the positions. ALiBi multiplies this value by each head's slope.
    Distance,
}

/// The parts of a model's graph that a session uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Output names.
    pub outputs: Vec<String>,
    /// Mask values.
    pub mask_values: MaskValues,
    /// True with recurrent states. All sequences of a batch then have equal numbers of tokens.
    pub recurrent: bool,
    /// True if tokens attend to all tokens of the batch, including later ones, and not to earlier batches.
    pub both_ways: bool,
    /// States, one entry per place.
    pub states: Vec<StateInfo>,
    /// The unit of numbers of cells.
    pub cell_unit: CellUnit,
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
            both_ways: has(&|op| matches!(op, Op::Input(i) if i.kind.is_batch_mask())),
            states: StateInfo::of(graph),
            cell_unit: graph.cell_unit,
        }
    }

    /// Returns the index of the output with this name.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|o| o == name)
    }
}

/// The named outputs of phases, in the order of [`Interface::outputs`]. Outputs that are not computed are empty.
/// Batches reuse the memory.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    places: Vec<Option<Tensor>>,
    unread: bool,
    /// The number of largest logits that suffice for each row.
    wanted: Option<usize>,
    best: Option<BestLogits>,
    has_best: bool,
}

impl Outputs {
    /// Returns outputs without tensors.
    pub fn new(interface: &Interface) -> Outputs {
        Outputs {
            places: vec![None; interface.outputs.len()],
            ..Outputs::default()
        }
    }

    /// Returns outputs for callers that read results with [`Executor::output`].
    pub fn unread() -> Outputs {
        Outputs {
            unread: true,
            ..Outputs::default()
        }
    }

    /// True if executors do not write the outputs.
    pub const fn are_unread(&self) -> bool {
        self.unread
    }

    /// Tells executors if the `wanted` largest logits of each row suffice for the output `logits`. Executors may write
    /// all logits instead.
    pub const fn want_best(&mut self, wanted: Option<usize>) {
        self.wanted = wanted;
        self.has_best = false;
    }

    /// Returns the number of largest logits that suffice for each row; `None` for all.
    pub const fn wanted(&self) -> Option<usize> {
        self.wanted
    }

    /// Returns the largest logits of the output `logits`, if the executor wrote them instead of the output.
    pub fn best(&self) -> Option<&BestLogits> {
        self.best.as_ref().filter(|_| self.has_best)
    }

    /// Returns the largest logits for writing, without rows. The executor then does not write the output `logits`.
    pub fn best_mut(&mut self) -> &mut BestLogits {
        self.has_best = true;
        let best = self.best.get_or_insert_default();
        best.clear();
        best
    }

    /// Drops the largest logits. The executor then writes the output `logits`.
    pub const fn drop_best(&mut self) {
        self.has_best = false;
    }

    /// Returns the output at this index, if a phase has computed it.
    pub fn get(&self, output: usize) -> Option<&Tensor> {
        self.places.get(output).and_then(Option::as_ref)
    }

    /// Returns an output's tensor for writing.
    ///
    /// # Errors
    /// Returns [`ExecError::Malformed`] if `output` is out of range.
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
/// A batch runs in *phases*. The first phase needs the batch's tokens; later phases, which run draft blocks, need
/// tokens further ahead.
pub trait Executor {
    /// Returns the model's interface.
    fn interface(&self) -> &Interface;

    /// Returns how many tokens after the batch the next phase needs: 0 for the first phase, `None` after the last.
    fn lookahead(&self, run: &BatchRun) -> Option<u32>;

    /// Runs the next phase, if any, writes its outputs and stages its states. The first phase requests all inputs
    /// except [`InputKind::NextTokens`]; a later phase requests only its own `NextTokens`.
    ///
    /// # Errors
    /// Returns an error if an input does not match its declaration or an op fails. The caller then ends the batch and
    /// discards the staged states.
    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError>;

    /// Makes staged states permanent.
    fn commit(&mut self);

    /// Drops staged states.
    fn discard(&mut self);

    /// Sets all states to zero, including staged states. The next batch may give states other sizes.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be written.
    fn reset_states(&mut self) -> Result<(), ExecError>;

    /// Returns a state's elements between batches, in the state's type without gaps; `None` if the executor does not
    /// keep the state.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be read.
    fn state(&self, _state: Value) -> Result<Option<&[u8]>, ExecError> {
        Ok(None)
    }

    /// Returns the memory of [`Self::state`] for writing, with the same errors.
    fn state_mut(&mut self, _state: Value) -> Result<Option<&mut [u8]>, ExecError> {
        Ok(None)
    }

    /// Reads bytes of [`Self::state`] from `offset` on. Returns false if the executor does not keep these bytes.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be read.
    fn read_state(&self, state: Value, offset: usize, to: &mut [u8]) -> Result<bool, ExecError> {
        let bytes = self.state(state)?;
        let bytes = bytes.and_then(|b| b.get(offset..)?.get(..to.len()));
        Ok(bytes.map(|b| to.copy_from_slice(b)).is_some())
    }

    /// Writes bytes of [`Self::state`] from `offset` on. Returns false if the executor does not keep these bytes.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be written.
    fn write_state(
        &mut self,
        state: Value,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, ExecError> {
        let to = self.state_mut(state)?;
        let to = to.and_then(|b| b.get_mut(offset..)?.get_mut(..bytes.len()));
        Ok(to.map(|to| to.copy_from_slice(bytes)).is_some())
    }

    /// Returns a named output's elements after the last batch, in the output's type without gaps; `None` if the
    /// executor does not keep the output.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be read.
    fn output(&self, _output: usize) -> Result<Option<(DType, Vec<u8>)>, ExecError> {
        Ok(None)
    }

    /// Returns a weight; `None` if the executor does not keep the weight in the file's type.
    ///
    /// # Errors
    /// Returns an error if the device's memory cannot be read.
    fn weight(&self, _weight: Value) -> Result<Option<Tensor>, ExecError> {
        Ok(None)
    }

    /// Returns the share of time in which the executor's threads waited for a core, over all batches.
    fn starved(&self) -> f64 {
        0.0
    }

    /// Returns kernel times since the last call; empty without profiling.
    fn take_profile(&mut self) -> Vec<KernelTime> {
        Vec::new()
    }
}
