//! The work of a search, counted in units that do not depend on the machine.

/// Work limit of a search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Work, in units of about 1 µs on one CPU core.
    pub steps: u64,
}

impl Default for Limits {
    /// Returns a limit of about 1.5 seconds on one CPU core.
    fn default() -> Limits {
        Limits { steps: 1_500_000 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) sketch: u64,
    pub(super) draft: u64,
    pub(super) proof: u64,
}

impl Costs {
    /// Computes the costs for a model with `insts` instructions and `layers` layers. `sharing` of `devices` devices
    /// share tensors. `cargo run --release -p tpc-tests --bin step-cost` measures the constants.
    pub(super) fn of(insts: usize, layers: u64, (sharing, devices): (usize, usize)) -> Costs {
        let insts = insts as f64;
        let (sharing, devices) = (sharing as f64, devices as f64);
        // The search for splits takes longer if layers have more instructions.
        let of_layer = insts / layers.max(1) as f64;
        let [sketch, draft, proof] = match sharing > 1.0 {
            true => [
                12.0 + 0.13 * of_layer,
                8.0 + 0.13 * of_layer + 4.5 * sharing,
                2.0 + 1.7 * sharing,
            ],
            false => [12.0, 15.0 + 0.3 * devices, 2.0 + 0.25 * devices],
        };
        let units = |per_inst: f64| (insts * per_inst) as u64 + 1;
        Costs {
            sketch: units(sketch),
            draft: units(draft),
            proof: units(proof),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Effort {
    left: u64,
    pub(super) tried: usize,
    /// True unless the work limit made the search skip a plan.
    pub(super) complete: bool,
}

impl Effort {
    pub(super) const fn new(limits: Limits) -> Effort {
        Effort {
            left: limits.steps,
            tried: 0,
            complete: true,
        }
    }

    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Subtracts `work` for `plans` plans if enough work remains; returns true in that case.
    pub(super) fn take(&mut self, plans: usize, work: u64) -> bool {
        let enough = work <= self.left;
        if enough {
            self.left -= work;
            self.tried += plans;
        } else {
            self.complete = false;
        }
        enough
    }

    /// Subtracts work that is already done, down to zero.
    pub(super) fn spend(&mut self, plans: usize, work: u64) {
        self.left = self.left.saturating_sub(work);
        self.tried += plans;
    }
}
