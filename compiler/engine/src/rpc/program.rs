//! A graph as a program: planned, proved, laid out and loaded.

use std::collections::BTreeSet;

use tpc_core::pipeline::compile_capture;
use tpc_core::placement::Placement;
use tpc_diag::Diagnostic;
use tpc_ggml::capture::{CapturedGraph, Leaf, Role};
use tpc_ir::op::InputKind;
use tpc_ir::program::{BatchShape, Target, verify::verify};
use tpc_ir::{Bindings, DType, Interval, Op, RANK, Symbol, TensorType, Value, Verified, stage};
use tpc_passes::assemble;
use tpc_rpc::{Recorded, Refusal, Span};
use tpc_runtime::{
    BatchRun, ExecError, Executor, Host, Outputs, Slot, WeightData, WeightSource, pack,
};

use super::elements::{scatter, store, supply};
use super::executors::Executors;
use super::memory::Memory;
use super::reads::read_inputs;
use super::times::Times;
use crate::error::execution_diagnostic;

/// A tensor in a client's memory.
#[derive(Clone, Debug)]
pub(super) struct ClientTensor {
    name: String,
    dtype: DType,
    ne: [u64; RANK],
    nb: [u64; RANK],
    pub(super) span: Span,
    /// Whether the graph reads its elements.
    pub(super) is_read: bool,
}

/// The part of a state that a device has.
struct StatePart {
    value: Value,
    /// The state among the located ones.
    state: usize,
    parts: Option<Vec<Vec<Interval>>>,
    ty: TensorType,
}

impl StatePart {
    /// Per axis, what the device has of a state of these sizes; `None` for all. What is known at run time is not split.
    fn intervals(&self, ne: [u64; RANK]) -> Option<Vec<Vec<Interval>>> {
        let mut out = self.parts.clone()?;
        for (axis, own) in out.iter_mut().enumerate().take(RANK) {
            if self.ty.dims[axis].as_const().is_none() {
                let len = ne[axis];
                *own = vec![Interval { start: 0, len }];
            }
        }
        Some(out)
    }
}

/// What a graph reads and writes in a client's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    /// The sizes of its batch.
    sizes: Bindings,
    pub(super) weights: Vec<ClientTensor>,
    pub(super) inputs: Vec<ClientTensor>,
    pub(super) states: Vec<ClientTensor>,
    /// `None` for one without memory.
    pub(super) results: Vec<Option<ClientTensor>>,
    /// What the graph computes and does not keep in the client's memory, before its results are stored.
    pub(super) lost: Vec<Span>,
}

/// A graph with its plan.
pub(super) struct Plan {
    captured: CapturedGraph,
    /// The inputs whose elements are read.
    read: BTreeSet<String>,
    programs: Verified<stage::Programs>,
    storage: &'static dyn Target,
}

/// A graph that is ready to run.
pub(super) struct Loaded {
    plan: Plan,
    executor: Box<dyn Executor>,
    /// The largest sizes that it has memory for.
    shape: BatchShape,
    parts: Vec<StatePart>,
    /// The ops that the reference computes, by ggml's names.
    pub(super) by_reference: BTreeSet<String>,
}

/// The weights of a graph in a client's memory.
struct Weights<'m> {
    memory: &'m Memory,
    located: &'m [ClientTensor],
}

impl WeightSource for Weights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let found = self.located.iter().find(|w| w.name == tensor);
        let w = found.ok_or_else(|| ExecError::MissingWeight {
            tensor: tensor.to_owned(),
        })?;
        Ok(WeightData {
            dtype: w.dtype,
            ne: w.ne,
            bytes: self.memory.bytes(w.span),
        })
    }
}

/// The host's side of a graph: its inputs are in the client's memory.
struct Inputs<'m> {
    memory: &'m Memory,
    located: &'m [ClientTensor],
}

impl Host for Inputs<'_> {
    fn input(&mut self, kind: &InputKind, _ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        let InputKind::Other(name) = kind else {
            return Err(ExecError::MissingInput {
                input: format!("{kind:?}"),
            });
        };
        let found = self.located.iter().find(|t| t.name == *name);
        let t = found.ok_or_else(|| ExecError::MissingInput {
            input: name.clone(),
        })?;
        supply(t.dtype, t.ne, self.memory.bytes(t.span), to)
    }
}

