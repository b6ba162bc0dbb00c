use std::collections::BTreeMap;

use tpc_ir::{Device, Place};
use tpc_passes::footprint::Footprint;

use super::compute::Compute;
use super::point::Point;
use super::shares::SharedWay;
use super::times::Times;
use crate::pipeline::{Sketch, StoredBytes};

#[derive(Clone, Debug)]
pub(super) struct WayProfile {
    /// Fraction of its stage's bytes that each device stores.
    pub(super) parts: Vec<StoredBytes>,
    /// Memory of intermediate values per device, divided by the estimate of [`Compute`].
    pub(super) compute: Vec<f64>,
    /// Token times with an empty host.
    pub(super) times: Times,
}

impl WayProfile {
    pub(super) fn whole(devices: usize, times: Times) -> WayProfile {
        let all = StoredBytes {
            experts: 1.0,
            weights: 1.0,
            caches: 1.0,
            states: 1.0,
            copies: 1.0,
        };
        WayProfile {
            parts: vec![all; devices],
            compute: vec![1.0; devices],
            times,
        }
    }

    pub(super) fn of(sketch: &Sketch, shared: &SharedWay, devices: usize) -> WayProfile {
        let mut parts = vec![StoredBytes::default(); devices];
        for (stage, members) in shared.way.stages.iter().enumerate() {
            let whole = sketch.stages[stage];
            let even = 1.0 / members.len() as f64;
            let part = |own: f64, whole: f64| if whole > 0.0 { own / whole } else { even };
            for &d in members {
                let own = sketch.parts[d];
                parts[d] = StoredBytes {
                    experts: part(own.experts, whole.experts),
                    weights: part(own.weights, whole.weights),
                    caches: part(own.caches, whole.caches),
                    states: part(own.states, whole.states),
                    copies: 1.0,
                };
            }
        }
        WayProfile {
            parts,
            compute: vec![1.0; devices],
            times: Times::of(&sketch.estimate),
        }
    }

    pub(super) fn learn(
        &mut self,
        compute: Compute,
        point: &Point,
        prints: &BTreeMap<Place, Footprint>,
    ) {
        let said = compute.bytes(point).max(1.0);
        for (d, part) in self.compute.iter_mut().enumerate() {
            let print = prints.get(&Place::Device(Device::new(d)));
            *part = print.map_or(0.0, |p| p.compute as f64) / said;
        }
    }
}
