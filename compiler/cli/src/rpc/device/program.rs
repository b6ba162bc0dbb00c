//! A graph as a program: planned, proved, laid out and loaded.

use std::sync::Arc;

use tpc_core::pipeline::compile_capture;
use tpc_core::placement::Placement;
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_diag::Diagnostic;
use tpc_ggml::capture::{Leaf, Role, read_fixed};
use tpc_ir::op::InputKind;
use tpc_ir::program::{BatchShape, verify::verify};
use tpc_ir::{Bindings, DType, Interval, RANK, TensorType, Value};
use tpc_passes::assemble;
use tpc_rpc::{Recorded, Refusal, Span};
use tpc_runtime::{ExecError, Executor, Host, Outputs, Slot, WeightData, WeightSource, pack};

use super::elements::{scatter, store, supply};
use super::memory::Memory;
use crate::engine;

/// A tensor in a client's memory.
#[derive(Clone, Debug)]
pub(super) struct Located {
    name: String,
    dtype: DType,
    ne: [u64; RANK],
    nb: [u64; RANK],
    pub(super) span: Span,
}

/// The part of a state that a device has.
struct StatePart {
    value: Value,
    /// The state among the located ones.
    state: usize,
    parts: Option<Vec<Vec<Interval>>>,
}

/// What a graph reads and writes in a client's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    pub(super) weights: Vec<Located>,
    pub(super) inputs: Vec<Located>,
    pub(super) states: Vec<Located>,
    /// `None` for one without memory.
    pub(super) results: Vec<Option<Located>>,
}

/// A graph that is ready to run.
pub(super) struct Loaded {
    executor: CpuExecutor,
    outputs: Outputs,
    leaves: Vec<Leaf>,
    /// The record of each result.
    results: Vec<usize>,
    parts: Vec<StatePart>,
}

/// The weights of a graph in a client's memory.
struct Weights<'m> {
    memory: &'m Memory,
    located: &'m [Located],
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
    located: &'m [Located],
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

/// Where the leaves and the results of a graph are, by the names that its program has for them.
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
        Ok::<Located, Refusal>(Located {
            name: name.to_owned(),
            dtype: t.dtype,
            ne: t.ne,
            nb: t.nb,
            span: span(tensor)?,
        })
    };
    for leaf in leaves {
        let to = match leaf.role {
            Role::Weight => &mut out.weights,
            Role::Input => &mut out.inputs,
            Role::State => &mut out.states,
        };
        to.push(Located {
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

impl Loaded {
    /// Plans, proves and loads a graph.
    ///
    /// # Errors
    /// The reason why it cannot be run.
    pub(super) fn new(
        recorded: &Recorded,
        memory: &Memory,
        span: &dyn Fn(usize) -> Result<Span, Refusal>,
        placement: &Placement,
        threads: usize,
    ) -> Result<Loaded, Vec<Diagnostic>> {
        let one = |d: Diagnostic| vec![d];
        let executed = |e: &ExecError| one(engine::execution_error(e));
        let captured = read_fixed(&recorded.records, "graph").map_err(|e| one(e.into()))?;
        let compiled = compile_capture(&captured, placement)?;
        if let Some(d) = compiled.unproved() {
            return Err(one(d));
        }
        let shape = BatchShape {
            most: Bindings::default(),
        };
        let too_large = |e: &dyn std::fmt::Display| {
            executed(&ExecError::Size {
                what: e.to_string(),
            })
        };
        let program =
            assemble(&compiled.programs, &[shape], placement.storage).map_err(|e| too_large(&e))?;
        verify(&program).map_err(|errors| match errors.first() {
            Some(e) => too_large(e),
            None => Vec::new(),
        })?;
        let bound = bind(&captured.leaves, &captured.results, recorded, span)
            .map_err(|e| one(e.diagnostic("client")))?;
        let weights = Weights {
            memory,
            located: &bound.weights,
        };
        let options = CpuOptions::with_threads(threads);
        let executor = CpuExecutor::new(Arc::new(program), &weights, options);
        let executor = executor.map_err(|e| executed(&e))?;
        let interface = executor.interface();
        let parts = interface.states.iter().filter_map(|s| {
            Some(StatePart {
                value: s.value,
                state: bound.states.iter().position(|at| at.name == s.name)?,
                parts: s.parts.clone(),
            })
        });
        Ok(Loaded {
            outputs: Outputs::new(interface),
            parts: parts.collect(),
            executor,
            leaves: captured.leaves,
            results: captured.results,
        })
    }

    /// Where the leaves and the results are in a graph of the same form.
    pub(super) fn bind(
        &self,
        recorded: &Recorded,
        span: &dyn Fn(usize) -> Result<Span, Refusal>,
    ) -> Result<Bound, Refusal> {
        bind(&self.leaves, &self.results, recorded, span)
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
            let cut = pack(&at.name, data, part.parts.as_deref())?;
            let to = self.executor.state_mut(part.value).ok_or_else(gaps)?;
            to.copy_from_slice(cut.bytes.get(..to.len()).ok_or_else(gaps)?);
        }
        Ok(())
    }

    /// Gives the states back to the client's memory.
    pub(super) fn give_states(&self, bound: &Bound, memory: &mut Memory) -> Result<(), ExecError> {
        for part in &self.parts {
            let at = &bound.states[part.state];
            let local = self.executor.state(part.value).ok_or_else(gaps)?;
            let whole = memory.bytes_mut(at.span);
            match &part.parts {
                Some(parts) => scatter((at.dtype, at.ne), parts, local, whole),
                None => whole.copy_from_slice(local.get(..whole.len()).ok_or_else(gaps)?),
            }
        }
        Ok(())
    }

    /// Runs the graph: inputs come from the client's memory, and results go there.
    pub(super) fn run(&mut self, bound: &Bound, memory: &mut Memory) -> Result<(), ExecError> {
        let mut run = self.executor.begin(&Bindings::default());
        let mut host = Inputs {
            memory,
            located: &bound.inputs,
        };
        self.executor
            .run_phase(&mut run, &mut host, &mut self.outputs)?;
        self.executor.commit();
        for (i, at) in bound.results.iter().enumerate() {
            let Some(at) = at else { continue };
            let result = self.outputs.get(i).ok_or_else(gaps)?;
            store(result, at.dtype, at.nb, memory.bytes_mut(at.span))?;
        }
        Ok(())
    }
}

fn gaps() -> ExecError {
    ExecError::Malformed {
        what: "a state or a result has no memory of its own".into(),
    }
}
