use std::collections::BTreeSet;

use tpc_ir::{Device, Place};
use tpc_passes::footprint::Footprint;

use super::change::Change;
use super::class::Class;
use super::point::{Chain, Point};
use super::price::{Advice, Shortfall, price};
use super::search::{FASTER, Search, has_as_much};
use super::trial::{DraftEffort, TrialResult};
use crate::pipeline::in_parallel;
use crate::placement::SplitMode;

/// Maximum number of configurations in the advice.
const NAMED: usize = 8;
/// Maximum number of drafts if no configuration fits.
const SHORT: usize = 12;

impl Search<'_> {
    /// Proves the drafts and returns the useful ones. Drops a draft if another draft loses less, has about the same
    /// context and is at most 5 % slower.
    pub(super) fn name(&self, mut found: Vec<TrialResult>) -> Vec<Advice> {
        found.sort_by(|a, b| a.us_per_token.total_cmp(&b.us_per_token));
        let class = |f: &TrialResult| self.space.class(&f.point);
        let worth = |f: &TrialResult| {
            !found.iter().any(|other| {
                other.changes != f.changes
                    && class(other).is_within(class(f))
                    && class(other) != class(f)
                    && other.us_per_token <= f.us_per_token * FASTER
                    && has_as_much(&other.point, &f.point)
            })
        };
        let keep: Vec<bool> = found.iter().map(worth).collect();
        let mut kept: Vec<TrialResult> = found
            .into_iter()
            .zip(keep)
            .filter_map(|(f, k)| k.then_some(f))
            .collect();
        let mut seen: Vec<Vec<Change>> = Vec::new();
        kept.retain(|f| {
            let is_new = !seen.contains(&f.changes);
            seen.push(f.changes.clone());
            is_new
        });
        kept.truncate(NAMED);
        let ranks: Vec<_> = kept.iter().map(|f| self.rank(f)).collect();
        let proved = in_parallel(kept, |f| self.prove(f));
        let mut out: Vec<_> = ranks.into_iter().zip(proved).collect();
        out.sort_by(|(a, x), (b, y)| {
            let time = |a: &Option<Advice>| a.as_ref().map_or(f64::INFINITY, |a| a.us_per_token);
            a.cmp(b).then(time(x).total_cmp(&time(y)))
        });
        out.into_iter().filter_map(|(_, advice)| advice).collect()
    }

    /// Computes the sort key: advice without losses first, and within it advice that changes only the shares.
    fn rank(&self, found: &TrialResult) -> (bool, bool) {
        let asked = self.space.base.split_mode;
        let is_other = |c: &Change| match c {
            Change::Shares(_) => false,
            Change::Mode(_) => asked != SplitMode::Auto,
            _ => true,
        };
        let gives_up = self.space.class(&found.point) != Class::default();
        (gives_up, gives_up || found.changes.iter().any(is_other))
    }

    fn prove(&self, found: TrialResult) -> Option<Advice> {
        if !found.draft.fits() {
            return None;
        }
        let changes = found.changes;
        let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let prints = found.draft.footprints();
        let host = prints.get(&Place::Host).map_or(0, Footprint::total);
        let used = |d: usize| {
            let usable = self.space.base.topology.device(d).usable_memory()?;
            let print = prints.get(&Place::Device(Device::new(d)));
            Some(print.map_or(0, Footprint::total) as f64 / usable.max(1.0))
        };
        let fullest = (0..self.space.base.devices.len())
            .filter_map(used)
            .reduce(f64::max);
        let mode = found.draft.mode();
        let us_per_token = found.us_per_token;
        let depth = found.placement.depth;
        let compiled = found.draft.proved(found.prepared);
        if compiled.proof.is_err() || words.is_empty() {
            return None;
        }
        let mut out = Advice {
            options: words.join(" "),
            price: price(&changes, host),
            changes,
            placement: found.placement,
            mode,
            decode_tps: compiled.estimate.decode_tps,
            prompt_tps: compiled.estimate.prompt_tps,
            depth,
            fullest,
            host_bytes: host,
            us_per_token,
        };
        (self.advisor.vet)(&mut out, &compiled).then_some(out)
    }

    pub(super) fn shortfall(&mut self) -> Option<Shortfall> {
        let space = &self.space;
        let smallest = |level: u64, chain: Chain| Point {
            way: 0,
            chain,
            level,
            caches: if space.has_caches {
                space.caches.len() - 1
            } else {
                0
            },
            ctx_size: *space
                .contexts(Class {
                    context: true,
                    ..Class::default()
                })
                .last()
                .unwrap_or(&space.ctx_size),
            parallel: 1,
            ubatch: *space.batches().last().unwrap_or(&space.base.ubatch_size),
        };
        let mut points = Vec::new();
        for chain in space.chains() {
            let last = space.last_level(chain);
            let point = smallest(0, chain);
            let load = self.leaves[point.caches].load(&point, space.base.devices.len());
            // Levels from full devices to a full host.
            let full = self.level_of_devices(&self.bound.known[0], &point, &load);
            let first = space.first_level(chain);
            for level in [full, full + 1, last, first] {
                points.push(smallest(level.min(last), chain));
            }
        }
        let mut seen = BTreeSet::new();
        points.retain(|p| seen.insert((space.offload(p), p.ctx_size)));
        // Draft at least one, so that a shortfall is known.
        let most = self.effort.left() / self.costs[0].draft.max(1);
        points.truncate(usize::try_from(most).unwrap_or(SHORT).clamp(1, SHORT));
        self.effort
            .spend(points.len(), self.costs[0].draft * points.len() as u64);
        let found = in_parallel(points, |p| {
            let found = self.draft(&self.bound.known[0], &p, DraftEffort::Once)?;
            let (place, bytes) = lacks(&found)?;
            let words: Vec<String> = found.changes.iter().map(ToString::to_string).collect();
            Some(Shortfall {
                place,
                bytes,
                options: words.join(" "),
            })
        });
        found.into_iter().flatten().min_by_key(|s| s.bytes)
    }
}

