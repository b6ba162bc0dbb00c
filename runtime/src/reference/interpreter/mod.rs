//! An interpreter that runs a graph of per-place programs batch by batch.
//!
//! Invariants:
//!
//! - An op reads and writes the memory of its place. `copy` reads from its operand's place. Participant `i` of a
//!   collective is the place of result `i`.
//! - Every tensor has the declared sizes under the batch's bindings.
//! - States change only after a phase has run (see `schedule.rs`), and become permanent only by a commit.
//! - A value's memory is freed after its last use.

use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_ir::op::{InputKind, Op, State, Weight};
use tpc_ir::stage::Executable;
use tpc_ir::{
    Bindings, Graph, Inst, InstData, Interval, Output, Place, TensorType, Value, Verified,
};

use super::ops::{OpContext, Options, eval, load_weight};
use super::rounding::round_rows;
use super::schedule::{Schedule, Step};
use crate::error::ExecError;
use crate::executor::{Executor, Host, Interface, Outputs};
use crate::memories::Memories;
use crate::run::BatchRun;
use crate::slot::{Slot, input_tensor};
use crate::tensor::{Data, Shape, Tensor};
use crate::transfers::Transfers;
use crate::weights::WeightSource;

/// Bytes that a place keeps between batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceStats {
    /// Bytes of the place's weights, packed in the file's types.
    pub weight_bytes: u64,
    /// Bytes of the place's states, in the states' types; 0 before the first batch.
    pub state_bytes: u64,
}

type States = BTreeMap<Value, Arc<Tensor>>;

/// Callback that receives every tensor as it is produced.
pub type Observer<'a> = dyn FnMut(Value, &Tensor) + 'a;

/// Outputs of a batch by name.
pub type NamedOutputs = BTreeMap<String, Tensor>;

/// Callback that returns the tensor of an input with this kind and declared type.
pub type Inputs<'a> = dyn FnMut(&InputKind, &TensorType) -> Result<Tensor, ExecError> + 'a;

struct ObservedHost<'a, 'b, 'c> {
    inputs: &'a mut Inputs<'b>,
    observer: &'a mut Observer<'c>,
}

impl Host for ObservedHost<'_, '_, '_> {
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        to.tensor((self.inputs)(kind, ty)?)
    }

    fn produced(&mut self, value: Value, tensor: &Tensor) {
        (self.observer)(value, tensor);
    }
}

/// A part of a weight on a place. Each key is loaded once.
type PartKey<'a> = (Place, &'a str, Option<&'a [Vec<Interval>]>);

/// Runs a graph of values on the host and on single devices.
#[derive(Clone, Debug)]
pub struct Interpreter<'g> {
    graph: &'g Graph,
    options: Options,
    weights: BTreeMap<Value, Arc<Tensor>>,
    states: States,
    staged: States,
    interface: Interface,
    schedule: Schedule,
    places: BTreeMap<Place, PlaceStats>,
    transfers: Transfers,
}

