use std::collections::BTreeSet;

use tpc_core::pipeline::compile_capture;
use tpc_core::placement::{CacheSplit, Placement};
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

#[derive(Clone, Debug)]
pub(super) struct ClientTensor {
    name: String,
    dtype: DType,
    ne: [u64; RANK],
    nb: [u64; RANK],
    pub(super) span: Span,
    /// True if the graph reads the elements.
    pub(super) is_read: bool,
}

struct StatePart {
    value: Value,
    state: usize,
    parts: Option<Vec<Vec<Interval>>>,
    ty: TensorType,
}

impl StatePart {
    /// Returns the device's intervals per axis for a state of sizes `ne`; `None` for the whole state. Axes with a size
    /// known only at run time are not split.
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

#[derive(Clone, Debug, Default)]
pub(super) struct GraphBinding {
    sizes: Bindings,
    pub(super) weights: Vec<ClientTensor>,
    pub(super) inputs: Vec<ClientTensor>,
    pub(super) states: Vec<ClientTensor>,
    /// Results in the order of the program's outputs; `None` for a result without memory.
    pub(super) results: Vec<Option<ClientTensor>>,
    /// Spans that become stale when the graph runs. Storing a result makes its span current again.
    pub(super) stale: Vec<Span>,
    /// The number of the program; `None` before the graph is prepared.
    pub(super) program: Option<u64>,
}

pub(super) struct Plan {
    captured: CapturedGraph,
    read: BTreeSet<String>,
    programs: Verified<stage::Programs>,
    storage: &'static dyn Target,
}

pub(super) struct LoadedProgram {
    plan: Plan,
    executor: Box<dyn Executor>,
    /// The largest batch for the program's memory.
    shape: BatchShape,
    parts: Vec<StatePart>,
    /// ggml's names of ops that the reference executor computes.
    pub(super) by_reference: BTreeSet<String>,
}

struct Weights<'m> {
    memory: &'m Memory,
    tensors: &'m [ClientTensor],
}

impl WeightSource for Weights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let found = self.tensors.iter().find(|w| w.name == tensor);
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

struct Inputs<'m> {
    memory: &'m Memory,
    tensors: &'m [ClientTensor],
}

impl Host for Inputs<'_> {
    fn input(&mut self, kind: &InputKind, _ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        let InputKind::Other(name) = kind else {
            return Err(ExecError::MissingInput {
                input: format!("{kind:?}"),
            });
        };
        let found = self.tensors.iter().find(|t| t.name == *name);
        let t = found.ok_or_else(|| ExecError::MissingInput {
            input: name.clone(),
        })?;
        supply(t.dtype, t.ne, self.memory.bytes(t.span), to)
    }
}

