//! The device for real: graphs of clients, planned, proved and run.
//!
//! A client's buffers are whole in the server's memory. Graphs that differ in the sizes of their batch only become one program,
//! once: its weights are bound to shards when it is planned, long after they came. Inputs are read from the client's memory, and results that somebody else
//! may read go there; all others exist within the program only, and whoever asks for one is refused instead of answered with
//! what the memory held before. States stay with the program that wrote them, until another one needs them or the client reads.

mod elements;
mod executors;
mod memory;
mod program;
mod programs;
mod reads;
mod refusal;
mod times;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tpc_core::placement::Placement;
use tpc_rpc::{Buffers, Client, Device, Graph, Part, Recorded, Refusal, Roles, Span, Tensor};

use crate::observer::Observer;
pub use executors::Executors;
use memory::Memory;
use program::Bound;
use programs::Programs;
use refusal::cannot;
use times::Times;

/// A device of ggml's RPC protocol that computes the graphs of its clients.
pub struct GraphDevice {
    placement: Placement,
    executors: Executors,
    observer: Arc<dyn Observer>,
    graphs: Arc<AtomicU64>,
    /// The ops without a kernel that were reported.
    reported: Arc<Mutex<BTreeSet<String>>>,
}

impl GraphDevice {
    /// Makes a device that computes on the devices of a placement.
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

    /// Returns the counter of graphs that were computed.
    pub fn graphs(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.graphs)
    }
}

impl Device for GraphDevice {
    fn connect(&self) -> Box<dyn Client> {
        Box::new(Running {
            graphs: Arc::clone(&self.graphs),
            memory: Memory::default(),
            roles: Roles::default(),
            programs: Programs::new(
                (self.placement.clone(), self.executors.clone()),
                Arc::clone(&self.observer),
                Arc::clone(&self.reported),
            ),
            holder: None,
            last: None,
            times: Times::new(Arc::clone(&self.observer)),
            observer: Arc::clone(&self.observer),
        })
    }
}

/// A connection whose graphs are run.
struct Running {
    graphs: Arc<AtomicU64>,
    memory: Memory,
    roles: Roles,
    programs: Programs,
    /// The program that has the states, and where these belong.
    holder: Option<(String, Arc<Bound>)>,
    /// The graph of the last message, its program, and where its tensors are.
    last: Option<(Arc<Graph>, String, Arc<Bound>)>,
    times: Times,
    observer: Arc<dyn Observer>,
}

impl Running {
    /// Gives the states back to the client's memory, if a program has those of these bytes.
    fn settle(&mut self, span: Option<Span>) -> Result<(), Refusal> {
        let touches = |s: &Span, t: &Span| {
            s.buffer == t.buffer && s.start < t.start + t.len && t.start < s.start + s.len
        };
        let needed = self.holder.as_ref().is_some_and(|(_, bound)| {
            let mut states = bound.states.iter();
            span.is_none_or(|span| states.any(|at| touches(&at.span, &span)))
        });
        if !needed {
            return Ok(());
        }
        if let Some((key, bound)) = self.holder.take()
            && let Some(loaded) = self.programs.get(&key)
        {
            let given = loaded.give_states(&bound, &mut self.memory);
            given.map_err(|e| cannot(&e.to_string()))?;
        }
        Ok(())
    }

    /// Fails where bytes were computed and not kept.
    fn kept(&self, span: Span, what: &str) -> Result<(), Refusal> {
        match self.memory.is_kept(span) {
            true => Ok(()),
            false => Err(cannot(&format!(
                "{what} was computed within an earlier graph that did not say that it is read later"
            ))),
        }
    }

