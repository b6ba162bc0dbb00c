//! The interpreter: a graph of per-place programs, run batch by batch.
//!
//! What it keeps true:
//!
//! - each place has a memory of its own; an op reads from the memory of the place it runs on, and its results land
//!   there. `copy` reads from its operand's place; participant `i` of a collective is the place of result `i`;
//! - every tensor has the sizes that the graph declares for its value under the batch's bindings;
//! - states change only after a phase of a batch has run (see `schedule.rs`): one that fails leaves them as they were;
//! - a value's memory is given back after its last use.

use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_ir::op::{InputKind, Op, State, Weight};
use tpc_ir::{Bindings, Graph, Inst, InstData, Interval, Output, Place, TensorType, Value};

use super::error::ExecError;
use super::ops::{OpContext, Options, eval, load_weight};
use super::rounding::round_rows;
use super::schedule::{Schedule, Step};
use super::tensor::{Data, Shape, Tensor};
use super::weights::WeightSource;

/// What a place stores for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceStats {
    /// Bytes of its parts of weights, packed in the file's types.
    pub weight_bytes: u64,
    /// Bytes of its parts of states, in their types; 0 before the first batch.
    pub state_bytes: u64,
}

/// How often a kind of transfer ran, and what it carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of ops.
    pub count: u64,
    /// Bytes of all operands, over all participants, in the types that the graph declares.
    pub bytes: u64,
}

/// The transfers of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// `copy`.
    pub copy: Traffic,
    /// `all_reduce`.
    pub all_reduce: Traffic,
    /// `all_gather`.
    pub all_gather: Traffic,
    /// `reduce_scatter`.
    pub reduce_scatter: Traffic,
    /// `all_to_all`.
    pub all_to_all: Traffic,
}

impl Transfers {
    fn of(&mut self, op: &Op) -> Option<&mut Traffic> {
        match op {
            Op::Copy(_) => Some(&mut self.copy),
            Op::AllReduce(_) => Some(&mut self.all_reduce),
            Op::AllGather(_) => Some(&mut self.all_gather),
            Op::ReduceScatter(_) => Some(&mut self.reduce_scatter),
            Op::AllToAll(_) => Some(&mut self.all_to_all),
            Op::Weight(_)
            | Op::Input(_)
            | Op::State(_)
            | Op::Hadamard(_)
            | Op::Arange(_)
            | Op::LeakyRelu(_)
            | Op::Xielu(_)
            | Op::Fill(_)
            | Op::LightningIndexer(_)
            | Op::HcComb(_)
            | Op::Mean(_)
            | Op::Cumsum(_)
            | Op::Tri(_)
            | Op::Diag(_)
            | Op::Pool2d(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Scale(_)
            | Op::Clamp(_)
            | Op::Glu(_)
            | Op::Norm(_)
            | Op::NormStats(_)
            | Op::NormApply(_)
            | Op::MulMat(_)
            | Op::MulMatId(_)
            | Op::AddId(_)
            | Op::GetRows(_)
            | Op::SetRows(_)
            | Op::SetSlice(_)
            | Op::Rope(_)
            | Op::SoftMax(_)
            | Op::FlashAttn(_)
            | Op::SsmConv(_)
            | Op::SsmScan(_)
            | Op::GatedDeltaNet(_)
            | Op::Sum(_)
            | Op::TopK(_)
            | Op::ArgSort(_)
            | Op::Reshape(_)
            | Op::Permute(_)
            | Op::Slice(_)
            | Op::Concat(_)
            | Op::Repeat(_)
            | Op::Pad(_)
            | Op::Opaque(_) => None,
        }
    }
}

/// The memories of all places.
#[derive(Clone, Debug, Default)]
struct Memories(BTreeMap<Place, BTreeMap<Value, Arc<Tensor>>>);

impl Memories {
    fn store(&mut self, place: Place, value: Value, tensor: Arc<Tensor>) {
        self.0.entry(place).or_default().insert(value, tensor);
    }