/// Finds the leaves and results of a graph in the client's memory. Names leaves after the program's inputs.
fn bind(
    leaves: &[Leaf],
    results: &[usize],
    recorded: &Recorded,
    span: &dyn Fn(usize) -> Result<Span, Refusal>,
) -> Result<GraphBinding, Refusal> {
    let mut out = GraphBinding::default();
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
        // The client cannot read a result without memory.
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
    /// Returns the findings of planning, or an error if the proof fails.
    pub(super) fn new(
        captured: CapturedGraph,
        placement: &Placement,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let size = |symbol: Symbol| captured.batch.iter().find(|(s, _)| *s == symbol);
        let cells = [Symbol::NCtx, Symbol::NKv].into_iter().find_map(size);
        let placement = Placement {
            ctx_size: cells.map(|(_, n)| *n).or(placement.ctx_size),
            // The client lays out the cells of its caches.
            cache_split: CacheSplit::Heads,
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

    /// Returns the batch sizes that make the planned graph equal to `fixed`; `None` if none exist.
    pub(super) fn sizes_of(&self, fixed: &CapturedGraph) -> Option<Bindings> {
        self.captured.sizes_of(fixed)
    }

    /// Rounds batch sizes up to powers of two, at most to the cells of the cache.
    fn with_headroom(&self, sizes: &Bindings) -> Bindings {
        let mut most = *sizes;
        for &(symbol, _) in &self.captured.batch {
            let n = sizes.get(symbol);
            let next = n.checked_next_power_of_two().unwrap_or(n);
            let rounded = match symbol {
                Symbol::NCtx | Symbol::NCtxSwa | Symbol::NSeqMax => n,
                Symbol::NKv => next.min(sizes.get(Symbol::NCtx)).max(n),
                Symbol::NKvSwa => next.min(sizes.get(Symbol::NCtxSwa)).max(n),
                Symbol::NTokens | Symbol::NSeqs | Symbol::NSeqTokens | Symbol::NOutputs => next,
            };
            most = most.with(symbol, rounded);
        }
        most
    }

    /// Lays the program out for batches of at least these sizes, and loads it.
    ///
    /// # Errors
    /// Returns an error if a size overflows, the verifier rejects the program, or the executor cannot load it.
    pub(super) fn load(
        self,
        sizes: &Bindings,
        (memory, weights): (&Memory, &[ClientTensor]),
        executors: &Executors,
    ) -> Result<LoadedProgram, Vec<Diagnostic>> {
        let execution_error = |e: &ExecError| vec![execution_diagnostic(e)];
        let too_large = |e: &dyn std::fmt::Display| {
            execution_error(&ExecError::Size {
                what: e.to_string(),
            })
        };
        let by_reference = self.programs.insts().filter_map(|(_, i)| match &i.op {
            Op::Opaque(op) => Some(op.name.clone()),
            _ => None,
        });
        let by_reference = by_reference.collect();
        let most = self.with_headroom(sizes);
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
            tensors: weights,
        };
        let executor = executors
            .load(program, &weights)
            .map_err(|e| execution_error(&e))?;
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
        Ok(LoadedProgram {
            parts,
            shape: BatchShape { most },
            executor,
            plan: self,
            by_reference,
        })
    }

    /// Binds the plan to a graph with these leaves and batch sizes.
    ///
    /// # Errors
    /// Returns an error if a leaf or a result is outside all buffers.
    pub(super) fn bind(
        &self,
        (sizes, leaves): (&Bindings, &[Leaf]),
        recorded: &Recorded,
        span: &dyn Fn(usize) -> Result<Span, Refusal>,
    ) -> Result<GraphBinding, Refusal> {
        let mut binding = bind(leaves, &self.captured.results, recorded, span)?;
        for input in &mut binding.inputs {
            input.is_read = self.read.contains(&input.name);
        }
        Ok(GraphBinding {
            sizes: *sizes,
            ..binding
        })
    }
}

impl LoadedProgram {
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Describes the program: `a program of 92 ops for n_tokens up to 8, n_kv up to 256`.
    pub(super) fn describe(&self) -> String {
        let ops = self.plan.captured.graph.insts().len();
        let batch = self.plan.captured.batch.iter();
        let sizes: Vec<String> = batch
            .map(|(s, _)| format!("{} up to {}", s.name(), self.shape.most.get(*s)))
            .collect();
        match sizes.is_empty() {
            true => format!("a program of {ops} ops for one batch size"),
            false => format!("a program of {ops} ops for {}", sizes.join(", ")),
        }
    }

    pub(super) fn into_plan(self) -> Plan {
        self.plan
    }

    pub(super) fn sizes_with(&self, sizes: &Bindings) -> Bindings {
        larger(&self.shape.most, sizes)
    }

    pub(super) fn holds(&self, sizes: &Bindings) -> bool {
        self.shape.holds(sizes)
    }

    pub(super) fn load_states(
        &mut self,
        binding: &GraphBinding,
        memory: &Memory,
    ) -> Result<(), ExecError> {
        for part in &self.parts {
            let at = &binding.states[part.state];
            let data = WeightData {
                dtype: at.dtype,
                ne: at.ne,
                bytes: memory.bytes(at.span),
            };
            let cut = pack(&at.name, data, part.intervals(at.ne).as_deref())?;
            let missing = || no_memory(&at.name);
            let to = self.executor.state_mut(part.value)?.ok_or_else(missing)?;
            to.copy_from_slice(cut.bytes.get(..to.len()).ok_or_else(missing)?);
        }
        Ok(())
    }

    pub(super) fn store_states(
        &self,
        binding: &GraphBinding,
        memory: &mut Memory,
    ) -> Result<(), ExecError> {
        for part in &self.parts {
            let at = &binding.states[part.state];
            let missing = || no_memory(&at.name);
            let local = self.executor.state(part.value)?.ok_or_else(missing)?;
            let whole = memory.bytes_mut(at.span);
            match part.intervals(at.ne) {
                Some(parts) => scatter((at.dtype, at.ne), &parts, local, whole),
                None => whole.copy_from_slice(local.get(..whole.len()).ok_or_else(missing)?),
            }
        }
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        binding: &GraphBinding,
        memory: &mut Memory,
        times: &mut Times,
    ) -> Result<(), ExecError> {
        let mut host = Inputs {
            memory,
            tensors: &binding.inputs,
        };
        let executor = self.executor.as_mut();
        times.measure(|| run(executor, &binding.sizes, &mut host))?;
        for (i, at) in binding.results.iter().enumerate() {
            let Some(at) = at else { continue };
            let missing = || no_memory("a result");
            let (dtype, packed) = self.executor.output(i)?.ok_or_else(missing)?;
            if dtype != at.dtype {
                return Err(missing());
            }
            store(&packed, (dtype, at.ne), at.nb, memory.bytes_mut(at.span));
        }
        Ok(())
    }
}

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

/// Returns the larger of each size, or `b` if sizes of states differ, because states have fixed sizes.
pub(super) fn larger(a: &Bindings, b: &Bindings) -> Bindings {
    let states = [Symbol::NCtx, Symbol::NCtxSwa, Symbol::NSeqMax];
    if states.iter().any(|&s| a.get(s) != b.get(s)) {
        return *b;
    }
    let both = |out: Bindings, s: Symbol| out.with(s, out.get(s).max(b.get(s)));
    Symbol::ALL.into_iter().fold(*a, both)
}

fn no_memory(what: &str) -> ExecError {
    ExecError::Malformed {
        what: format!("{what} lacks memory of its own"),
    }
}
