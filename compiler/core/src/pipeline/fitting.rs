//! The search for a plan that fits the devices' memory.
//!
//! The memory of intermediate values is known only after lowering. If a plan does not fit, the search raises the price
//! of stored bytes, then shifts device weights, then tries the next strategy.

use tpc_ir::{Bindings, Budget, Device, Place, Verified, stage};
use tpc_passes::footprint::Footprint;
use tpc_passes::machine::Workload;
use tpc_passes::plan::PlanRequest;

use super::Model;
use super::candidate::Candidate;
use super::divide::{Division, Sharding, divide};
use super::engine_memory;
use super::memory::{Memory, fits};
use super::ranking::{RankedStrategy, mark_equals};
use super::strategies::Strategy;
use crate::placement::Placement;
use tpc_diag::Diagnostic;

const SHIFTS: usize = 5;

pub(super) struct Fitting<'a> {
    pub(super) model: &'a Verified<stage::Model>,
    pub(super) placement: &'a Placement,
    pub(super) of: &'a Model,
    pub(super) ctx_size: u64,
    /// Batch sizes that determine the bytes of caches and states.
    pub(super) batch: Bindings,
    pub(super) memory: Memory,
    pub(super) budget: &'a Budget,
}

struct Attempt {
    request: PlanRequest,
    division: Division,
    memory: Memory,
    fits: bool,
}

impl Attempt {
    fn into_request(self) -> PlanRequest {
        self.request
    }
}

impl Fitting<'_> {
    /// Returns the plan of the first strategy that fits, or else of the first strategy. Marks fitting and chosen
    /// strategies in `candidates`, which is empty if the user chose the strategy.
    ///
    /// # Errors
    /// Returns TPC0390 if a graph does not verify.
    pub(super) fn first(
        &self,
        strategies: Vec<RankedStrategy>,
        candidates: &mut [Candidate],
    ) -> Result<(Strategy, Division, Memory), Vec<Diagnostic>> {
        let mut best: Option<(Strategy, Division, Memory)> = None;
        for RankedStrategy {
            mut strategy,
            sharding,
        } in strategies
        {
            if best.is_some() && !candidates[strategy.number].fits {
                break;
            }
            let attempt = self.attempt(&strategy, sharding)?;
            if let Some(c) = candidates.get_mut(strategy.number) {
                c.fits = attempt.fits;
            }
            if attempt.fits || best.is_none() {
                strategy.request = attempt.request;
                best = Some((strategy, attempt.division, attempt.memory));
            }
            if attempt.fits {
                break;
            }
        }
        let (strategy, division, memory) = best.expect("invariant: every mode has a strategy");
        if let Some(c) = candidates.get_mut(strategy.number) {
            c.chosen = true;
        }
        mark_equals(candidates);
        Ok((strategy, division, memory))
    }

    /// Plans a strategy as requested. If the plan does not fit, raises the price of memory, then shifts device weights.
    fn attempt(
        &self,
        strategy: &Strategy,
        sharding: Option<Sharding>,
    ) -> Result<Attempt, Vec<Diagnostic>> {
        let request = strategy.request.clone();
        let mut out = match sharding {
            Some(sharding) => self.assess(request, sharding.lower(self.budget)?),
            None => self.plan(request)?,
        };
        if out.fits || !strategy.mode.splits_tensors() {
            return Ok(out);
        }
        let shift = self.shift(&out);
        for price in Workload::SCARCE_MEMORY {
            if out.fits || !self.has_room(&out) {
                break;
            }
            // Divisions are large, so drop this one before the next.
            let mut request = out.into_request();
            request.memory_price = price;
            out = self.plan(request)?;
        }
        if !out.fits
            && self.placement.tensor_split.is_none()
            && let Some(shifted) = self.shift_weights(shift)?
        {
            out = shifted;
        }
        Ok(out)
    }

    /// Increases the weights of devices with free memory. Returns `None` if a stage needs more memory than its devices
    /// have, or if no weight can change.
    fn shift(&self, attempt: &Attempt) -> Option<PlanRequest> {
        let needed = self.bytes(attempt, Footprint::total);
        let mut request = attempt.request.clone();
        let spare = |d: &usize| {
            let usable = request.topology.device(*d).usable_memory();
            usable.map_or(f64::INFINITY, |m| m - needed[*d] as f64)
        };
        let stages = &request.layer_placement.stages;
        let enough = stages
            .iter()
            .all(|stage| stage.iter().map(spare).sum::<f64>() >= 0.0);
        (enough && request.shift_device_weights(&needed)).then_some(request)
    }

    fn shift_weights(
        &self,
        mut next: Option<PlanRequest>,
    ) -> Result<Option<Attempt>, Vec<Diagnostic>> {
        for _ in 0..SHIFTS {
            let Some(request) = next else { break };
            let attempt = self.plan(request)?;
            if attempt.fits {
                return Ok(Some(attempt));
            }
            next = self.shift(&attempt);
        }
        Ok(None)
    }

    fn bytes(&self, attempt: &Attempt, count: impl Fn(&Footprint) -> u64) -> Vec<u64> {
        let prints = attempt.memory.footprints(&attempt.division.programs);
        let of = |d: usize| prints.get(&Place::Device(Device::new(d))).map_or(0, &count);
        (0..attempt.request.devices.len()).map(of).collect()
    }

    /// True if the devices of each stage together have room for weights, states and an attempt's intermediate values.
    fn has_room(&self, attempt: &Attempt) -> bool {
        let compute = self.bytes(attempt, |print| print.compute);
        attempt.request.has_room(self.model, &self.batch, &compute)
    }

    fn plan(&self, request: PlanRequest) -> Result<Attempt, Vec<Diagnostic>> {
        let division = divide(self.model, &request, self.budget)?;
        Ok(self.assess(request, division))
    }

    fn assess(&self, request: PlanRequest, division: Division) -> Attempt {
        let memory = self.memory.of_others(&request.workload);
        let found = engine_memory::footprints(self.of, self.placement, &request, self.ctx_size);
        let memory = match found {
            Some(found) => memory.with_footprints(found),
            None => memory,
        };
        Attempt {
            fits: fits(&division.programs, &request, &memory),
            request,
            division,
            memory,
        }
    }
}
