//! Caches the programs of a connection.
//!
//! Graphs of prompts and of single tokens differ only in sizes, so they can share a program. The batch sizes are
//! guessed from the first graph and learned from later graphs. A graph uses a shared program only if the program's
//! graph with the graph's sizes equals it op by op. Other graphs get their own programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::{CapturedGraph, Leaf, read_fixed, read_sized};
use tpc_ir::{Bindings, Dim, Graph, Op, Symbol};
use tpc_rpc::{Recorded, Refusal, Span, generalised};

use super::executors::Executors;
use super::memory::Memory;
use super::program::{GraphBinding, LoadedProgram, Plan, larger};
use super::refusal::cannot_run;
use crate::codes;
use crate::observer::Observer;

const PROGRAMS: usize = 6;
const SAMPLES: usize = 12;
const MATCHES: usize = 256;
/// The maximum number of structures with sample graphs.
const STRUCTURES: usize = 64;

type Spans<'a> = &'a dyn Fn(usize) -> Result<Span, Refusal>;

struct CacheEntry {
    program: LoadedProgram,
    /// Distinguishes the program from earlier ones with its key.
    number: u64,
    last_use: u64,
    /// Buffers that contain weights of the program.
    weights: BTreeSet<u64>,
}

#[derive(Clone)]
struct ProgramMatch {
    key: String,
    sizes: Bindings,
    leaves: Vec<Leaf>,
}

pub(super) struct Programs {
    placement: Placement,
    executors: Executors,
    observer: Arc<dyn Observer>,
    reported: Arc<Mutex<BTreeSet<String>>>,
    /// Shared programs by graph structure, and programs of one graph by graph form.
    programs: BTreeMap<String, CacheEntry>,
    /// Program and sizes for each graph form.
    matches: BTreeMap<String, ProgramMatch>,
    /// Graphs without a shared program, by structure. They show which sizes vary.
    samples: BTreeMap<String, Vec<Recorded>>,
    clock: u64,
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
            matches: BTreeMap::new(),
            samples: BTreeMap::new(),
            clock: 0,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&LoadedProgram> {
        self.programs.get(key).map(|entry| &entry.program)
    }

