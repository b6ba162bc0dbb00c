use super::load::Load;
use super::point::{Offload, Point};
use super::shares::{SharedWay, Shares};
use super::way_profile::WayProfile;
use crate::pipeline::StoredBytes;
use crate::placement::{Placement, Unit, by_bytes, by_layers};

#[derive(Clone, Copy)]
pub(super) struct Configuration<'a> {
    pub(super) known: &'a WayProfile,
    pub(super) shared: &'a SharedWay,
    pub(super) base: &'a Placement,
    pub(super) point: &'a Point,
    pub(super) load: &'a Load,
    pub(super) offload: Offload,
}

impl Configuration<'_> {
    pub(super) fn shares(&self) -> Option<&[f64]> {
        match &self.shared.shares {
            Shares::Asked => self.base.tensor_split.as_deref(),
            Shares::Given(shares) => Some(shares),
            Shares::Counted => None,
        }
    }

    /// Computes the bytes that a device stores of its stage's `stored` bytes.
    pub(super) fn device_part(&self, device: usize, stored: &StoredBytes) -> f64 {
        let part = &self.known.parts[device];
        part.experts * stored.experts
            + part.weights * stored.weights
            + part.caches * stored.caches
            + part.states * stored.states
    }

    pub(super) fn holds(&self, rooms: &[f64], stage: usize, stored: &StoredBytes) -> bool {
        self.shared.way.stages[stage].iter().all(|&d| {
            let own = self.device_part(d, stored);
            own <= rooms[d] || own <= 0.0
        })
    }

    pub(super) fn holds_all(&self, rooms: &[f64], units: &[StoredBytes], stages: &[usize]) -> bool {
        let held = self.held(units, stages);
        held.iter()
            .enumerate()
            .all(|(stage, stored)| self.holds(rooms, stage, stored))
    }

    pub(super) fn held(&self, units: &[StoredBytes], stages: &[usize]) -> Vec<StoredBytes> {
        let mut held = vec![StoredBytes::default(); self.shared.way.stages.len()];
        for (unit, &stage) in units.iter().zip(stages) {
            held[stage].add(unit);
        }
        held
    }

    pub(super) fn by_shares(&self, units: &[StoredBytes], shares: &[f64]) -> Vec<usize> {
        by_layers(&whole(units), &self.sums(shares))
    }

    /// Sums `of`, a number per device, over the devices of each stage.
    fn sums(&self, of: &[f64]) -> Vec<f64> {
        let stages = self.shared.way.stages.iter();
        stages
            .map(|stage| stage.iter().map(|&d| of[d]).sum())
            .collect()
    }

    pub(super) fn stages_of(&self, units: &[StoredBytes]) -> Vec<usize> {
        match self.shares() {
            _ if self.shared.way.stages.len() == 1 => vec![0; units.len()],
            Some(shares) => self.by_shares(units, shares),
            None => {
                let memory = |d: usize| self.base.topology.device(d).usable_memory();
                let memory: Option<Vec<f64>> = (0..self.base.devices.len()).map(memory).collect();
                let memory = memory.unwrap_or_else(|| vec![1.0; self.base.devices.len()]);
                by_bytes(&whole(units), &self.sums(&memory))
            }
        }
    }
}

fn whole(units: &[StoredBytes]) -> Vec<Unit> {
    let unit = |u: &StoredBytes| Unit {
        bytes: (u.total() + u.copies) as u64,
    };
    units.iter().map(unit).collect()
}