impl<'g> Interpreter<'g> {
    /// Returns an interpreter of `graph` with its weights loaded. Each place loads only its own parts.
    ///
    /// # Errors
    /// Returns an error if a weight is missing, or its type or sizes differ from the declaration.
    pub fn new<S: Executable>(
        graph: &'g Verified<S>,
        weights: &dyn WeightSource,
        options: Options,
    ) -> Result<Interpreter<'g>, ExecError> {
        Interpreter::unverified(graph, weights, options)
    }

    fn unverified(
        graph: &'g Graph,
        weights: &dyn WeightSource,
        options: Options,
    ) -> Result<Interpreter<'g>, ExecError> {
        let schedule = Schedule::new(graph)?;
        let mut out = Interpreter {
            graph,
            options,
            weights: BTreeMap::new(),
            states: States::new(),
            staged: States::new(),
            interface: Interface::from_graph(graph),
            schedule,
            places: BTreeMap::new(),
            transfers: Transfers::default(),
        };
        let mut loaded: BTreeMap<PartKey<'_>, Arc<Tensor>> = BTreeMap::new();
        for (inst, data) in graph.insts() {
            let Op::Weight(op) = &data.op else { continue };
            let value = only_result(data)?;
            let v = graph.value(value);
            let key = (v.place, op.tensor.as_str(), op.parts.as_deref());
            let tensor = match loaded.get(&key) {
                Some(t) => Arc::clone(t),
                None => {
                    let named = |e: ExecError| e.at(|| describe(graph, inst));
                    let (t, bytes) = load_weight(op, &v.ty, weights).map_err(named)?;
                    out.places.entry(v.place).or_default().weight_bytes += bytes;
                    let t = Arc::new(t);
                    loaded.insert(key, Arc::clone(&t));
                    t
                }
            };
            out.weights.insert(value, tensor);
        }
        Ok(out)
    }

    /// Returns the graph.
    pub const fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns the bytes that each place stores.
    pub const fn places(&self) -> &BTreeMap<Place, PlaceStats> {
        &self.places
    }

    /// Returns the transfers of the last batch.
    pub const fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// Returns the content of the state `value`; `None` before its first batch.
    pub fn state(&self, value: Value) -> Option<&Tensor> {
        self.states.get(&value).map(|t| &**t)
    }

    /// Replaces the content of the state `value`.
    #[cfg(test)]
    pub(crate) fn set_state(&mut self, value: Value, content: Tensor) {
        self.states.insert(value, Arc::new(content));
    }

    /// Runs all phases of one batch, commits its states, and returns the named outputs. Rounds numbers of cells up to
    /// whole units.
    ///
    /// # Errors
    /// Returns an error if an input does not match its declaration, an op reads from another place, or an index is out
    /// of range. States keep their previous content.
    pub fn run(
        &mut self,
        bindings: &Bindings,
        inputs: &mut Inputs<'_>,
    ) -> Result<NamedOutputs, ExecError> {
        self.run_observed(bindings, inputs, &mut |_, _| {})
    }

    /// Runs a batch as [`Self::run`], and passes every tensor to `observer` as it is produced.
    ///
    /// # Errors
    /// Returns the errors of [`Self::run`].
    pub fn run_observed(
        &mut self,
        bindings: &Bindings,
        inputs: &mut Inputs<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NamedOutputs, ExecError> {
        let mut host = ObservedHost { inputs, observer };
        let mut run = BatchRun::new(&bindings.in_units(self.graph.cell_unit.0));
        let mut outputs = Outputs::new(&self.interface);
        while self.lookahead(&run).is_some() {
            if let Err(e) = self.run_phase(&mut run, &mut host, &mut outputs) {
                self.discard();
                return Err(e);
            }
        }
        self.commit();
        let mut named = NamedOutputs::new();
        for (i, name) in self.interface.outputs.iter().enumerate() {
            named.extend(outputs.place(i)?.take().map(|t| (name.clone(), t)));
        }
        Ok(named)
    }

    fn run_steps(&self, run: &mut BatchRun, host: &mut dyn Host) -> Result<(), ExecError> {
        let graph = self.graph;
        for Step { inst, dead } in self.schedule.steps(run.phase()) {
            let data = graph.inst(*inst);
            let produced = self
                .step(data, run, host)
                .map_err(|e| e.at(|| describe(graph, *inst)))?;
            for (&value, tensor) in data.results.iter().zip(produced) {
                host.produced(value, &tensor);
                run.memories.store(graph.value(value).place, value, tensor);
            }
            for &value in dead {
                run.memories.free(graph, value);
            }
        }
        Ok(())
    }

    fn step(
        &self,
        data: &InstData,
        run: &mut BatchRun,
        host: &mut dyn Host,
    ) -> Result<Vec<Arc<Tensor>>, ExecError> {
        let graph = self.graph;
        let bindings = &run.sizes().to_owned();
        let BatchRun {
            memories,
            transfers,
            ..
        } = run;
        let shapes: Result<Vec<Shape>, ExecError> = data
            .results
            .iter()
            .map(|&v| Shape::of(&graph.value(v).ty, bindings))
            .collect();
        let shapes = shapes?;
        match &data.op {
            Op::Weight(Weight { .. }) => {
                let tensor = &self.weights[&only_result(data)?];
                tensor.expect("the weight", &shapes[0])?;
                Ok(vec![Arc::clone(tensor)])
            }
            Op::Input(op) => {
                let value = only_result(data)?;
                let write = |ty: &TensorType, to: Slot<'_>| host.input(&op.kind, ty, to);
                let tensor = input_tensor(&shapes[0], &graph.value(value).ty, write)?;
                Ok(vec![Arc::new(tensor)])
            }
            Op::State(op) => Ok(vec![self.read_state(op, only_result(data)?, shapes[0])?]),
            op => {
                let operands: Result<Vec<Arc<Tensor>>, ExecError> = (0..data.operands.len())
                    .map(|i| {
                        let place = reading_place(graph, data, i)?;
                        memories.read(graph, place, data.operands[i])
                    })
                    .collect();
                let operands = operands?;
                let operands: Vec<&Tensor> = operands.iter().map(|t| &**t).collect();
                let options = self.options;
                let results = eval(op, &operands, &shapes, &OpContext { bindings, options })?;
                if let Some(traffic) = transfers.counter(op) {
                    traffic.count += 1;
                    for &v in &data.operands {
                        traffic.bytes += Shape::of(&graph.value(v).ty, bindings)?.bytes();
                    }
                }
                Ok(results.into_iter().map(Arc::new).collect())
            }
        }
    }

    fn read_state(&self, op: &State, value: Value, shape: Shape) -> Result<Arc<Tensor>, ExecError> {
        match self.staged.get(&value).or_else(|| self.states.get(&value)) {
            None => Tensor::zeros(shape).map(Arc::new),
            Some(t) if t.dims() == shape.dims => Ok(Arc::clone(t)),
            Some(t) => Err(ExecError::StateResized {
                state: op.name.clone(),
                kept: t.dims(),
                expected: shape.dims,
            }),
        }
    }

    /// Checks place and sizes of a state's new content and rounds it to the state's type. Content of this type, such as
    /// a result of `set_rows`, is not rounded again.
    fn updated_state(
        &self,
        state: Value,
        value: Value,
        bindings: &Bindings,
        memories: &Memories,
    ) -> Result<Arc<Tensor>, ExecError> {
        let graph = self.graph;
        let (to, from) = (graph.value(state), graph.value(value));
        let tensor = memories.read(graph, to.place, value)?;
        let shape = Shape::of(&to.ty, bindings)?;
        tensor.expect("the new content of the state", &shape)?;
        if to.ty.dtype == from.ty.dtype || to.ty.dtype.is_integer() {
            return Ok(tensor);
        }
        let mut rounded = tensor.reals()?.into_owned();
        round_rows(to.ty.dtype, shape.dims[0], &mut rounded)?;
        Ok(Arc::new(Tensor::new(shape.dims, Data::F64(rounded))?))
    }

    fn count_states(&mut self, bindings: &Bindings) -> Result<(), ExecError> {
        let mut bytes: BTreeMap<Place, u64> = BTreeMap::new();
        for (_, v) in self.graph.values() {
            if let Op::State(_) = &self.graph.inst(v.def.0).op {
                *bytes.entry(v.place).or_default() += Shape::of(&v.ty, bindings)?.bytes();
            }
        }
        for (place, n) in bytes {
            self.places.entry(place).or_default().state_bytes = n;
        }
        Ok(())
    }
}

