//! A plan with its programs before the proof, for memory and speed.

use std::collections::BTreeMap;

use tpc_ir::program::SumOrder;
use tpc_ir::{Budget, Place};
use tpc_passes::bits::find_differences;
use tpc_passes::footprint::Footprint;
use tpc_passes::machine::Engine;
use tpc_passes::plan::{Estimate, estimate};
use tpc_passes::prove::prove_within;

use super::candidate::Candidate;
use super::divide::{Division, divide};
use super::engine_memory;
use super::fitting::Fitting;
use super::memory::{Memory, fits};
use super::parallel::run_beside;
use super::ranking::{CompareScope, Ranking};
use super::strategies::{Strategy, strategy};
use super::{CompiledModel, ExcludedMode, PlanInput, Way, tensor_limit};
use crate::placement::{Placement, SplitMode, overridden};
use tpc_diag::{Diagnostic, codes};

/// A plan with verified programs, not yet proved.
pub struct Draft {
    strategy: Strategy,
    division: Division,
    candidates: Vec<Candidate>,
    left_out: Vec<ExcludedMode>,
    estimate: Estimate,
    memory: Memory,
    budget: Budget,
}

impl PlanInput {
    /// Plans the model.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched, TPC0395 if the command's budget is exceeded, and TPC0390 if the
    /// verifier rejects the programs.
    pub fn draft(&self, placement: &Placement) -> Result<Draft, Vec<Diagnostic>> {
        let draft = self.draft_of(placement, CompareScope::Promising)?;
        // A strategy may have room for weights and states, but not for intermediate values.
        match draft {
            (draft, true) => Ok(draft),
            (draft, false) if draft.fits() => Ok(draft),
            (_, false) => Ok(self.draft_of(placement, CompareScope::All)?.0),
        }
    }

    /// Plans the first strategy that fits. The second result is true if all strategies were compared.
    fn draft_of(
        &self,
        placement: &Placement,
        compared: CompareScope,
    ) -> Result<(Draft, bool), Vec<Diagnostic>> {
        let batch = self.memory_batch(placement);
        let budget = Budget::default();
        let Ranking {
            strategies,
            mut candidates,
            left_out,
            complete,
        } = self.ranking(placement, compared, &budget)?;
        let fitting = Fitting {
            model: &self.model.graph,
            placement,
            of: &self.model,
            ctx_size: self.ctx_size,
            batch,
            memory: self.memory(placement),
            budget: &budget,
        };
        let (strategy, division, memory) = fitting.first(strategies, &mut candidates)?;
        let estimate = estimate(&division.planned, &division.sharded, &strategy.request);
        let draft = Draft {
            strategy,
            division,
            candidates,
            left_out,
            estimate,
            memory,
            budget,
        };
        Ok((draft, complete))
    }
}

impl PlanInput {
    /// Plans the model once with this way, without shifted shares and without a higher price of memory. If the plan
    /// fits, [`PlanInput::draft`] gives the same plan for a placement that requests this way.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched, and TPC0390 if the verifier rejects the programs.
    pub fn draft_once(&self, placement: &Placement, way: &Way) -> Result<Draft, Vec<Diagnostic>> {
        let workload = self.workload(placement);
        let batch = self.memory_batch(placement);
        let overridden = overridden(&self.model.graph, placement).map_err(|d| vec![d])?;
        let strategy = strategy(&self.model, workload, placement, &overridden, way, &batch);
        let budget = Budget::default();
        let division = divide(&self.model.graph, &strategy.request, &budget)?;
        let estimate = estimate(&division.planned, &division.sharded, &strategy.request);
        let memory = self.memory(placement).of_others(&strategy.request.workload);
        let found =
            engine_memory::footprints(&self.model, placement, &strategy.request, self.ctx_size);
        let memory = match found {
            Some(found) => memory.with_footprints(found),
            None => memory,
        };
        Ok(Draft {
            strategy,
            division,
            candidates: Vec::new(),
            left_out: Vec::new(),
            estimate,
            memory,
            budget,
        })
    }
}

impl PlanInput {
    /// Computes the bytes per place as the placement's engine allocates them, without a plan. Returns `None` if tpc's
    /// own count applies.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched.
    pub fn engine_footprints(
        &self,
        placement: &Placement,
        way: &Way,
    ) -> Result<Option<BTreeMap<Place, Footprint>>, Vec<Diagnostic>> {
        let workload = self.workload(placement);
        let batch = self.memory_batch(placement);
        let overridden = overridden(&self.model.graph, placement).map_err(|d| vec![d])?;
        let strategy = strategy(&self.model, workload, placement, &overridden, way, &batch);
        let request = &strategy.request;
        Ok(engine_memory::footprints(
            &self.model,
            placement,
            request,
            self.ctx_size,
        ))
    }
}

impl Draft {
    /// Returns the split mode.
    pub fn mode(&self) -> SplitMode {
        self.strategy.mode
    }

    /// Returns the estimated times.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// True if all devices and the host have enough memory, or if their memory is unknown.
    pub fn fits(&self) -> bool {
        fits(
            &self.division.programs,
            &self.strategy.request,
            &self.memory,
        )
    }

    pub(crate) fn is_refused(&self, prepared: &PlanInput, placement: &Placement) -> bool {
        self.mode() == SplitMode::Tensor
            && tensor_limit(placement.engine, &prepared.model, placement).is_some()
    }

    /// Returns TPC0396 if the placement requires the bits of one device and a sum does not keep them.
    pub(super) fn bits_error(&self, placement: &Placement) -> Option<Diagnostic> {
        if placement.sums != SumOrder::OneDevice || placement.engine != Engine::Tpc {
            return None;
        }
        let programs = &self.division.programs;
        let company = self.strategy.request.storage.company();
        let found = find_differences(programs, company).into_iter().next()?;
        let value = programs.value(found.value).name.clone();
        let op = programs.inst(found.inst).op.name();
        let of = found.tensor.map_or(String::new(), |t| format!(" of `{t}`"));
        let message = format!("`{op}`{of} adds in another order than one device");
        let d = Diagnostic::new(&codes::BITS_NOT_KEPT, value, message);
        Some(d.help("remove `--deterministic on`, or split by layers: `-sm layer`"))
    }

    /// Returns the arena bytes of each place.
    pub fn footprints(&self) -> &BTreeMap<Place, Footprint> {
        self.memory.footprints(&self.division.programs)
    }

    /// Adds the proof of the programs, or a counterexample, to the plan of `prepared`.
    pub fn proved(self, prepared: PlanInput) -> CompiledModel {
        let Strategy {
            mode,
            resolved,
            request,
            ..
        } = self.strategy;
        let Division {
            planned,
            eager,
            sharded,
            rewriting,
            programs,
        } = self.division;
        let PlanInput {
            model,
            caches,
            size,
            ..
        } = prepared;
        let memory = self.memory;
        let count = || {
            memory.footprints(&programs);
        };
        let proof = run_beside(
            || prove_within(&model.graph, &programs, &self.budget),
            count,
        );
        CompiledModel {
            model,
            mode,
            candidates: self.candidates,
            left_out: self.left_out,
            resolved,
            request,
            planned,
            eager,
            sharded,
            rewriting,
            programs,
            caches,
            size,
            estimate: self.estimate,
            proof,
            budget: self.budget,
            memory,
        }
    }
}
