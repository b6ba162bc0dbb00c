//! Estimates memory and speed of a configuration without a plan.
//!
//! The model's graph gives the bytes of every layer. One sketch per way gives each device's part of a stage, and token
//! times with nothing and with everything on the host. Times in between are interpolated linearly. The memory of
//! intermediate values comes from the requested plan; every draft corrects this memory.

use super::compute::Compute;
use super::configuration::Configuration;
use super::free_memory::FreeMemory;
use super::load::Load;
use super::moves::Move;
use super::point::{Offload, Point};
use super::shares::{Shares, count_layers};
use super::times::Times;
use super::way_profile::WayProfile;
use crate::pipeline::StoredBytes;

/// Token times of one way if all experts, all caches or all layers are on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    pub(super) none: Times,
    pub(super) experts: Option<Times>,
    pub(super) kv: Option<Times>,
    pub(super) layers: Option<Times>,
}

pub(super) struct Bound {
    pub(super) compute: Compute,
    pub(super) known: Vec<WayProfile>,
    pub(super) extremes: Extremes,
}

impl Bound {
    pub(super) fn new(compute: Compute) -> Bound {
        Bound {
            compute,
            known: Vec::new(),
            extremes: Extremes {
                none: Times::default(),
                experts: None,
                kv: None,
                layers: None,
            },
        }
    }

    /// True if a configuration fits. Memory that the host shares with devices is checked only by drafts.
    pub(super) fn fits(&self, it: &Configuration<'_>) -> bool {
        let (_, host) = it.load.divide(it.offload);
        let devices = it.base.devices.len();
        let room = it.base.topology.usable_host_memory(devices);
        room.is_none_or(|room| host <= room) && self.fits_devices(it)
    }

    /// True if a configuration fits on the devices. Ignores the host's memory.
    pub(super) fn fits_devices(&self, it: &Configuration<'_>) -> bool {
        let (units, _) = it.load.divide(it.offload);
        let rooms = self.rooms(it);
        match it.shares() {
            Some(shares) if it.shared.way.stages.len() > 1 => {
                it.holds_all(&rooms.all, &units, &it.by_shares(&units, shares))
            }
            _ => in_order(&units, it.shared.way.stages.len(), &|stage, stored| {
                it.holds(&rooms.all, stage, stored)
            }),
        }
    }

    fn rooms(&self, it: &Configuration<'_>) -> FreeMemory {
        let compute = self.compute.bytes(it.point);
        let usable = |d: usize| {
            let usable = it.base.topology.device(d).usable_memory();
            usable.unwrap_or(f64::INFINITY) - it.load.pinned[d]
        };
        let before_compute: Vec<f64> = (0..it.base.devices.len()).map(usable).collect();
        let taken = before_compute.iter().zip(&it.known.compute);
        FreeMemory {
            all: taken.map(|(room, part)| room - compute * part).collect(),
            before_compute,
        }
    }

    /// Counts the layers that fit on each device. Returns `None` if the shares are not [`Shares::Counted`], or if the
    /// counts equal the requested ones.
    pub(super) fn count_layers(&self, it: &Configuration<'_>, drafting: u64) -> Option<Vec<f64>> {
        if it.shared.shares != Shares::Counted {
            return None;
        }
        let (units, _) = it.load.divide(it.offload);
        let rooms = self.rooms(it);
        let holds = |stages: &[usize]| it.holds_all(&rooms.all, &units, stages);
        let counts = count_layers(&units, &rooms, drafting, &holds);
        let asked = it.base.tensor_split.as_deref();
        let same = |asked| it.by_shares(&units, asked) == it.by_shares(&units, &counts);
        (!asked.is_some_and(same)).then_some(counts)
    }

