use serde::Serialize;

use super::{Engine, EngineProfile, Way};

/// One machine's factors on the constants of an engine's profile, fitted to measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The measured engine.
    #[serde(serialize_with = "name")]
    pub engine: Engine,
    /// Factor on the speed of reading weights and caches.
    pub bandwidth: f64,
    /// Factor on the arithmetic throughput for prompts.
    pub compute: f64,
    /// Factor on the fixed times of kernels and tokens.
    pub launches: f64,
    /// Factor on reduction times.
    pub reductions: f64,
    /// Factor on the time between stages.
    pub handover: f64,
    /// Number of measured rows.
    pub rows: u32,
    /// Remaining decoding error, |ln(estimated / measured)|.
    pub residual: f64,
    /// Remaining prompt error, |ln(estimated / measured)|.
    pub prompt_residual: f64,
    /// The measured ways to use several devices.
    #[serde(skip)]
    pub ways: Ways,
}

/// A set of ways to use several devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways(u8);

impl Ways {
    /// True if the set contains `way`.
    pub const fn contains(self, way: Way) -> bool {
        self.0 & (1 << way as u8) != 0
    }

    /// Adds `way`.
    #[must_use]
    pub const fn with(self, way: Way) -> Ways {
        Ways(self.0 | (1 << way as u8))
    }
}

fn name<S: serde::Serializer>(engine: &Engine, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(engine.name())
}

impl Calibration {
    /// Returns a calibration without effect.
    pub const fn none(engine: Engine) -> Calibration {
        Calibration {
            engine,
            bandwidth: 1.0,
            compute: 1.0,
            launches: 1.0,
            reductions: 1.0,
            handover: 1.0,
            rows: 0,
            residual: 0.0,
            prompt_residual: 0.0,
            ways: Ways(0),
        }
    }

    /// The range of factors that are valid in a file.
    pub const WITHIN: (f64, f64) = (0.05, 20.0);

    /// Returns the profile with this machine's factors applied.
    pub fn apply_to(&self, profile: &EngineProfile) -> EngineProfile {
        let mut p = *profile;
        p.bandwidth_share *= self.bandwidth;
        p.bytes_per_cycle *= self.bandwidth;
        p.scattered_bytes_per_cycle *= self.bandwidth;
        p.matrix_share *= self.compute;
        p.attention_share *= self.compute;
        p.unpack_cycles /= self.compute;
        for fixed in [
            &mut p.product_us,
            &mut p.attention_us,
            &mut p.recurrent_us,
            &mut p.shared_recurrent_us,
            &mut p.light_us,
            &mut p.token_us,
        ] {
            *fixed *= self.launches;
        }
        p.reduction_latencies *= self.reductions;
        p.link_share /= self.reductions;
        p.handover_us *= self.handover;
        p
    }
}
