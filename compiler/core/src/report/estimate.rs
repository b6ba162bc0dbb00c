use schemars::JsonSchema;
use serde::Serialize;
use tpc_passes::machine::{Backend, Engine, Topology};

use crate::calibration::band_table;
use crate::pipeline::{Breakdown, Estimate};

/// Estimated times in microseconds, and speeds of one sequence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EstimateReport {
    /// The engine.
    #[schemars(extend("enum" = Engine::ALL.map(Engine::name)))]
    pub engine: &'static str,
    /// Tokens in the cache before the decoded token, and before the prompt.
    pub depth: u64,
    /// Time of a batch of one token.
    pub decode_us: f64,
    /// Time of the largest batch.
    pub prefill_us: f64,
    /// Time of one token on a single device.
    pub baseline_single_us: f64,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
    /// Relative error of the estimate. Strategies within this error are equal.
    pub error: f64,
    /// The range of `decode_tps`; `None` for unknown devices.
    pub band: Option<BandReport>,
    /// True if estimates of this kind were measured. `band` is then the observed error.
    pub calibrated: bool,
    /// Kinds without measurements.
    pub not_calibrated_for: Vec<String>,
    /// Parts of a decoded token's time.
    pub breakdown: BreakdownReport,
}

/// A range of speeds around an estimate. If calibrated, it contains 90 % of measured speeds.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BandReport {
    /// Half the width of the range, as
    /// ln(estimated / measured)
    /// .
    pub error: f64,
    /// Lowest decoded tokens per second.
    pub low_tps: f64,
    /// Highest decoded tokens per second.
    pub high_tps: f64,
    /// Number of measurements.
    pub rows: usize,
    /// True if this machine was measured.
    pub of_this_machine: bool,
}

impl EstimateReport {
    /// Reports a plan's estimate. `named` is true if the user named the machine.
    pub fn new(
        e: &Estimate,
        topology: &Topology,
        devices: usize,
        back_end: Option<Backend>,
        named: bool,
    ) -> EstimateReport {
        let mut band = band_table().of_estimate(e, topology, devices, back_end);
        if e.engine == Engine::Tpc {
            // The profile of tpc's own kernels is a design target.
            band.not_calibrated_for
                .insert(0, "tpc's own kernels".to_owned());
        }
        let [low_tps, high_tps] = band.range(e.decode_tps);
        let report = BandReport {
            error: band.error,
            low_tps,
            high_tps,
            rows: band.rows,
            of_this_machine: topology
                .calibration_for(e.engine)
                .is_some_and(|c| c.ways.contains(e.way)),
        };
        EstimateReport {
            engine: e.engine.name(),
            depth: e.depth,
            decode_us: e.decode_us,
            prefill_us: e.prefill_us,
            baseline_single_us: e.baseline_single_us,
            decode_tps: e.decode_tps,
            prompt_tps: e.prompt_tps,
            error: e.error,
            band: named.then_some(report),
            calibrated: named && band.is_calibrated(),
            not_calibrated_for: band.not_calibrated_for,
            breakdown: (&e.breakdown).into(),
        }
    }
}

/// Parts of the time of a decoded token, in microseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BreakdownReport {
    /// Products with weights.
    pub weights_us: f64,
    /// Attention and recurrent states.
    pub attention_us: f64,
    /// Other ops on the devices.
    pub other_us: f64,
    /// Fixed time per kernel and per token.
    pub launches_us: f64,
    /// Collectives and copies between devices.
    pub collectives_us: f64,
    /// Computation on the host, and copies from and to it.
    pub host_us: f64,
}

impl From<&Breakdown> for BreakdownReport {
    fn from(b: &Breakdown) -> BreakdownReport {
        BreakdownReport {
            weights_us: b.weights_us,
            attention_us: b.attention_us,
            other_us: b.other_us,
            launches_us: b.launches_us,
            collectives_us: b.collectives_us,
            host_us: b.host_us,
        }
    }
}
