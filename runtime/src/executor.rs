//! The executor: whatever runs a model's programs batch by batch.
//!
//! A [`Session`](crate::Session) drives an executor through this trait and knows no backend.
//!
//! # States
//!
//! KV caches and recurrent states live in the executor. A phase writes *staged* states: later phases read them, and
//! they last only when the session [commits](Executor::commit). A session that fails [discards](Executor::discard)
//! them, so that a failed batch leaves no trace.

use std::collections::BTreeMap;

use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Bindings, Graph, Output, TensorType, Value};

use crate::error::ExecError;
use crate::profile::KernelTime;
use crate::tensor::Tensor;

/// The host's side of a phase: it supplies the inputs, and may watch the results.
pub trait Host {
    /// The tensor for an input of this kind. Its sizes are those of `ty` under the batch's bindings.
    ///
    /// # Errors
    /// [`ExecError::MissingInput`] when the host does not know the input.
    fn input(&mut self, kind: &InputKind, ty: &TensorType) -> Result<Tensor, ExecError>;

    /// A result, as soon as it is there. Only executors that keep intermediate values call it.
    fn produced(&mut self, _value: Value, _tensor: &Tensor) {}
}

impl<F: FnMut(&InputKind, &TensorType) -> Result<Tensor, ExecError>> Host for F {
    fn input(&mut self, kind: &InputKind, ty: &TensorType) -> Result<Tensor, ExecError> {
        self(kind, ty)
    }
}

/// The value of a mask where a token attends to a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskValues {
    /// 0.
    #[default]
    Zero,
    /// Minus the distance between the positions, which ALiBi multiplies by each head's slope.
    Distance,
}

/// The part of a model's graph that a session must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The names of the outputs.
    pub outputs: Vec<String>,
    /// The values of its masks.
    pub mask_values: MaskValues,
    /// Whether it has recurrent states, and so takes only batches with equally many tokens of each sequence.
    pub recurrent: bool,
}

impl Interface {
    /// The interface of a graph.
    pub fn from_graph(graph: &Graph) -> Interface {
        let has = |sought: &dyn Fn(&Op) -> bool| graph.insts().any(|(_, i)| sought(&i.op));
        let alibi = has(&|op| matches!(op, Op::FlashAttn(a) if a.max_bias > 0.0));
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
        }
    }

    /// Whether there is an output of that name.
    pub fn has_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|o| o == name)
    }
}

/// The named outputs of a phase.
pub type Outputs = BTreeMap<String, Tensor>;

/// Runs the programs of a model.
///
/// A batch runs in *phases*: the first needs the tokens of the batch, each later one the tokens further ahead, for
/// blocks that draft.
pub trait Executor {
    /// A batch of which some phases have run, with the values that later phases read.
    type Run: Clone;

    /// The interface of the model.
    fn interface(&self) -> &Interface;

    /// A batch of these sizes, of which no phase has run.
    fn begin(&self, sizes: &Bindings) -> Self::Run;

    /// The number of tokens ahead that the next phase needs to know, 0 for the first; `None` when all have run.
    fn lookahead(&self, run: &Self::Run) -> Option<u32>;

    /// Runs the next phase, if there is one, and returns its outputs. The first phase asks for all inputs but
    /// [`InputKind::NextTokens`], a later one for those of its number. States that it writes are staged.
    ///
    /// # Errors
    /// When an input is not what the program declares, or an op fails. The batch cannot go on then, and the caller
    /// discards what is staged.
    fn run_phase(&mut self, run: &mut Self::Run, host: &mut dyn Host)
    -> Result<Outputs, ExecError>;

    /// Makes the staged states last.
    fn commit(&mut self);

    /// Drops the staged states.
    fn discard(&mut self);

    /// Clears all states, staged ones too: they are zero again, and may have other sizes.
    fn reset_states(&mut self);

    /// The times of kernels since the last call; none where they are not measured.
    fn take_profile(&mut self) -> Vec<KernelTime> {
        Vec::new()
    }
}