    /// The value as the memory of `place` has it.
    fn read(&self, graph: &Graph, place: Place, value: Value) -> Result<Arc<Tensor>, ExecError> {
        let found = self.0.get(&place).and_then(|m| m.get(&value));
        found.cloned().ok_or_else(|| ExecError::WrongPlace {
            value,
            home: graph.value(value).place,
            place,
        })
    }

    fn free(&mut self, graph: &Graph, value: Value) {
        if let Some(m) = self.0.get_mut(&graph.value(value).place) {
            m.remove(&value);
        }
    }
}

/// A batch of which some phases have run, and what these have left in memory.
#[derive(Clone, Debug)]
pub struct Progress {
    bindings: Bindings,
    memories: Memories,
    transfers: Transfers,
    phase: usize,
}

/// Sees every tensor as it is produced.
pub type Observer<'a> = dyn FnMut(Value, &Tensor) + 'a;

/// Supplies the inputs of a batch: the tensor for an input of this kind and declared type.
pub type Inputs<'a> = dyn FnMut(&InputKind, &TensorType) -> Result<Tensor, ExecError> + 'a;

/// A part of a weight on a place: tensors are loaded once per key.
type PartKey<'a> = (Place, &'a str, Option<&'a [Vec<Interval>]>);

/// Runs a graph whose values live on the host and on single devices.
#[derive(Clone, Debug)]
pub struct Interpreter<'g> {
    graph: &'g Graph,
    options: Options,
    weights: BTreeMap<Value, Arc<Tensor>>,
    states: BTreeMap<Value, Arc<Tensor>>,
    schedule: Schedule,
    places: BTreeMap<Place, PlaceStats>,
    transfers: Transfers,
}

