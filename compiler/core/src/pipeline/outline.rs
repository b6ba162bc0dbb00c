//! A plan for repeated speed estimates with several engines, depths and batches.

use tpc_ir::{Bindings, Budget, Symbol, Verified, stage};
use tpc_passes::plan::{Bill, PlanRequest, PlannedGraph};

use super::divide::{Sharding, invalid};
use super::strategies::strategy;
use super::{PlanInput, Way};
use crate::placement::{Placement, overridden};
use tpc_diag::Diagnostic;

/// A plan up to its sharded graph.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The planned request.
    pub request: PlanRequest,
    planned: PlannedGraph,
    graph: Verified<stage::Sharded>,
}

impl PlanInput {
    /// Plans the model with this way.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched, and TPC0390 if the verifier rejects the graph.
    pub fn outline(&self, placement: &Placement, way: &Way) -> Result<Outline, Vec<Diagnostic>> {
        let workload = self.workload(placement);
        let batch = self.memory_batch(placement);
        let overridden = overridden(&self.model.graph, placement).map_err(|d| vec![d])?;
        let request = strategy(&self.model, workload, placement, &overridden, way, &batch).request;
        let budget = Budget::default();
        let Sharding {
            planned, rewritten, ..
        } = Sharding::new(&self.model.graph, &request, &budget)?;
        Ok(Outline {
            request,
            planned,
            graph: Verified::new(rewritten.graph).map_err(invalid)?,
        })
    }
}

impl Outline {
    /// Lists a batch's kernels and transfers.
    pub fn bill(&self, batch: &Bindings) -> Bill {
        Bill::new(&self.planned, &self.graph, &self.request, batch)
    }

    /// Lists the kernels and transfers of `tokens` tokens of one sequence: a decoding step for one token, else a
    /// prompt. The caches hold `depth` cells.
    pub fn bill_of_batch(&self, tokens: u64, depth: u64) -> Bill {
        let workload = &self.request.workload;
        let batch = match tokens {
            1 => workload.decode,
            _ => workload.prefill,
        };
        let batch = batch
            .with(Symbol::NTokens, tokens)
            .with(Symbol::NSeqTokens, tokens);
        self.bill(&self.request.at_depth(batch, depth))
    }
}