/// Where these leaves and results of a graph are, by the names that its program has for them.
fn bind(
    leaves: &[Leaf],
    results: &[usize],
    recorded: &Recorded,
    span: &dyn Fn(usize) -> Result<Span, Refusal>,
) -> Result<Bound, Refusal> {
    let mut out = Bound::default();
    let located = |name: &str, record: usize| {
        let tensor = recorded.tensors[record];
        let t = &recorded.graph.tensors[tensor];
        Ok::<ClientTensor, Refusal>(ClientTensor {
            name: name.to_owned(),
            dtype: t.dtype,
            ne: t.ne,
            nb: t.nb,
            span: span(tensor)?,
            is_read: true,
        })
    };
    for leaf in leaves {
        let to = match leaf.role {
            Role::Weight => &mut out.weights,
            Role::Input => &mut out.inputs,
            Role::State => &mut out.states,
        };
        to.push(ClientTensor {
            ne: leaf.ne,
            ..located(&leaf.name, leaf.record)?
        });
    }
    for &record in results {
        // What has no memory is read by nobody.
        let has_memory = recorded.graph.tensors[recorded.tensors[record]].buffer != 0;
        let result = has_memory.then(|| located("", record));
        out.results.push(result.transpose()?);
    }
    Ok(out)
}

impl Plan {
    /// Plans a graph, and proves the plan.
    ///
    /// # Errors
    /// The reason why it cannot be run.
    pub(super) fn new(
        captured: CapturedGraph,
        placement: &Placement,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let size = |symbol: Symbol| captured.batch.iter().find(|(s, _)| *s == symbol);
        let cells = [Symbol::NCtx, Symbol::NKv].into_iter().find_map(size);
        let placement = Placement {
            ctx_size: cells.map(|(_, n)| *n).or(placement.ctx_size),
            ..placement.clone()
        };
        let compiled = compile_capture(&captured, &placement)?;
        if let Some(d) = compiled.proof_error() {
            return Err(vec![d]);
        }
        Ok(Plan {
            read: read_inputs(&captured.graph),
            captured,
            programs: compiled.programs,
            storage: placement.storage,
        })
    }

    /// The sizes with which it is a graph that has none but numbers; `None` where it never is.
    pub(super) fn sizes_of(&self, fixed: &CapturedGraph) -> Option<Bindings> {
        self.captured.sizes_of(fixed)
    }

    /// Sizes with room for more: the next power of two, and no more cells than the cache has.
    fn roomy(&self, sizes: &Bindings) -> Bindings {
        let mut most = *sizes;
        for &(symbol, _) in &self.captured.batch {
            let n = sizes.get(symbol);
            let next = n.checked_next_power_of_two().unwrap_or(n);
            let room = match symbol {
                Symbol::NCtx | Symbol::NCtxSwa | Symbol::NSeqMax => n,
                Symbol::NKv => next.min(sizes.get(Symbol::NCtx)).max(n),
                Symbol::NKvSwa => next.min(sizes.get(Symbol::NCtxSwa)).max(n),
                Symbol::NTokens | Symbol::NSeqs | Symbol::NSeqTokens | Symbol::NOutputs => next,
            };
            most = most.with(symbol, room);
        }
        most
    }

    /// Lays the programs out for batches of up to such sizes, and loads the weights.
    ///
    /// # Errors
    /// The reason why they cannot be run.
    pub(super) fn load(
        self,
        sizes: &Bindings,
        (memory, weights): (&Memory, &[ClientTensor]),
        executors: &Executors,
    ) -> Result<Loaded, Vec<Diagnostic>> {
        let executed = |e: &ExecError| vec![execution_diagnostic(e)];
        let too_large = |e: &dyn std::fmt::Display| {
            executed(&ExecError::Size {
                what: e.to_string(),
            })
        };
        let by_reference = self.programs.insts().filter_map(|(_, i)| match &i.op {
            Op::Opaque(op) => Some(op.name.clone()),
            _ => None,
        });
        let by_reference = by_reference.collect();
        let most = self.roomy(sizes);
        let one = [Symbol::NTokens, Symbol::NOutputs]
            .into_iter()
            .fold(most, |b, s| b.with(s, 1));
        let mut shapes: Vec<BatchShape> = [one, most].map(|most| BatchShape { most }).into();
        shapes.dedup();
        let program = assemble(&self.programs, &shapes, self.storage).map_err(|e| too_large(&e))?;
        verify(&program).map_err(|errors| match errors.first() {
            Some(e) => too_large(e),
            None => Vec::new(),
        })?;
        let weights = Weights {
            memory,
            located: weights,
        };
        let executor = executors
            .load(program, &weights)
            .map_err(|e| executed(&e))?;
        let interface = executor.interface();
        let leaves = self.captured.leaves.iter();
        let states: Vec<&Leaf> = leaves.filter(|leaf| leaf.role == Role::State).collect();
        let parts = interface.states.iter().filter_map(|s| {
            Some(StatePart {
                value: s.value,
                state: states.iter().position(|leaf| leaf.name == s.name)?,
                parts: s.parts.clone(),
                ty: s.ty.clone(),
            })
        });
        let parts = parts.collect();
        Ok(Loaded {
            parts,
            shape: BatchShape { most },
            executor,
            plan: self,
            by_reference,
        })
    }

