use tpc_passes::machine::Workload;

use crate::pipeline::Estimate;

/// Microseconds per decoded token and per prompt token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) decode: f64,
    pub(super) prompt: f64,
}

impl Times {
    pub(super) fn of(estimate: &Estimate) -> Times {
        Times {
            decode: 1e6 / estimate.decode_tps.max(1e-9),
            prompt: 1e6 / estimate.prompt_tps.max(1e-9),
        }
    }

    pub(super) fn per_token(self) -> f64 {
        self.decode + Workload::PROMPT_WEIGHT * self.prompt
    }

    pub(super) fn times(self, factor: f64) -> Times {
        Times {
            decode: self.decode * factor,
            prompt: self.prompt * factor,
        }
    }

    pub(super) fn interpolate(self, other: Times, part: f64) -> Times {
        Times {
            decode: self.decode + part * (other.decode - self.decode),
            prompt: self.prompt + part * (other.prompt - self.prompt),
        }
    }

    pub(super) fn shift_by(self, from: Times, to: Times, part: f64) -> Times {
        Times {
            decode: (self.decode + part * (to.decode - from.decode)).max(0.0),
            prompt: (self.prompt + part * (to.prompt - from.prompt)).max(0.0),
        }
    }
}