impl<'g> Interpreter<'g> {
    /// An interpreter of `graph` with its weights loaded: each place holds only its own parts, each part once.
    ///
    /// # Errors
    /// [`ExecError::NotLowered`] when a value lives on a group; [`ExecError::Malformed`] when values are used before
    /// they are defined; and what the weights lack.
    pub fn new(
        graph: &'g Graph,
        weights: &dyn WeightSource,
        options: Options,
    ) -> Result<Interpreter<'g>, ExecError> {
        let schedule = Schedule::of(graph)?;
        let mut out = Interpreter {
            graph,
            options,
            weights: BTreeMap::new(),
            states: BTreeMap::new(),
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

    /// The graph that this runs.
    pub const fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// What each place stores.
    pub const fn places(&self) -> &BTreeMap<Place, PlaceStats> {
        &self.places
    }

    /// The transfers of the last batch.
    pub const fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// The content of the state that a `state` op defines; `None` before its first batch.
    pub fn state(&self, value: Value) -> Option<&Tensor> {
        self.states.get(&value).map(|t| &**t)
    }

    /// Forgets the content of all states: they are zero again, and may have other sizes.
    pub fn reset_states(&mut self) {
        self.states.clear();
        for place in self.places.values_mut() {
            place.state_bytes = 0;
        }
    }

    /// Runs one batch and returns the named outputs.
    ///
    /// # Errors
    /// When an input is not what the graph declares, an op reads from another place, or an index is out of range;
    /// the message names the instruction. States keep the content they had before.
    pub fn run(
        &mut self,
        bindings: &Bindings,
        inputs: &mut Inputs<'_>,
    ) -> Result<BTreeMap<String, Tensor>, ExecError> {
        self.run_observed(bindings, inputs, None)
    }

    /// [`Self::run`], showing every tensor to `observe` as it is produced.
    ///
    /// # Errors
    /// The same.
    pub fn run_observed(
        &mut self,
        bindings: &Bindings,
        inputs: &mut Inputs<'_>,
        mut observe: Option<&mut Observer<'_>>,
    ) -> Result<BTreeMap<String, Tensor>, ExecError> {
        let before = self.states.clone();
        let mut run = self.begin(bindings);
        let mut named = BTreeMap::new();
        while self.ahead(&run).is_some() {
            match self.advance(&mut run, inputs, observe.as_deref_mut()) {
                Ok(outputs) => named.extend(outputs),
                Err(e) => {
                    self.states = before;
                    return Err(e);
                }
            }
        }
        Ok(named)
    }

    /// A batch of which nothing has run.
    pub fn begin(&self, bindings: &Bindings) -> Progress {
        Progress {
            bindings: *bindings,
            memories: Memories::default(),
            transfers: Transfers::default(),
            phase: 0,
        }
    }

    /// How many tokens ahead must be known for the next phase of a batch, none for the first; `None` when all have run.
    pub fn ahead(&self, run: &Progress) -> Option<u32> {
        self.schedule.ahead(run.phase)
    }

    /// Runs the next phase of a batch, if there is one, and returns its named outputs. The first phase asks for all
    /// inputs but [`InputKind::NextTokens`], a later one for those of its number.
    ///
    /// # Errors
    /// As [`Self::run`]. The batch cannot go on then.
    pub fn advance(
        &mut self,
        run: &mut Progress,
        inputs: &mut Inputs<'_>,
        mut observe: Option<&mut Observer<'_>>,
    ) -> Result<BTreeMap<String, Tensor>, ExecError> {
        let mut named = BTreeMap::new();
        if self.ahead(run).is_none() {
            return Ok(named);
        }
        let graph = self.graph;
        let Progress {
            bindings,
            memories,
            transfers,
            phase,
        } = run;
        for Step { inst, dead } in self.schedule.steps(*phase) {
            let data = graph.inst(*inst);
            let produced = self
                .step(data, bindings, inputs, memories, transfers)
                .map_err(|e| e.at(|| describe(graph, *inst)))?;
            for (&value, tensor) in data.results.iter().zip(produced) {
                if let Some(see) = observe.as_deref_mut() {
                    see(value, &tensor);
                }
                memories.store(graph.value(value).place, value, tensor);
            }
            for &value in dead {
                memories.free(graph, value);
            }
        }
        let mut updates = Vec::new();
        for output in &graph.outputs {
            if !self.schedule.computes(*phase, graph, output.value()) {
                continue;
            }
            match output {
                Output::Named(name, value) => {
                    let t = memories.read(graph, graph.value(*value).place, *value)?;
                    named.insert(name.clone(), Tensor::clone(&t));
                }
                Output::State { state, value } => {
                    let updated = self.updated_state(*state, *value, bindings, memories);
                    let named = |e: ExecError| e.at(|| describe(graph, graph.value(*state).def.0));
                    updates.push((*state, updated.map_err(named)?));
                }
            }
        }
        self.states.extend(updates);
        self.count_states(bindings)?;
        self.transfers = *transfers;
        *phase += 1;
        Ok(named)
    }

    fn step(
        &self,
        data: &InstData,
        bindings: &Bindings,
        inputs: &mut Inputs<'_>,
        memories: &Memories,
        transfers: &mut Transfers,
    ) -> Result<Vec<Arc<Tensor>>, ExecError> {
        let graph = self.graph;
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
                let tensor = inputs(&op.kind, &graph.value(value).ty)?;
                tensor.expect("the input", &shapes[0])?;
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
                if let Some(traffic) = transfers.of(op) {
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
        match self.states.get(&value) {
            None => Tensor::zeros(shape).map(Arc::new),
            Some(t) if t.dims() == shape.dims => Ok(Arc::clone(t)),
            Some(t) => Err(ExecError::StateResized {
                state: op.name.clone(),
                kept: t.dims(),
                expected: shape.dims,
            }),
        }
    }

    /// What a state becomes: a value of its own place and sizes, rounded to its type unless the value has that type
    /// already (as what `set_rows` writes has).
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

/// `inst3 mul_mat (blk.0.ffn_up)`.
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

/// The place whose memory an instruction reads operand `i` from.
fn reading_place(graph: &Graph, data: &InstData, i: usize) -> Result<Place, ExecError> {
    let result = if data.op.is_collective() { i } else { 0 };
    if let Op::Copy(_) = data.op {
        return Ok(graph.value(data.operands[i]).place);
    }
    let result = data.results.get(result);
    result
        .map(|&v| graph.value(v).place)
        .ok_or_else(|| ExecError::Malformed {
            what: format!("{} has no result for operand {i}", data.op.name()),
        })
}

#[cfg(test)]
mod tests;
