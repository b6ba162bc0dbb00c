use std::collections::BTreeSet;

use tpc_ir::{Bindings, Budget, Graph, InstData, Op, Place, Value};
use tpc_passes::plan::{Estimate, PlanRequest, estimate};

use super::divide::Sharding;
use super::strategies::strategy;
use super::{CompiledModel, PlanInput, Way};
use crate::placement::{Placement, expert_weights, overridden};
use tpc_diag::Diagnostic;

/// Stored bytes, by the option that moves them: `-ncmoe` (experts), `-nkvo` (caches), `-ngl` (all).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StoredBytes {
    /// Expert weights.
    pub experts: f64,
    /// Weights other than expert weights.
    pub weights: f64,
    /// Caches with a cell per token.
    pub caches: f64,
    /// States other than caches.
    pub states: f64,
    /// Weights of the prologue that this section reads, too: a copy if the prologue is on another device.
    pub copies: f64,
}

impl StoredBytes {
    /// Sums the bytes of all kinds, without copies.
    pub fn total(&self) -> f64 {
        self.experts + self.weights + self.caches + self.states
    }

    pub(crate) fn add(&mut self, other: &StoredBytes) {
        self.experts += other.experts;
        self.weights += other.weights;
        self.caches += other.caches;
        self.states += other.states;
        self.copies += other.copies;
    }

    /// Returns the counter for the bytes of an instruction; `None` if the instruction stores none. `experts` are the
    /// expert tensors.
    pub(crate) fn counter(
        &mut self,
        graph: &Graph,
        data: &InstData,
        experts: &BTreeSet<&str>,
    ) -> Option<&mut f64> {
        Some(match &data.op {
            Op::Weight(w) if experts.contains(w.tensor.as_str()) => &mut self.experts,
            Op::Weight(_) => &mut self.weights,
            Op::State(_) if graph.value(data.results[0]).ty.counts_cells() => &mut self.caches,
            Op::State(_) => &mut self.states,
            _ => return None,
        })
    }
}

/// A plan up to the rewritten sharded graph.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// Estimated times.
    pub estimate: Estimate,
    /// Stored bytes per device. A device holds its part of one stage.
    pub parts: Vec<StoredBytes>,
    /// Stored bytes per stage. Each tensor counts once.
    pub stages: Vec<StoredBytes>,
}

fn experts(graph: &Graph) -> BTreeSet<&str> {
    let name = |v: Value| match graph.def_op(v) {
        Op::Weight(w) => Some(w.tensor.as_str()),
        _ => None,
    };
    expert_weights(graph).into_iter().filter_map(name).collect()
}

impl PlanInput {
    /// Lists the names of expert tensors.
    pub fn experts(&self) -> BTreeSet<&str> {
        experts(&self.model.graph)
    }

    /// Plans the model with this way.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched, and TPC0390 if the verifier rejects the graph.
    pub fn sketch(&self, placement: &Placement, way: &Way) -> Result<Sketch, Vec<Diagnostic>> {
        let workload = self.workload(placement);
        let batch = self.memory_batch(placement);
        let overridden = overridden(&self.model.graph, placement).map_err(|d| vec![d])?;
        let strategy = strategy(&self.model, workload, placement, &overridden, way, &batch);
        let budget = Budget::default();
        let sharding = Sharding::new(&self.model.graph, &strategy.request, &budget)?;
        let graph = sharding.rewritten.graph;
        let estimate = estimate(&sharding.planned, &graph, &strategy.request);
        let sizes = [placement.devices.len(), way.stages.len()];
        Ok(Sketch::new(
            estimate,
            sizes,
            &graph,
            &self.experts(),
            &batch,
        ))
    }
}

impl CompiledModel {
    pub(crate) fn sketched(&self, depth: u64) -> Sketch {
        let request = PlanRequest {
            depth,
            ..self.request.clone()
        };
        let estimate = estimate(&self.planned, &self.sharded, &request);
        let stages = request.layer_placement.stages.len();
        let (experts, batch) = (experts(&self.model.graph), self.memory_batch());
        let sizes = [request.devices.len(), stages];
        Sketch::new(estimate, sizes, &self.sharded, &experts, &batch)
    }
}

impl Sketch {
    fn new(
        estimate: Estimate,
        [devices, stages]: [usize; 2],
        graph: &Graph,
        experts: &BTreeSet<&str>,
        batch: &Bindings,
    ) -> Sketch {
        let mut out = Sketch {
            estimate,
            parts: vec![StoredBytes::default(); devices],
            stages: vec![StoredBytes::default(); stages],
        };
        for (_, data) in graph.insts() {
            out.count(graph, data, experts, batch);
        }
        out
    }

    fn count(
        &mut self,
        graph: &Graph,
        data: &InstData,
        experts: &BTreeSet<&str>,
        batch: &Bindings,
    ) {
        let Some(&v) = data.results.first() else {
            return;
        };
        let value = graph.value(v);
        let Place::Group(g) = value.place else {
            return;
        };
        let whole = value.ty.bytes(batch).unwrap_or(u64::MAX) as f64;
        let Some(sum) = self.stages[g.index()].counter(graph, data, experts) else {
            return;
        };
        *sum += whole;
        for (rank, d) in graph.group(g).devices.iter().enumerate() {
            let local = value.sharding.local_type(&value.ty, &graph.classes, rank);
            let bytes = local.and_then(|t| t.bytes(batch)).unwrap_or(u64::MAX) as f64;
            if let Some(sum) = self.parts[d.index()].counter(graph, data, experts) {
                *sum += bytes;
            }
        }
    }
}
