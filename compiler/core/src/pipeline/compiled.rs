use std::collections::BTreeMap;

use tpc_ir::program::BatchShape;
use tpc_ir::{Bindings, Budget, Op, Place, Verified, stage};
use tpc_passes::footprint::Footprint;
use tpc_passes::machine::Link;
use tpc_passes::plan::{Choice, Estimate, PlanRequest, PlannedGraph, estimate};
use tpc_passes::prove::{Proof, Refutation, RefutationReason};
use tpc_passes::rewrite::Report as RewriteReport;

use super::candidate::Candidate;
use super::cells::CacheSizes;
use super::divide;
use super::engine::ExcludedMode;
use super::memory::{self, Memory, fits, memory_batch};
use super::model::Model;
use super::size::ModelSize;
use super::strategies::main_device;
use crate::placement::{ResolvedPlacement, SplitMode};
use tpc_diag::{Diagnostic, codes};

/// A model with its plan, verified programs and proof.
#[derive(Debug)]
pub struct CompiledModel {
    /// Graph and header facts.
    pub model: Model,
    /// The split mode.
    pub mode: SplitMode,
    /// The compared strategies; empty if the user chose the strategy.
    pub candidates: Vec<Candidate>,
    /// Modes that the engine refuses.
    pub left_out: Vec<ExcludedMode>,
    /// The places of layers, and of single weights and states.
    pub resolved: ResolvedPlacement,
    /// The planned request.
    pub request: PlanRequest,
    /// The planned graph: factors and splits.
    pub planned: PlannedGraph,
    /// The sharded graph before rewriting, with every partial sum reduced at its first use.
    pub eager: Verified<stage::Sharded>,
    /// The rewritten sharded graph.
    pub sharded: Verified<stage::Sharded>,
    /// The report on rewriting.
    pub rewriting: RewriteReport,
    /// Programs of the host and every device.
    pub programs: Verified<stage::Programs>,
    /// Sizes of the KV caches, as requested. Programs with caches divided by cells round them up to whole units.
    pub caches: CacheSizes,
    /// Parameters and bytes of the model.
    pub size: ModelSize,
    /// Estimated times.
    pub estimate: Estimate,
    /// The proof that the programs compute the model's graph, or the refutation.
    pub proof: Result<Proof, Box<Refutation>>,
    /// The work that is left of the command's budget.
    pub budget: Budget,
    pub(super) memory: Memory,
}

impl CompiledModel {
    /// Returns the device of an unsplit model.
    pub fn main_device(&self) -> Option<usize> {
        main_device(self.mode, &self.resolved.layer_placement.stages)
    }

    /// Estimates the times of this plan with another network between machines.
    pub(crate) fn estimate_over(&self, network: Link) -> Estimate {
        let mut request = self.request.clone();
        request.topology = request.topology.with_network(network);
        estimate(&self.planned, &self.sharded, &request)
    }

    /// Returns TPC0391 if the programs are not proved.
    pub fn proof_error(&self) -> Option<Diagnostic> {
        self.proof.as_ref().err().map(|r| refutation(r))
    }

    /// Returns the sizes of a batch that decodes one token.
    pub fn decode_batch(&self) -> Bindings {
        self.request.workload.decode
    }

    /// Returns the sizes of the largest prompt batch with a full cache, which needs the most memory.
    pub fn memory_batch(&self) -> Bindings {
        memory_batch(&self.request.workload)
    }

    /// Lists the batch shapes of a run, with full caches: one token, and the largest prompt batch.
    pub fn batch_shapes(&self) -> Vec<BatchShape> {
        memory::shapes(&self.request.workload)
    }

    /// Returns the arena bytes of each place, for [these shapes](Self::batch_shapes).
    pub fn footprints(&self) -> &BTreeMap<Place, Footprint> {
        self.memory.footprints(&self.programs)
    }

    pub(crate) fn footprints_of(&self, shape: BatchShape) -> BTreeMap<Place, Footprint> {
        self.memory.with(shape).footprints(&self.programs).clone()
    }

    /// True if all devices and the host have enough memory, or if their memory is unknown.
    pub fn fits(&self) -> bool {
        fits(&self.programs, &self.request, &self.memory)
    }

    /// Returns the chosen splits.
    pub fn choice(&self) -> &Choice {
        &self.planned.choice
    }

    /// Lists the sharded graph's weights with their layers.
    pub fn weights(&self) -> impl Iterator<Item = (Option<u32>, tpc_ir::Value)> + '_ {
        self.sharded
            .insts()
            .filter(|(_, i)| matches!(i.op, Op::Weight(_)))
            .map(|(_, i)| (i.layer, i.results[0]))
    }
}

fn refutation(r: &Refutation) -> Diagnostic {
    if let RefutationReason::Budget(e) = &r.what {
        return divide::over_budget("programs", e);
    }
    let mut message = r.to_string();
    if let Some(found) = &r.found {
        message += &format!("\n  the device has  {found}");
    }
    if let Some(expected) = &r.expected {
        message += &format!("\n  the model says  {expected}");
    }
    let entity = if r.value.is_empty() {
        "programs".to_owned()
    } else {
        r.value.clone()
    };
    let d = Diagnostic::new(&codes::UNPROVED, entity, message);
    d.help(
        "this is a bug in tpc: report it with the command and the model's header; `tpc verify --numeric` runs a small \
         model with the same division, and shows if the programs are wrong or if the proof lacks a rule",
    )
}
