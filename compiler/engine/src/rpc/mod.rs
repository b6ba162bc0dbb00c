//! Plans, proves and runs the graphs of llama.cpp's programs over ggml's RPC protocol.
//!
//! - The server has a copy of each client buffer. New programs load their weight shards from this copy.
//! - Graphs that differ only in batch sizes share a program.
//! - Programs read inputs from the buffers, and store results there if the client may read them. Other results stay in
//!   the program, and their buffer ranges become stale. Reading a stale range is an error.
//! - States stay in the program that wrote them until another program or the client needs them.

mod elements;
mod executors;
mod memory;
mod prepared;
mod program;
mod programs;
mod reads;
mod refusal;
mod times;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tpc_core::placement::Placement;
use tpc_rpc::{Buffers, Client, Device, Graph, Recorded, Refusal, Roles, Span, Tensor};

use crate::observer::Observer;
pub use executors::Executors;
use memory::Memory;
use prepared::Prepared;
use program::GraphBinding;
use programs::Programs;
use refusal::cannot_run;
use times::Times;

/// A device of ggml's RPC protocol that runs the graphs of its clients.
pub struct GraphDevice {
    placement: Placement,
    executors: Executors,
    observer: Arc<dyn Observer>,
    graphs: Arc<AtomicU64>,
    reported: Arc<Mutex<BTreeSet<String>>>,
}

impl GraphDevice {
    /// Creates an RPC device from the devices of a placement.
    pub fn new(
        placement: Placement,
        executors: Executors,
        observer: Arc<dyn Observer>,
    ) -> GraphDevice {
        GraphDevice {
            placement,
            executors,
            observer,
            graphs: Arc::default(),
            reported: Arc::default(),
        }
    }

    /// Returns the counter of computed graphs.
    pub fn graphs(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.graphs)
    }
}

impl Device for GraphDevice {
    fn connect(&self) -> Box<dyn Client> {
        Box::new(Connection {
            graphs: Arc::clone(&self.graphs),
            memory: Memory::default(),
            roles: Roles::default(),
            programs: Programs::new(
                (self.placement.clone(), self.executors.clone()),
                Arc::clone(&self.observer),
                Arc::clone(&self.reported),
            ),
            state_holders: Vec::new(),
            prepared: Prepared::default(),
            times: Times::new(Arc::clone(&self.observer)),
        })
    }
}

/// A program with states that are newer than the client's memory.
struct StateHolder {
    key: String,
    binding: Arc<GraphBinding>,
}

impl StateHolder {
    fn touches(&self, span: Span) -> bool {
        let overlaps = |s: Span| {
            s.buffer == span.buffer
                && s.start < span.start + span.len
                && span.start < s.start + s.len
        };
        self.binding.states.iter().any(|at| overlaps(at.span))
    }

    /// True if the program holds the states of `binding`.
    fn holds(&self, key: &str, binding: &Arc<GraphBinding>) -> bool {
        let spans = |of: &GraphBinding| of.states.iter().map(|s| s.span).collect::<Vec<_>>();
        let own = &self.binding;
        self.key == key && (Arc::ptr_eq(own, binding) || spans(own) == spans(binding))
    }
}

struct Connection {
    graphs: Arc<AtomicU64>,
    memory: Memory,
    roles: Roles,
    programs: Programs,
    /// The programs with the newest states, and the places of the states in the client's memory. The places of two
    /// holders are disjoint, as those of a model and of its draft.
    state_holders: Vec<StateHolder>,
    /// The graphs that the client may send again.
    prepared: Prepared,
    times: Times,
}

impl Connection {
    /// Writes the states that overlap `span` back to the client's memory; all states if `span` is `None`.
    fn write_back_states(&mut self, span: Option<Span>) -> Result<(), Refusal> {
        self.write_back(|holder| span.is_none_or(|span| holder.touches(span)))
    }

    fn write_back(&mut self, is_needed: impl Fn(&StateHolder) -> bool) -> Result<(), Refusal> {
        while let Some(at) = self.state_holders.iter().position(&is_needed) {
            let StateHolder { key, binding } = self.state_holders.swap_remove(at);
            if let Some(program) = self.programs.get(&key) {
                let stored = program.store_states(&binding, &mut self.memory);
                stored.map_err(|e| cannot_run(&e.to_string()))?;
            }
        }
        Ok(())
    }