impl Executor for Interpreter<'_> {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn lookahead(&self, run: &BatchRun) -> Option<u32> {
        self.schedule.lookahead(run.phase())
    }

    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        if self.lookahead(run).is_none() {
            return Ok(());
        }
        let graph = self.graph;
        self.run_steps(run, host)?;
        let mut updates = Vec::new();
        let mut number = 0;
        for output in &graph.outputs {
            let at = number;
            number += usize::from(matches!(output, Output::Named(..)));
            if !self.schedule.computes(run.phase(), graph, output.value()) {
                continue;
            }
            match output {
                Output::Named(..) if outputs.are_unread() => {}
                Output::Named(_, value) => {
                    let t = run
                        .memories
                        .read(graph, graph.value(*value).place, *value)?;
                    *outputs.place(at)? = Some(Tensor::clone(&t));
                }
                Output::State { state, value } => {
                    let updated = self.updated_state(*state, *value, run.sizes(), &run.memories);
                    let named = |e: ExecError| e.at(|| describe(graph, graph.value(*state).def.0));
                    updates.push((*state, updated.map_err(named)?));
                }
            }
        }
        self.staged.extend(updates);
        self.count_states(run.sizes())?;
        self.transfers = run.transfers;
        run.advance();
        Ok(())
    }

    fn commit(&mut self) {
        self.states.append(&mut self.staged);
    }

    fn discard(&mut self) {
        self.staged.clear();
    }

    fn reset_states(&mut self) -> Result<(), ExecError> {
        self.states.clear();
        self.staged.clear();
        for place in self.places.values_mut() {
            place.state_bytes = 0;
        }
        Ok(())
    }
}

/// Returns a name for diagnostics: `inst3 mul_mat (blk.0.ffn_up)`.
fn describe(graph: &Graph, inst: Inst) -> String {
    let data = graph.inst(inst);
    let mut names = data.results.iter().map(|&v| (v, &graph.value(v).name));
    match names.next() {
        Some((v, name)) if !name.is_empty() => format!("{inst} {} ({v} {name})", data.op.name()),
        Some((v, _)) => format!("{inst} {} ({v})", data.op.name()),
        None => format!("{inst} {}", data.op.name()),
    }
}

fn only_result(data: &InstData) -> Result<Value, ExecError> {
    match data.results.as_slice() {
        [one] => Ok(*one),
        other => Err(ExecError::Malformed {
            what: format!("{} has {} results", data.op.name(), other.len()),
        }),
    }
}

fn reading_place(graph: &Graph, data: &InstData, i: usize) -> Result<Place, ExecError> {
    let result = if data.op.is_collective() { i } else { 0 };
    if let Op::Copy(_) = data.op {
        return Ok(graph.value(data.operands[i]).place);
    }
    let result = data.results.get(result);
    result
        .map(|&v| graph.value(v).place)
        .ok_or_else(|| ExecError::Malformed {
            what: format!("{} lacks a result for operand {i}", data.op.name()),
        })
}

#[cfg(test)]
mod tests;