    /// Returns the first `n` moves of layers to the host, and the load after them. Each move relieves the fullest
    /// device that has a move left.
    pub(super) fn move_layers<'m>(
        &self,
        it: &Configuration<'_>,
        moves: &'m [Move],
        n: usize,
    ) -> (Vec<&'m Move>, Load) {
        let mut load = it.load.clone();
        if n == 0 {
            return (Vec::new(), load);
        }
        let (units, _) = load.divide(it.offload);
        let stages = it.stages_of(&units);
        let mut left: Vec<&Move> = moves.iter().collect();
        let mut out = Vec::new();
        while out.len() < n {
            let now = Configuration { load: &load, ..*it };
            let fullness = self.fullness(&now, &stages);
            let mut order: Vec<usize> = (0..fullness.len()).collect();
            order.sort_by(|&a, &b| fullness[b].total_cmp(&fullness[a]));
            let relieves = |m: &Move, d: usize| {
                let unit = usize::try_from(m.layer)
                    .unwrap_or(usize::MAX)
                    .saturating_add(1);
                let stage = stages.get(unit).map(|&s| &it.shared.way.stages[s]);
                m.pinned[d] > 0.0 || m.leaves_layer() && stage.is_some_and(|s| s.contains(&d))
            };
            let next = order
                .iter()
                .find_map(|&d| left.iter().position(|m| relieves(m, d)));
            let Some(next) = next else { break };
            let next = left.remove(next);
            next.apply(&mut load);
            out.push(next);
        }
        (out, load)
    }

    fn fullness(&self, it: &Configuration<'_>, stages: &[usize]) -> Vec<f64> {
        let (units, _) = it.load.divide(it.offload);
        let rooms = self.rooms(it).all;
        let held = it.held(&units, stages);
        let mut out = vec![0.0; rooms.len()];
        for (members, stored) in it.shared.way.stages.iter().zip(&held) {
            for &d in members {
                let usable = it.base.topology.device(d).usable_memory();
                let usable = usable.unwrap_or(f64::INFINITY).max(1.0);
                out[d] = (usable - rooms[d] + it.device_part(d, stored)) / usable;
            }
        }
        out
    }

    /// Estimates the times of a point. `floor` is the part that was on the host when the way was measured.
    pub(super) fn times(
        &self,
        point: &Point,
        (offload, floor): (Offload, Offload),
        load: &Load,
        asked_ubatch: u64,
    ) -> Times {
        let Extremes {
            none,
            experts,
            kv,
            layers,
        } = self.extremes;
        let mut out = self.known[point.way].times;
        if let Some(all) = experts {
            let inner = &load.units[1..load.units.len() - 1];
            let of_first = |n: u64| {
                let n = usize::try_from(n).unwrap_or(usize::MAX).min(inner.len());
                inner[..n].iter().filter(|u| u.experts > 0.0).count() as f64
            };
            let least = of_first(floor.experts);
            let gone = (of_first(offload.experts) - least).max(0.0);
            let left = of_first(u64::MAX) - least;
            out = out.shift_by(none, all, gone / left.max(1.0));
        }
        if let Some(all) = kv.filter(|_| offload.kv && !floor.kv) {
            out = out.shift_by(none, all, 1.0);
        }
        if let Some(all) = layers {
            let all_layers = (load.units.len() - 1) as u64;
            let gone = offload.layers.saturating_sub(floor.layers) as f64;
            let left = all_layers.saturating_sub(floor.layers) as f64;
            out = out.interpolate(all, (gone / left.max(1.0)).min(1.0));
        }
        // Weights are read once per batch, so a smaller batch takes at most as long as a larger one.
        out.prompt *= asked_ubatch as f64 / point.ubatch.max(1) as f64;
        out
    }
}

/// True if `stages` stages can hold the units in order, each within its capacity.
pub(super) fn in_order(
    units: &[StoredBytes],
    stages: usize,
    holds: &dyn Fn(usize, &StoredBytes) -> bool,
) -> bool {
    let (mut stage, mut held) = (0, StoredBytes::default());
    for unit in units {
        loop {
            let mut with = held;
            with.add(unit);
            if holds(stage, &with) {
                held = with;
                break;
            }
            (stage, held) = (stage + 1, StoredBytes::default());
            if stage >= stages {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(weights: f64) -> StoredBytes {
        StoredBytes {
            weights,
            ..StoredBytes::default()
        }
    }

    #[test]
    fn consecutive_units_fill_stages() {
        let room = [3.0, 2.0];
        let holds = |stage: usize, stored: &StoredBytes| stored.total() <= room[stage];
        let fits = |units: &[f64]| {
            let units: Vec<StoredBytes> = units.iter().map(|&w| unit(w)).collect();
            in_order(&units, 2, &holds)
        };
        assert!(fits(&[1.0, 1.0, 1.0, 1.0, 1.0]) && fits(&[3.0, 2.0]) && fits(&[]));
        assert!(!fits(&[2.0, 2.0, 1.0]) && !fits(&[4.0]));
    }
}
