//! The programs of a connection.
//!
//! A prompt, a token and the next token are one program with other sizes. Which sizes are those of the batch is guessed from
//! the first graph and seen in others; a graph is run by a program for any sizes only where that program with the graph's
//! sizes is the graph, op by op. A graph for which there is none has a program of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::{CapturedGraph, Leaf, read_fixed, read_sized};
use tpc_ir::{Bindings, Dim, Graph, Op, Symbol};
use tpc_rpc::{Recorded, Refusal, Span, generalised};

use super::executors::Executors;
use super::memory::Memory;
use super::program::{Bound, Loaded, Plan, larger};
use super::refusal::cannot;
use crate::codes;
use crate::observer::Observer;

/// The most programs that are kept.
const PROGRAMS: usize = 6;
/// The most graphs of a structure that are learned from.
const GRAPHS: usize = 12;
/// The most readings of graphs that are kept.
const READINGS: usize = 1024;

type Spans<'a> = &'a dyn Fn(usize) -> Result<Span, Refusal>;

/// A program, and when it was last used.
struct Kept {
    loaded: Loaded,
    used: u64,
    /// The buffers of its weights.
    weights: BTreeSet<u64>,
}

/// How a program runs a graph.
#[derive(Clone)]
struct Reading {
    /// The program.
    key: String,
    /// The sizes of the batch.
    sizes: Bindings,
    leaves: Vec<Leaf>,
}

/// The programs of a connection, and what they run.
pub(super) struct Programs {
    placement: Placement,
    executors: Executors,
    observer: Arc<dyn Observer>,
    /// The ops without a kernel that were reported.
    reported: Arc<Mutex<BTreeSet<String>>>,
    /// By the structure of graphs, or by the form of one.
    programs: BTreeMap<String, Kept>,
    /// By the form of the graph.
    readings: BTreeMap<String, Reading>,
    /// By structure, graphs that no program for any sizes ran when they came.
    seen: BTreeMap<String, Vec<Recorded>>,
    used: u64,
}