    /// The program of a graph, which is made where there is none.
    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        buffers: &Buffers,
    ) -> Result<(String, Arc<Bound>), Refusal> {
        self.roles.computes(graph, buffers);
        let recorded = Recorded::of_graph(graph, &self.roles)?;
        let span = |tensor: usize| buffers.span(&graph.tensors[tensor]);
        let (key, mut bound) = match self.programs.find(&recorded, &span)? {
            Some(found) => found,
            None => {
                // A program may have to go for another.
                self.settle(None)?;
                self.programs.make(&recorded, &self.memory, &span)?
            }
        };
        let computes = |node: usize| graph.owner(node) == node && graph.computes(node);
        let has_memory = |node: usize| graph.tensors[node].buffer != 0;
        let nodes = graph.nodes.iter().copied();
        let lost = nodes.filter(|&node| computes(node) && has_memory(node));
        bound.lost = lost.map(span).collect::<Result<_, _>>()?;
        Ok((key, Arc::new(bound)))
    }

    /// Runs a program that is there.
    fn run(&mut self, key: &str, bound: &Arc<Bound>) -> Result<(), Refusal> {
        let spans = |of: &Bound| of.states.iter().map(|s| s.span).collect::<Vec<_>>();
        let holds = |(held, at): &(String, Arc<Bound>)| {
            held == key && (Arc::ptr_eq(at, bound) || spans(at) == spans(bound))
        };
        let has_states = self.holder.as_ref().is_some_and(holds);
        if !has_states {
            self.settle(None)?;
        }
        for input in bound.inputs.iter().filter(|input| input.is_read) {
            self.settle(Some(input.span))?;
            self.kept(input.span, "an input")?;
        }
        let Some(loaded) = self.programs.get_mut(key) else {
            return Err(cannot("it was lost"));
        };
        let failed = |e: tpc_runtime::ExecError| cannot(&e.to_string());
        if !has_states {
            loaded.take_states(bound, &self.memory).map_err(failed)?;
        }
        for span in &bound.lost {
            self.memory.lose(*span);
        }
        let times = &mut self.times;
        loaded.run(bound, &mut self.memory, times).map_err(failed)?;
        self.holder = Some((key.to_owned(), Arc::clone(bound)));
        Ok(())
    }
}

impl Client for Running {
    fn allocated(&mut self, whole: Span) -> Result<(), Refusal> {
        match self.memory.allocate(whole) {
            true => Ok(()),
            false => Err(cannot(
                "the machine does not have the memory that --memory promises",
            )),
        }
    }

    fn freed(&mut self, buffer: u64) {
        if let Err(e) = self.settle(None) {
            self.observer.diagnostic(&e.diagnostic("client"));
        }
        self.memory.free(buffer);
        self.roles.forget(buffer);
        self.programs.forget(buffer);
        self.last = None;
    }

    fn fill(&mut self, span: Span, value: u8) -> Result<(), Refusal> {
        self.settle(Some(span))?;
        self.memory.bytes_mut(span).fill(value);
        Ok(())
    }

    fn begin_write(&mut self, _part: &Part, span: Span) -> Result<(), Refusal> {
        self.settle(Some(span))?;
        if self.roles.written(span) {
            // A weight has changed: programs have its old elements.
            self.settle(None)?;
            self.programs.clear();
            self.last = None;
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
        self.settle(Some(span))?;
        self.kept(span, "a tensor that is read")?;
        out.extend_from_slice(self.memory.bytes(span));
        Ok(())
    }

    fn copy(&mut self, from: Span, to: Span) -> Result<(), Refusal> {
        self.settle(Some(from))?;
        self.kept(from, "a tensor that is copied")?;
        let data = self.memory.bytes(from).to_vec();
        self.settle(Some(to))?;
        self.memory.bytes_mut(to).copy_from_slice(&data);
        Ok(())
    }

    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal> {
        let is_empty = |at: usize| graph.tensors[at].ne.contains(&0);
        let has_work = |&node: &usize| {
            // Where nothing is written to a memory, it stays as it is.
            let mut sources = graph.sources(node).into_iter().flatten();
            let writes = graph.owner(node) != node;
            graph.computes(node) && !is_empty(node) && !(writes && sources.any(is_empty))
        };
        if !graph.nodes.iter().any(has_work) {
            // Views alone, or nothing but empty tensors.
            return Ok(());
        }
        let last = self
            .last
            .take()
            .filter(|(last, ..)| Arc::ptr_eq(last, graph));
        self.times.begin(last.is_some());
        let (key, bound) = match last {
            Some((_, key, bound)) => (key, bound),
            None => self.prepare(graph, buffers)?,
        };
        self.run(&key, &bound)?;
        self.times.end();
        self.graphs.fetch_add(1, Ordering::SeqCst);
        self.last = Some((Arc::clone(graph), key, bound));
        Ok(())
    }
}