    /// Where the leaves and the results are in a graph that has these leaves, and runs with these sizes.
    ///
    /// # Errors
    /// When one of them lies in no buffer.
    pub(super) fn bind(
        &self,
        (sizes, leaves): (&Bindings, &[Leaf]),
        recorded: &Recorded,
        span: &dyn Fn(usize) -> Result<Span, Refusal>,
    ) -> Result<Bound, Refusal> {
        let mut bound = bind(leaves, &self.captured.results, recorded, span)?;
        for input in &mut bound.inputs {
            input.is_read = self.read.contains(&input.name);
        }
        Ok(Bound {
            sizes: *sizes,
            ..bound
        })
    }
}

impl Loaded {
    /// Its plan.
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What it runs: `a program of 92 ops for n_tokens up to 8, n_kv up to 256`.
    pub(super) fn describe(&self) -> String {
        let ops = self.plan.captured.graph.insts().len();
        let batch = self.plan.captured.batch.iter();
        let sizes: Vec<String> = batch
            .map(|(s, _)| format!("{} up to {}", s.name(), self.shape.most.get(*s)))
            .collect();
        match sizes.is_empty() {
            true => format!("a program of {ops} ops for one size of batch"),
            false => format!("a program of {ops} ops for {}", sizes.join(", ")),
        }
    }

    /// The plan alone: memory and weights are given back.
    pub(super) fn into_plan(self) -> Plan {
        self.plan
    }

    /// The sizes that it has memory for, or these where they are larger.
    pub(super) fn sizes_with(&self, sizes: &Bindings) -> Bindings {
        larger(&self.shape.most, sizes)
    }

    /// Whether it has memory for a batch of these sizes.
    pub(super) fn holds(&self, sizes: &Bindings) -> bool {
        self.shape.holds(sizes)
    }

    /// Takes the states from the client's memory.
    pub(super) fn take_states(&mut self, bound: &Bound, memory: &Memory) -> Result<(), ExecError> {
        for part in &self.parts {
            let at = &bound.states[part.state];
            let data = WeightData {
                dtype: at.dtype,
                ne: at.ne,
                bytes: memory.bytes(at.span),
            };
            let cut = pack(&at.name, data, part.intervals(at.ne).as_deref())?;
            let gaps = || gaps(&at.name);
            let to = self.executor.state_mut(part.value)?.ok_or_else(gaps)?;
            to.copy_from_slice(cut.bytes.get(..to.len()).ok_or_else(gaps)?);
        }
        Ok(())
    }

    /// Gives the states back to the client's memory.
    pub(super) fn give_states(&self, bound: &Bound, memory: &mut Memory) -> Result<(), ExecError> {
        for part in &self.parts {
            let at = &bound.states[part.state];
            let gaps = || gaps(&at.name);
            let local = self.executor.state(part.value)?.ok_or_else(gaps)?;
            let whole = memory.bytes_mut(at.span);
            match part.intervals(at.ne) {
                Some(parts) => scatter((at.dtype, at.ne), &parts, local, whole),
                None => whole.copy_from_slice(local.get(..whole.len()).ok_or_else(gaps)?),
            }
        }
        Ok(())
    }

    /// Runs the graph: inputs come from the client's memory, and results go there.
    pub(super) fn run(
        &mut self,
        bound: &Bound,
        memory: &mut Memory,
        times: &mut Times,
    ) -> Result<(), ExecError> {
        let mut host = Inputs {
            memory,
            located: &bound.inputs,
        };
        let executor = self.executor.as_mut();
        times.within(|| run(executor, &bound.sizes, &mut host))?;
        for (i, at) in bound.results.iter().enumerate() {
            let Some(at) = at else { continue };
            let gaps = || gaps("a result");
            let (dtype, packed) = self.executor.output(i)?.ok_or_else(gaps)?;
            if dtype != at.dtype {
                return Err(gaps());
            }
            store(&packed, (dtype, at.ne), at.nb, memory.bytes_mut(at.span));
        }
        Ok(())
    }
}

/// Runs a batch of these sizes.
fn run(
    executor: &mut dyn Executor,
    sizes: &Bindings,
    host: &mut dyn Host,
) -> Result<(), ExecError> {
    let mut batch = BatchRun::new(sizes);
    executor.run_phase(&mut batch, host, &mut Outputs::unread())?;
    executor.commit();
    Ok(())
}

/// The larger of each size; the latter alone where states have other sizes.
pub(super) fn larger(a: &Bindings, b: &Bindings) -> Bindings {
    let states = [Symbol::NCtx, Symbol::NCtxSwa, Symbol::NSeqMax];
    if states.iter().any(|&s| a.get(s) != b.get(s)) {
        return *b;
    }
    let both = |out: Bindings, s: Symbol| out.with(s, out.get(s).max(b.get(s)));
    Symbol::ALL.into_iter().fold(*a, both)
}

fn gaps(what: &str) -> ExecError {
    ExecError::Malformed {
        what: format!("{what} has no memory of its own"),
    }
}
