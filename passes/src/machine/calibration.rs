//! Calibration: measurements on one machine as factors on an engine's profile.

use serde::Serialize;

use super::{Engine, EngineProfile, Way};

/// Factors of one machine on the profile of an engine, fitted to measurements on that machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The engine that was measured.
    #[serde(serialize_with = "name")]
    pub engine: Engine,
    /// The factor on the speed of reading weights and caches.
    pub bandwidth: f64,
    /// The factor on the arithmetic of prompts.
    pub compute: f64,
    /// The factor on fixed times.
    pub launches: f64,
    /// The factor on the time of reductions.
    pub reductions: f64,
    /// The factor on the time from stage to stage.
    pub handover: f64,
    /// Measured rows.
    pub rows: u32,
    /// The error of decoding that remains, as |ln(estimated / measured)|.
    pub residual: f64,
    /// The remaining error of prompts, as |ln(estimated / measured)|.
    pub prompt_residual: f64,
    /// The ways in which devices worked together in the measurements.
    #[serde(skip)]
    pub ways: Ways,
}

/// A set of ways to use several devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways(u8);

impl Ways {
    /// True if a way is among them.
    pub const fn contains(self, way: Way) -> bool {
        self.0 & (1 << way as u8) != 0
    }

    /// Returns these ways and one more.
    #[must_use]
    pub const fn with(self, way: Way) -> Ways {
        Ways(self.0 | (1 << way as u8))
    }
}

fn name<S: serde::Serializer>(engine: &Engine, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(engine.name())
}

impl Calibration {
    /// Returns the calibration of a machine that matches the profile.
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

    /// The least and the largest factor that a file may state.
    pub const WITHIN: (f64, f64) = (0.05, 20.0);

    /// Returns the profile of the machine.
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