    fn check_current(&self, span: Span, what: &str) -> Result<(), Refusal> {
        match self.memory.is_current(span) {
            true => Ok(()),
            false => Err(cannot_run(&format!(
                "{what} was computed in an earlier graph, which did not mark it as an output"
            ))),
        }
    }

    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        buffers: &Buffers,
    ) -> Result<(String, Arc<GraphBinding>), Refusal> {
        self.roles.computes(graph, buffers);
        let recorded = Recorded::of_graph(graph, &self.roles)?;
        let span = |tensor: usize| buffers.span(&graph.tensors[tensor]);
        let (key, mut binding) = match self.programs.find(&recorded, &span)? {
            Some(found) => found,
            None => {
                // A new program may evict the program with the states.
                self.write_back_states(None)?;
                self.programs.make(&recorded, &self.memory, &span)?
            }
        };
        let computes = |node: usize| graph.owner(node) == node && graph.computes(node);
        let has_memory = |node: usize| graph.tensors[node].buffer != 0;
        let nodes = graph.nodes.iter().copied();
        let stale = nodes.filter(|&node| computes(node) && has_memory(node));
        binding.stale = stale.map(span).collect::<Result<_, _>>()?;
        binding.program = self.programs.number(&key);
        Ok((key, Arc::new(binding)))
    }

    fn run(&mut self, key: &str, binding: &Arc<GraphBinding>) -> Result<(), Refusal> {
        let has_states = (self.state_holders.iter()).any(|holder| holder.holds(key, binding));
        if !has_states {
            // The program has room for the states of one context.
            let meets = |holder: &StateHolder| {
                let mut states = binding.states.iter();
                holder.key == key || states.any(|at| holder.touches(at.span))
            };
            self.write_back(meets)?;
        }
        for input in binding.inputs.iter().filter(|input| input.is_read) {
            self.write_back_states(Some(input.span))?;
            self.check_current(input.span, "an input")?;
        }
        let Some(program) = self.programs.get_mut(key) else {
            return Err(cannot_run("its program was lost"));
        };
        let failed = |e: tpc_runtime::ExecError| cannot_run(&e.to_string());
        if !has_states {
            program.load_states(binding, &self.memory).map_err(failed)?;
        }
        for span in &binding.stale {
            self.memory.mark_stale(*span);
        }
        let times = &mut self.times;
        program
            .run(binding, &mut self.memory, times)
            .map_err(failed)?;
        let holder = StateHolder {
            key: key.to_owned(),
            binding: Arc::clone(binding),
        };
        if !(self.state_holders.iter()).any(|other| other.holds(key, binding)) {
            self.state_holders.push(holder);
        }
        Ok(())
    }

    /// Prepares bytes that the client will overwrite. Drops programs with weights in the buffer, because they have
    /// copies of the old elements.
    fn prepare_overwrite(&mut self, span: Span) -> Result<(), Refusal> {
        self.write_back_states(Some(span))?;
        if self.programs.have_weights_in(span.buffer) {
            self.write_back_states(None)?;
            self.programs.forget(span.buffer);
            self.prepared.clear();
        }
        Ok(())
    }
}

impl Client for Connection {
    fn allocated(&mut self, whole: Span) -> Result<(), Refusal> {
        match self.memory.allocate(whole) {
            true => Ok(()),
            false => Err(cannot_run(
                "the machine has less memory than --memory states",
            )),
        }
    }

    fn freed(&mut self, buffer: u64) -> Result<(), Refusal> {
        let written = self.write_back_states(None);
        self.memory.free(buffer);
        self.roles.forget(buffer);
        self.programs.forget(buffer);
        self.prepared.clear();
        written
    }

    fn fill(&mut self, span: Span, value: u8) -> Result<(), Refusal> {
        self.prepare_overwrite(span)?;
        self.memory.bytes_mut(span).fill(value);
        Ok(())
    }

    fn begin_write(&mut self, _tensor: &Tensor, span: Span) -> Result<(), Refusal> {
        self.write_back_states(Some(span))?;
        if self.roles.written(span) {
            // The client has changed a weight, so programs have old elements.
            self.write_back_states(None)?;
            self.programs.clear();
            self.prepared.clear();
        }
        Ok(())
    }

    fn write(&mut self, buffer: u64, start: u64, data: &[u8]) -> Result<(), Refusal> {
        let len = data.len() as u64;
        let to = self.memory.bytes_mut(Span { buffer, start, len });
        if to.len() == data.len() {
            to.copy_from_slice(data);
        }
        Ok(())
    }

    fn has(&mut self, _tensor: &Tensor, _span: Span, _hash: u64) -> bool {
        false
    }

    fn read(&mut self, span: Span, out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.write_back_states(Some(span))?;
        self.check_current(span, "a tensor that is read")?;
        out.extend_from_slice(self.memory.bytes(span));
        Ok(())
    }

    fn copy(&mut self, from: Span, to: Span) -> Result<(), Refusal> {
        self.write_back_states(Some(from))?;
        self.check_current(from, "a tensor that is copied")?;
        let data = self.memory.bytes(from).to_vec();
        self.prepare_overwrite(to)?;
        self.memory.bytes_mut(to).copy_from_slice(&data);
        Ok(())
    }

    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal> {
        let is_empty = |at: usize| graph.tensors[at].ne.contains(&0);
        let has_work = |&node: &usize| {
            // Ignore writes of empty tensors.
            let mut sources = graph.sources(node).into_iter().flatten();
            let writes = graph.owner(node) != node;
            graph.computes(node) && !is_empty(node) && !(writes && sources.any(is_empty))
        };
        if !graph.nodes.iter().any(has_work) {
            return Ok(());
        }
        // A newer program may have replaced the graph's program.
        let found = self.prepared.find(graph);
        let found = found.filter(|(key, at)| self.programs.number(key) == at.program);
        self.times.begin(found.is_some());
        let (key, binding) = match found {
            Some(found) => found,
            None => {
                let (key, binding) = self.prepare(graph, buffers)?;
                self.prepared.add(graph, &key, &binding);
                (key, binding)
            }
        };
        self.run(&key, &binding)?;
        self.times.end();
        self.graphs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