impl Programs {
    pub(super) fn new(
        (placement, executors): (Placement, Executors),
        observer: Arc<dyn Observer>,
        reported: Arc<Mutex<BTreeSet<String>>>,
    ) -> Programs {
        Programs {
            placement,
            executors,
            observer,
            reported,
            programs: BTreeMap::new(),
            readings: BTreeMap::new(),
            seen: BTreeMap::new(),
            used: 0,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Loaded> {
        self.programs.get(key).map(|kept| &kept.loaded)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Loaded> {
        self.used += 1;
        let kept = self.programs.get_mut(key)?;
        kept.used = self.used;
        Some(&mut kept.loaded)
    }

    /// Drops all programs: weights have changed.
    pub(super) fn clear(&mut self) {
        self.programs.clear();
        self.readings.clear();
        self.seen.clear();
    }

    /// Drops the programs with weights in a buffer that is there no more.
    pub(super) fn forget(&mut self, buffer: u64) {
        self.programs
            .retain(|_, kept| !kept.weights.contains(&buffer));
        let programs = &self.programs;
        self.readings
            .retain(|_, reading| programs.contains_key(&reading.key));
        self.seen.clear();
    }

    /// The program that runs a graph, and where the graph's tensors are. `None` where one has to be made or to grow.
    ///
    /// # Errors
    /// When a tensor lies in no buffer, or the records of the graph do not fit together.
    pub(super) fn find(
        &mut self,
        recorded: &Recorded,
        span: Spans<'_>,
    ) -> Result<Option<(String, Bound)>, Refusal> {
        let Some(reading) = self.reading(recorded)? else {
            return Ok(None);
        };
        let loaded = self.get(&reading.key);
        let Some(loaded) = loaded.filter(|loaded| loaded.holds(&reading.sizes)) else {
            return Ok(None);
        };
        let bound = bind(loaded.plan(), &reading, recorded, span)?;
        Ok(Some((reading.key, bound)))
    }

    /// How one of the programs runs a graph, whether it has memory for it or not.
    fn reading(&mut self, recorded: &Recorded) -> Result<Option<Reading>, Refusal> {
        let form = recorded.form();
        let known = self.readings.get(&form);
        if let Some(reading) = known.filter(|r| self.programs.contains_key(&r.key)) {
            return Ok(Some(reading.clone()));
        }
        let key = recorded.structure();
        let Some(loaded) = self.get(&key) else {
            return Ok(None);
        };
        let fixed = fixed(recorded)?;
        let Some(sizes) = loaded.plan().sizes_of(&fixed) else {
            return Ok(None);
        };
        let leaves = fixed.leaves;
        let reading = Reading { key, sizes, leaves };
        self.remember(form, &reading);
        Ok(Some(reading))
    }

    fn remember(&mut self, form: String, reading: &Reading) {
        if self.readings.len() >= READINGS {
            self.readings.clear();
        }
        self.readings.insert(form, reading.clone());
    }

    /// Makes the program of a graph, or room for the graph in a program. No program has states that are needed.
    ///
    /// # Errors
    /// The reason why it cannot be run.
    pub(super) fn make(
        &mut self,
        recorded: &Recorded,
        memory: &Memory,
        span: Spans<'_>,
    ) -> Result<(String, Bound), Refusal> {
        if let Some(reading) = self.reading(recorded)?
            && let Some(kept) = self.programs.remove(&reading.key)
        {
            let sizes = kept.loaded.sizes_with(&reading.sizes);
            let plan = kept.loaded.into_plan();
            return self.load(plan, &sizes, (reading, recorded), memory, span);
        }
        let fixed = fixed(recorded)?;
        let key = recorded.structure();
        if let Some((plan, sizes, most)) = self.any_sizes(recorded, &key) {
            // What ran graphs of the structure so far goes: the new one runs them too.
            self.programs.remove(&key);
            self.readings.retain(|_, reading| reading.key != key);
            let leaves = fixed.leaves;
            let reading = Reading { key, sizes, leaves };
            return self.load(plan, &most, (reading, recorded), memory, span);
        }
        let reading = Reading {
            key: recorded.form(),
            sizes: Bindings::default(),
            leaves: fixed.leaves.clone(),
        };
        let plan = Plan::new(fixed, &self.placement).map_err(|all| first(&all))?;
        self.load(
            plan,
            &Bindings::default(),
            (reading, recorded),
            memory,
            span,
        )
    }

    /// The plan for graphs of this structure and any sizes, with those of this graph, and the largest so far. `None` where there is none that a
    /// graph which was seen before does not have already.
    fn any_sizes(
        &mut self,
        recorded: &Recorded,
        structure: &str,
    ) -> Option<(Plan, Bindings, Bindings)> {
        let seen = self.seen.entry(structure.to_owned()).or_default();
        if seen.len() >= GRAPHS {
            return None;
        }
        seen.push(recorded.clone());
        let captured = read_sized(&generalised(seen), "graph").ok()?;
        if captured.batch.is_empty() || !has_fixed_states(&captured.graph) {
            return None;
        }
        let own = captured.sizes_of(&fixed(recorded).ok()?)?;
        let mut most = own;
        for graph in seen.iter() {
            most = larger(&captured.sizes_of(&fixed(graph).ok()?)?, &most);
        }
        Some((Plan::new(captured, &self.placement).ok()?, own, most))
    }

    /// Loads a program for batches of up to such sizes, and keeps it.
    fn load(
        &mut self,
        plan: Plan,
        most: &Bindings,
        (reading, recorded): (Reading, &Recorded),
        memory: &Memory,
        span: Spans<'_>,
    ) -> Result<(String, Bound), Refusal> {
        if self.programs.len() >= PROGRAMS {
            let oldest = self.programs.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.programs.remove(&key);
            }
        }
        let bound = bind(&plan, &reading, recorded, span)?;
        let loaded = plan.load(most, (memory, &bound.weights), &self.executors);
        let loaded = loaded.map_err(|all| first(&all))?;
        self.report(&loaded.by_reference);
        (self.observer).detail(&format!("made {}", loaded.describe()));
        self.used += 1;
        let kept = Kept {
            loaded,
            used: self.used,
            weights: bound.weights.iter().map(|w| w.span.buffer).collect(),
        };
        self.programs.insert(reading.key.clone(), kept);
        self.remember(recorded.form(), &reading);
        Ok((reading.key, bound))
    }

    /// Reports ops without a kernel, once each.
    fn report(&self, ops: &BTreeSet<String>) {
        let Ok(mut reported) = self.reported.lock() else {
            return;
        };
        for op in ops {
            if reported.insert(op.clone()) {
                let name = op.to_uppercase();
                let message = message!("{}: the reference computes it, on one thread", name);
                (self.observer).diagnostic(&Diagnostic::new(
                    &codes::BY_REFERENCE,
                    "client",
                    message,
                ));
            }
        }
    }
}

fn bind(
    plan: &Plan,
    reading: &Reading,
    recorded: &Recorded,
    span: Spans<'_>,
) -> Result<Bound, Refusal> {
    plan.bind((&reading.sizes, &reading.leaves), recorded, span)
}

/// Whether no state has a size of the batch: a program's states are as large for any batch.
fn has_fixed_states(graph: &Graph) -> bool {
    let of_caches = [Symbol::NCtx, Symbol::NCtxSwa, Symbol::NSeqMax];
    let is_fixed =
        |dim: &Dim| (Symbol::ALL.iter()).all(|s| of_caches.contains(s) || !dim.mentions(*s));
    let mut states = graph.insts().filter(|(_, i)| matches!(i.op, Op::State(_)));
    states.all(|(_, i)| {
        i.results
            .iter()
            .all(|r| graph.value(*r).ty.dims.iter().all(is_fixed))
    })
}

/// A graph of numbers.
fn fixed(recorded: &Recorded) -> Result<CapturedGraph, Refusal> {
    read_fixed(&recorded.records, "graph").map_err(|e| first(&[e.into()]))
}

/// The first of the reasons why a graph cannot be run.
fn first(all: &[Diagnostic]) -> Refusal {
    match all.first() {
        Some(d) => cannot(&format!("{} ({})", d, d.code.id)),
        None => cannot("no reason is known"),
    }
}
