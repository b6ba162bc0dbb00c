//! Preparation of a search: facts from the requested plan, and sketches of other ways.

use super::bound::Extremes;
use super::point::{Chain, OffloadOrder, Point};
use super::search::{Purpose, Search};
use super::shares::{SharedWay, Shares};
use super::space::Edits;
use super::times::Times;
use super::way_profile::WayProfile;
use crate::pipeline::{CompiledModel, Sketch, in_parallel};
use crate::placement::SplitMode;

/// Token time with all experts on the host, divided by the time with all experts on the devices. Used without a sketch
/// if the work limit is reached.
const EXPERTS: f64 = 4.0;
const KV: f64 = 3.0;
const LAYERS: f64 = 8.0;

impl Search<'_> {
    fn is_whole(&self, way: usize) -> bool {
        let stages = &self.space.ways[way].way.stages;
        stages.iter().all(|s| s.len() == 1)
    }

    fn way_of(&self, compiled: &CompiledModel, purpose: Purpose) -> Option<usize> {
        let base = self.space.base;
        let nothing = base.host_experts.is_none() && base.n_gpu_layers.is_none();
        if purpose == Purpose::Speed && (!nothing || base.kv_on_host) {
            return None;
        }
        if !self.space.keeps_host {
            return None;
        }
        let is_own = |w: &SharedWay| {
            w.way.mode == compiled.mode
                && w.shares == Shares::Asked
                && w.way.main_device() == compiled.main_device()
        };
        self.space.ways.iter().position(is_own)
    }

    /// Measures each way's stored bytes and speed, and the first way's speed with each kind of bytes on the host.
    pub(super) fn learn(&mut self, compiled: &CompiledModel, purpose: Purpose) -> Option<()> {
        let own = self.way_of(compiled, purpose);
        let plain = own.filter(|&way| self.is_whole(way)).or_else(|| {
            let all = 0..self.space.ways.len();
            let asked = |w: &usize| self.space.ways[*w].shares == Shares::Asked;
            all.filter(asked).find(|&w| self.is_whole(w))
        })?;
        let first = own.unwrap_or(plain);
        let costs = self.costs[first];
        let reserve = 2 * (costs.draft + costs.proof);
        let mut sketches: Vec<Option<Sketch>> = vec![None; self.space.ways.len()];
        if let Some(own) = own {
            let depth = self.space.depth(self.space.ctx_size);
            sketches[own] = Some(compiled.sketched(depth));
        }
        let needed: Vec<usize> = [first, plain]
            .into_iter()
            .filter(|&way| sketches[way].is_none())
            .collect();
        // The search needs the first sketch, so the limit does not apply.
        for way in needed {
            let point = self.origin(way);
            if way == first || self.affords(&[point], reserve) {
                sketches[way] = self.sketches(&[point]).pop().flatten();
            }
        }
        let none = sketches[plain].as_ref().or(sketches[first].as_ref())?;
        let none = Times::of(&none.estimate);
        self.learn_extremes(plain, none, reserve);
        self.learn_ways(&mut sketches, reserve);
        self.keep_known(&sketches, none, own.map(|_| compiled));
        (!self.bound.known.is_empty()).then_some(())
    }

    pub(super) fn affords(&self, points: &[Point], reserve: u64) -> bool {
        let work: u64 = points.iter().map(|p| self.costs[p.way].sketch).sum();
        work + reserve <= self.effort.left()
    }

    /// Measures the times with all experts, all caches or all layers on the host.
    fn learn_extremes(&mut self, plain: usize, none: Times, reserve: u64) {
        let at = self.origin(plain);
        let layers = self.space.n_block + 1;
        let before = match at.chain.first {
            OffloadOrder::Experts => self.space.n_block,
            _ => 0,
        };
        let kv = Chain {
            kv: true,
            ..at.chain
        };
        let experts = Point {
            level: before,
            ..at
        };
        let layers = Point {
            level: before + layers,
            ..at
        };
        let kv = Point { chain: kv, ..at };
        let mut points = vec![layers];
        points.extend(self.space.has_experts.then_some(experts));
        points.extend((self.space.has_caches && !at.chain.kv).then_some(kv));
        let found = match self.affords(&points, reserve) {
            true => self.sketches(&points),
            false => vec![None; points.len()],
        };
        let times = |point: &Point, guess: f64| {
            let at = points.iter().position(|p| p == point)?;
            let sketched = found[at].as_ref().map(|s| Times::of(&s.estimate));
            Some(sketched.unwrap_or_else(|| none.times(guess)))
        };
        self.bound.extremes = Extremes {
            none,
            experts: times(&experts, EXPERTS).filter(|_| self.space.has_experts),
            kv: times(&kv, KV).filter(|_| self.space.has_caches),
            layers: times(&layers, LAYERS),
        };
    }

    fn learn_ways(&mut self, sketches: &mut [Option<Sketch>], reserve: u64) {
        let mut points = Vec::new();
        for (way, sketch) in sketches.iter().enumerate() {
            let shared = &self.space.ways[way];
            // Counted layers have the same speed as requested shares.
            let is_known = sketch.is_some() || shared.shares == Shares::Counted;
            if is_known {
                continue;
            }
            let point = self.origin(way);
            let costs = self.costs[way];
            let later = costs.draft + costs.proof;
            points.push(point);
            if !self.affords(&points, reserve.max(later)) {
                points.pop();
                self.effort.complete = false;
            }
        }
        for (point, sketch) in points.clone().into_iter().zip(self.sketches(&points)) {
            sketches[point.way] = sketch;
        }
    }

    fn keep_known(
        &mut self,
        sketches: &[Option<Sketch>],
        none: Times,
        compiled: Option<&CompiledModel>,
    ) {
        let devices = self.space.base.devices.len();
        let same = |way: usize| {
            let stages = &self.space.ways[way].way;
            (self.space.ways.iter()).position(|w| w.way == *stages && w.shares == Shares::Asked)
        };
        let mut known: Vec<Option<WayProfile>> = Vec::new();
        for way in 0..sketches.len() {
            let shared = &self.space.ways[way];
            let alike = || same(way).and_then(|w| sketches[w].as_ref());
            let found = match (&sketches[way], shared.shares == Shares::Counted) {
                (Some(sketch), _) => Some(WayProfile::of(sketch, shared, devices)),
                (None, true) => Some(alike().map_or_else(
                    || WayProfile::whole(devices, none),
                    |sketch| WayProfile::of(sketch, shared, devices),
                )),
                (None, false) if shared.way.mode == SplitMode::Layer => {
                    Some(WayProfile::whole(devices, none))
                }
                (None, false) => None,
            };
            let learnt = found.map(|mut found| {
                if let Some(compiled) = compiled.filter(|c| c.mode == shared.way.mode) {
                    let point = self.origin(way);
                    found.learn(self.bound.compute, &point, compiled.footprints());
                }
                found
            });
            known.push(learnt);
        }
        let keep: Vec<bool> = known.iter().map(Option::is_some).collect();
        let mut kept = keep.iter();
        self.space.ways.retain(|_| *kept.next().unwrap_or(&false));
        let mut kept = keep.iter();
        self.costs.retain(|_| *kept.next().unwrap_or(&false));
        self.bound.known = known.into_iter().flatten().collect();
    }

    pub(super) fn sketches(&mut self, points: &[Point]) -> Vec<Option<Sketch>> {
        let work = points.iter().map(|p| self.costs[p.way].sketch).sum();
        self.effort.spend(points.len(), work);
        in_parallel(points.to_vec(), |point| {
            let known = self.bound.known.get(point.way);
            let changes = known.map(|known| self.changes(known, &point));
            let changes =
                changes.unwrap_or_else(|| Some(self.space.changes(&point, &Edits::default())))?;
            let placement = self.space.placement(&point, &changes);
            let prepared = self.advisor.origin.prepare(&placement).ok()?;
            let sketch = prepared.sketch(&placement, &self.space.ways[point.way].way);
            (self.advisor.watch)();
            sketch.ok()
        })
    }
}