    /// Returns the number of the program with this key.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.programs.get(key).map(|entry| entry.number)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut LoadedProgram> {
        self.clock += 1;
        let entry = self.programs.get_mut(key)?;
        entry.last_use = self.clock;
        Some(&mut entry.program)
    }

    pub(super) fn clear(&mut self) {
        self.programs.clear();
        self.matches.clear();
        self.samples.clear();
    }

    pub(super) fn have_weights_in(&self, buffer: u64) -> bool {
        let mut entries = self.programs.values();
        entries.any(|entry| entry.weights.contains(&buffer))
    }

    /// Drops programs with weights in a freed or overwritten buffer.
    pub(super) fn forget(&mut self, buffer: u64) {
        self.programs
            .retain(|_, entry| !entry.weights.contains(&buffer));
        let programs = &self.programs;
        self.matches
            .retain(|_, found| programs.contains_key(&found.key));
        self.samples.clear();
    }

    /// Returns the key of a graph's program and the graph's binding; `None` if a program must be made or enlarged.
    ///
    /// # Errors
    /// Returns an error if a tensor is outside all buffers, or the records are inconsistent.
    pub(super) fn find(
        &mut self,
        recorded: &Recorded,
        span: Spans<'_>,
    ) -> Result<Option<(String, GraphBinding)>, Refusal> {
        let Some(found) = self.find_match(recorded)? else {
            return Ok(None);
        };
        let program = self.get(&found.key);
        let Some(program) = program.filter(|program| program.holds(&found.sizes)) else {
            return Ok(None);
        };
        let binding = bind(program.plan(), &found, recorded, span)?;
        Ok(Some((found.key, binding)))
    }

    fn find_match(&mut self, recorded: &Recorded) -> Result<Option<ProgramMatch>, Refusal> {
        let form = recorded.form();
        let known = self.matches.get(&form);
        if let Some(found) = known.filter(|r| self.programs.contains_key(&r.key)) {
            return Ok(Some(found.clone()));
        }
        let key = recorded.structure();
        let Some(program) = self.get(&key) else {
            return Ok(None);
        };
        let fixed = read_fixed_graph(recorded)?;
        let Some(sizes) = program.plan().sizes_of(&fixed) else {
            return Ok(None);
        };
        let leaves = fixed.leaves;
        let found = ProgramMatch { key, sizes, leaves };
        self.remember(form, &found);
        Ok(Some(found))
    }

    fn remember(&mut self, form: String, found: &ProgramMatch) {
        if self.matches.len() >= MATCHES {
            self.matches.clear();
        }
        self.matches.insert(form, found.clone());
    }

    /// Makes or enlarges a graph's program. The caller must write all states back before, because a program may be
    /// dropped.
    ///
    /// # Errors
    /// Returns an error if the graph cannot be planned, proved or loaded.
    pub(super) fn make(
        &mut self,
        recorded: &Recorded,
        memory: &Memory,
        span: Spans<'_>,
    ) -> Result<(String, GraphBinding), Refusal> {
        if let Some(found) = self.find_match(recorded)?
            && let Some(entry) = self.programs.remove(&found.key)
        {
            let sizes = entry.program.sizes_with(&found.sizes);
            let plan = entry.program.into_plan();
            return self.load(plan, &sizes, (found, recorded), memory, span);
        }
        let fixed = read_fixed_graph(recorded)?;
        let key = recorded.structure();
        if let Some((plan, sizes, most)) = self.plan_shared(recorded, &key) {
            // The new program also runs the graphs of the old program.
            self.programs.remove(&key);
            self.matches.retain(|_, found| found.key != key);
            let leaves = fixed.leaves;
            let found = ProgramMatch { key, sizes, leaves };
            return self.load(plan, &most, (found, recorded), memory, span);
        }
        let found = ProgramMatch {
            key: recorded.form(),
            sizes: Bindings::default(),
            leaves: fixed.leaves.clone(),
        };
        let plan = Plan::new(fixed, &self.placement).map_err(|all| refusal_of(&all))?;
        self.load(plan, &Bindings::default(), (found, recorded), memory, span)
    }

    /// Plans a shared program from this graph and the sample graphs of its structure. Returns the plan, this graph's
    /// sizes and the largest sizes. Returns `None` if no size varies, a state's size varies, planning fails, or the
    /// structure has [`SAMPLES`] graphs.
    fn plan_shared(
        &mut self,
        recorded: &Recorded,
        structure: &str,
    ) -> Option<(Plan, Bindings, Bindings)> {
        if self.samples.len() >= STRUCTURES && !self.samples.contains_key(structure) {
            self.samples.clear();
        }
        let samples = self.samples.entry(structure.to_owned()).or_default();
        if samples.len() >= SAMPLES {
            return None;
        }
        samples.push(recorded.clone());
        let captured = read_sized(&generalised(samples), "graph").ok()?;
        if captured.batch.is_empty() || !has_fixed_states(&captured.graph) {
            return None;
        }
        let own = captured.sizes_of(&read_fixed_graph(recorded).ok()?)?;
        let mut most = own;
        for graph in samples.iter() {
            most = larger(&captured.sizes_of(&read_fixed_graph(graph).ok()?)?, &most);
        }
        Some((Plan::new(captured, &self.placement).ok()?, own, most))
    }

    fn load(
        &mut self,
        plan: Plan,
        most: &Bindings,
        (found, recorded): (ProgramMatch, &Recorded),
        memory: &Memory,
        span: Spans<'_>,
    ) -> Result<(String, GraphBinding), Refusal> {
        if self.programs.len() >= PROGRAMS {
            let oldest = self.programs.iter().min_by_key(|(_, entry)| entry.last_use);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.programs.remove(&key);
            }
        }
        let binding = bind(&plan, &found, recorded, span)?;
        let program = plan.load(most, (memory, &binding.weights), &self.executors);
        let program = program.map_err(|all| refusal_of(&all))?;
        self.report(&program.by_reference);
        (self.observer).detail(&format!("made {}", program.describe()));
        self.clock += 1;
        let entry = CacheEntry {
            program,
            number: self.clock,
            last_use: self.clock,
            weights: binding.weights.iter().map(|w| w.span.buffer).collect(),
        };
        self.programs.insert(found.key.clone(), entry);
        self.remember(recorded.form(), &found);
        Ok((found.key, binding))
    }

    fn report(&self, ops: &BTreeSet<String>) {
        let Ok(mut reported) = self.reported.lock() else {
            return;
        };
        for op in ops {
            if reported.insert(op.clone()) {
                let name = op.to_uppercase();
                let message = message!(
                    "{}: tpc has no kernel for this op; the reference computes it on one thread",
                    name
                );
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
    found: &ProgramMatch,
    recorded: &Recorded,
    span: Spans<'_>,
) -> Result<GraphBinding, Refusal> {
    plan.bind((&found.sizes, &found.leaves), recorded, span)
}

/// True if the sizes of states do not depend on the batch.
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

fn read_fixed_graph(recorded: &Recorded) -> Result<CapturedGraph, Refusal> {
    read_fixed(&recorded.records, "graph").map_err(|e| refusal_of(&[e.into()]))
}

fn refusal_of(all: &[Diagnostic]) -> Refusal {
    match all.first() {
        Some(d) => cannot_run(&format!("{} ({})", d, d.code.id)),
        None => cannot_run("the reason is unknown"),
    }
}