/// Returns the place that lacks the most memory, and the missing bytes of all places.
fn lacks(found: &TrialResult) -> Option<(String, u64)> {
    let topology = &found.placement.topology;
    let prints = found.draft.footprints();
    let bytes = |place: Place| prints.get(&place).map_or(0, Footprint::total);
    let of_device = |d: usize| bytes(Place::Device(Device::new(d)));
    let devices = found.placement.devices.len();
    let over = |total: u64, usable: f64| total.saturating_sub(usable as u64);
    let mut all: Vec<(u64, String)> = Vec::new();
    for (d, spec) in found.placement.devices.iter().enumerate() {
        let usable = topology.device(d).usable_memory();
        all.extend(usable.map(|usable| (over(of_device(d), usable), spec.name.clone())));
    }
    // If the host shares memory with devices, the host also holds the devices' bytes.
    let pooled = topology.host_pool(devices).map_or(0, |pool| {
        let shared = pool.devices.iter().map(|&d| of_device(d));
        shared.fold(0, u64::saturating_add)
    });
    let on_host = bytes(Place::Host).saturating_add(pooled);
    let usable = topology.usable_host_memory(devices);
    all.extend(usable.map(|usable| (over(on_host, usable), "host".to_owned())));
    all.retain(|(over, _)| *over > 0);
    let sum = all
        .iter()
        .fold(0_u64, |sum, (over, _)| sum.saturating_add(*over));
    let (most, name) = all.into_iter().max_by_key(|(over, _)| *over)?;
    // Count bytes only once if both a device and its shared memory lack them.
    let is_shared = topology.host_is_shared(devices);
    Some((name, if is_shared { most } else { sum }))
}
