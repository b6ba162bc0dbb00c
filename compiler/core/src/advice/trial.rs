//! Drafts of points. Each draft's memory corrects the bound for the next draft.

use std::collections::BTreeSet;

use super::change::Change;
use super::class::Class;
use super::effort::Costs;
use super::point::{Chain, Point};
use super::price::{Advice, per_token};
use super::search::{CELLS, FASTER, Search, TimedPoint, has_as_much, milder};
use super::way_profile::WayProfile;
use crate::pipeline::{Draft, PlanInput, in_parallel};
use crate::placement::{Placement, SplitMode};

/// Number of plans in a full draft: as requested, with memory priced higher, then with shifted shares.
const FULL: u64 = 5;
/// Maximum number of drafts per class that correct the bound.
const DRAFTED: u64 = 6;
/// Maximum number of full drafts in the search for the lowest level.
const SHIFTED: u64 = 4;
/// A point is surely faster if the ratio of the bounds is below this; bounds are inexact.
const CLEARLY: f64 = 0.85;
const KEPT: usize = 3;
/// Sketches may use the remaining work divided by `SKETCHED`.
const SKETCHED: u64 = 4;
/// Maximum number of levels to add if the caches move back to the devices.
const MOVED: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DraftEffort {
    /// One plan, with the point's way.
    Once,
    /// All plans of a full draft.
    Full,
}

struct WorkLimit {
    work: u64,
    drafts: u64,
    made: usize,
    spent: u64,
    short: bool,
}

impl WorkLimit {
    fn new(work: u64) -> WorkLimit {
        WorkLimit {
            work,
            drafts: DRAFTED,
            made: 0,
            spent: 0,
            short: false,
        }
    }

    fn has(&self, work: u64) -> bool {
        self.spent.saturating_add(work) <= self.work
    }

    /// Subtracts `work` for `plans` plans if enough work remains; returns true in that case. The first plan is always
    /// made.
    fn take(&mut self, plans: u64, work: u64) -> bool {
        let is_first = self.made == 0 && plans == 1;
        let enough = is_first || self.spent + work <= self.work;
        if enough {
            self.spent += work;
            self.made += 1;
        }
        self.short |= !enough;
        enough
    }

    /// Subtracts the work of a draft that corrects the bound; returns true if enough work remained.
    fn take_draft(&mut self, costs: Costs) -> bool {
        let enough = self.drafts > 0 && self.take(1, costs.draft);
        self.drafts = self.drafts.saturating_sub(1);
        enough
    }
}

pub(super) struct TrialResult {
    pub(super) point: Point,
    pub(super) changes: Vec<Change>,
    pub(super) placement: Placement,
    pub(super) prepared: PlanInput,
    pub(super) draft: Draft,
    pub(super) us_per_token: f64,
}

impl Search<'_> {
    pub(super) fn fastest(&mut self, classes: &[Class]) -> Vec<Advice> {
        let points = self.starts(classes);
        let mut found: Vec<TrialResult> = Vec::new();
        let mut rest = points.as_slice();
        while !rest.is_empty() {
            let each = self.effort.left() / rest.len() as u64;
            let mut n = rest.len().min(ROUND);
            let dearest = |of: &[TimedPoint]| of.first().map_or(0, |p| self.work_of(p));
            let cost: u64 = rest[..n].iter().map(|(_, of)| dearest(of)).sum();
            if cost > self.effort.left() {
                n = 1;
            }
            if dearest(&rest[0].1) > self.effort.left() && !found.is_empty() {
                self.effort.complete = false;
                break;
            }
            let (now, later) = rest.split_at(n);
            let tried = in_parallel(now.to_vec(), |(class, of)| {
                let mut allowed = WorkLimit::new(each);
                let found = self.first_that_fits(class, &of, &mut allowed);
                (found, allowed)
            });
            for (one, allowed) in tried {
                self.effort.spend(allowed.made, allowed.spent);
                self.effort.complete &= !allowed.short;
                if let Some(one) = &one {
                    // Reserve the work for the proof.
                    self.effort.spend(0, self.costs[one.point.way].proof);
                }
                found.extend(one);
            }
            rest = later;
        }
        let found = self.with_shares_shifted(found);
        self.name(found)
    }

    /// Selects each class's first points of the requested mode and of other modes.
    fn starts(&mut self, classes: &[Class]) -> Vec<(Class, Vec<TimedPoint>)> {
        let asked = self.space.base.split_mode;
        let mut points: Vec<(Class, Vec<TimedPoint>)> = Vec::new();
        for &class in classes {
            let all = self.candidates(class);
            let is_own = |(p, _): &TimedPoint| self.space.ways[p.way].way.mode == asked;
            let (own, others): (Vec<TimedPoint>, Vec<TimedPoint>) =
                all.into_iter().partition(is_own);
            for best in [own, others] {
                // Skip a class if a class with fewer losses is clearly faster according to the bound.
                let idle = points.iter().any(|(other, of)| {
                    let times = of.first().zip(best.first());
                    *other != class
                        && other.is_within(class)
                        && times
                            .is_some_and(|(a, b)| a.1 <= b.1 * CLEARLY && has_as_much(&a.0, &b.0))
                });
                if !idle && !best.is_empty() {
                    points.push((class, best.into_iter().take(KEPT).collect()));
                }
            }
        }
        self.sort_by_sketch(points)
    }

    fn sort_by_sketch(
        &mut self,
        mut points: Vec<(Class, Vec<TimedPoint>)>,
    ) -> Vec<(Class, Vec<TimedPoint>)> {
        let all = points.iter().flat_map(|(_, of)| of.iter().map(|p| p.0));
        let all: Vec<Point> = all.collect();
        let beside = self.effort.left() / SKETCHED * (SKETCHED - 1);
        if !self.affords(&all, beside) {
            return points;
        }
        let mut sketches = self.sketches(&all).into_iter();
        for (_, of) in &mut points {
            for (_, time) in of.iter_mut() {
                if let Some(sketch) = sketches.next().flatten() {
                    *time = per_token(&sketch.estimate);
                }
            }
            of.sort_by(|a, b| a.1.total_cmp(&b.1));
        }
        points
    }

    fn work_of(&self, (point, _): &TimedPoint) -> u64 {
        let costs = self.costs[point.way];
        costs.draft + costs.proof
    }

    pub(super) fn draft(
        &self,
        known: &WayProfile,
        point: &Point,
        trying: DraftEffort,
    ) -> Option<TrialResult> {
        let changes = self.changes(known, point)?;
        let placement = self.space.placement(point, &changes);
        let prepared = self.advisor.origin.prepare(&placement).ok()?;
        let draft = match trying {
            DraftEffort::Once => prepared.draft_once(&placement, &self.space.ways[point.way].way),
            DraftEffort::Full => prepared.draft(&placement),
        };
        let draft = draft.ok()?;
        (self.advisor.watch)();
        let asked = Placement {
            engine: self.advisor.engine,
            ..placement.clone()
        };
        if draft.is_refused(&prepared, &asked) {
            return None;
        }
        Some(TrialResult {
            point: *point,
            us_per_token: per_token(draft.estimate()),
            changes,
            placement,
            prepared,
            draft,
        })
    }

    /// Returns the fastest draft that fits. Each point is first corrected to the mildest point that fits.
    fn first_that_fits(
        &self,
        class: Class,
        points: &[TimedPoint],
        allowed: &mut WorkLimit,
    ) -> Option<TrialResult> {
        let mut best: Option<TrialResult> = None;
        for (start, time) in points {
            // According to the bound, the remaining points are slower than the best draft.
            if allowed.drafts == 0 || best.as_ref().is_some_and(|b| b.us_per_token <= *time) {
                break;
            }
            let found = self.correct(class, start, allowed);
            let found = found.and_then(|f| self.with_caches_moved_back(f, allowed));
            let faster = |f: &TrialResult| {
                best.as_ref()
                    .is_none_or(|b| f.us_per_token < b.us_per_token)
            };
            if let Some(found) = found.filter(faster) {
                best = Some(found);
            }
        }
        best
    }

    /// Tries a draft with its caches back on the devices and a few more levels on the host. Returns it if it fits and
    /// is not slower. Only a draft can decide this, because the bound is too inexact.
    fn with_caches_moved_back(
        &self,
        found: TrialResult,
        allowed: &mut WorkLimit,
    ) -> Option<TrialResult> {
        if !found.point.chain.kv || self.space.base.kv_on_host {
            return Some(found);
        }
        let (point, time) = (found.point, found.us_per_token);
        let costs = self.costs[point.way];
        let known = &self.bound.known[point.way];
        let chain = Chain {
            kv: false,
            ..point.chain
        };
        let last = self.space.last_level(chain);
        for more in [1, MOVED] {
            if !allowed.take(2, costs.draft) {
                break;
            }
            let level = (point.level + more).min(last);
            let moved = Point {
                chain,
                level,
                ..point
            };
            let moved = self.draft(known, &moved, DraftEffort::Once);
            match moved.filter(|moved| moved.draft.fits()) {
                Some(moved) if moved.us_per_token <= time * FASTER => return Some(moved),
                Some(_) => break,
                None => {}
            }
        }
        Some(found)
    }

    /// Returns the mildest draft that fits, from the point `start`. Each draft corrects the bound for the next.
    fn correct(&self, class: Class, start: &Point, allowed: &mut WorkLimit) -> Option<TrialResult> {
        let costs = self.costs[start.way];
        let mut known = self.bound.known[start.way].clone();
        let mut best: Option<TrialResult> = None;
        let mut tried: BTreeSet<Point> = BTreeSet::new();
        let mut at = self.by_engine(&known, self.mildest(class, &known, start)?);
        let last = self.space.last_level(start.chain);
        let mut step = 1;
        while tried.insert(at) && allowed.take_draft(costs) {
            let Some(found) = self.draft(&known, &at, DraftEffort::Once) else {
                break;
            };
            let fits = found.draft.fits();
            known.learn(self.bound.compute, &at, found.draft.footprints());
            if fits && best.as_ref().is_none_or(|b| milder(&at, &b.point)) {
                best = Some(found);
            }
            let restart = Point {
                ctx_size: start.ctx_size.min(at.ctx_size),
                ..*start
            };
            let next = self.mildest(class, &known, &restart);
            let next = next.map(|next| self.by_engine(&known, next));
            at = match next {
                Some(next) if !tried.contains(&next) && (!fits || milder(&next, &at)) => next,
                // The bound may be too strict: try one level lower.
                _ if fits && at.level > self.space.first_level(at.chain) => Point {
                    level: at.level - 1,
                    ..at
                },
                _ if fits => break,
                // The bound is too optimistic: try a smaller context.
                _ if class.context && at.ctx_size > 2 * CELLS && step == 1 => Point {
                    ctx_size: (at.ctx_size - at.ctx_size / 16) / CELLS * CELLS,
                    ..at
                },
                _ if at.level < last => Point {
                    level: (at.level + step).min(last),
                    ..at
                },
                _ => break,
            };
            if !fits {
                step *= 2;
            }
            if best.is_some() && !fits {
                break;
            }
        }
        // A higher price of memory, or shifted shares, may keep more on the devices.
        let first = self.space.first_level(start.chain);
        let is_more = best.as_ref().is_some_and(|b| b.point.level > first);
        if is_more && self.may_shift(start.way) && allowed.has(FULL * costs.draft) {
            allowed.take(FULL, FULL * costs.draft);
            let at = Point {
                level: first,
                ..*start
            };
            let found = self.draft(&self.bound.known[start.way], &at, DraftEffort::Full);
            if let Some(found) = found.filter(|f| f.draft.fits()) {
                return Some(found);
            }
        }
        if best.is_some() || !self.may_shift(start.way) || !allowed.take(FULL, FULL * costs.draft) {
            return best;
        }
        let known = &self.bound.known[start.way];
        let at = self.mildest(class, known, start)?;
        let found = self.draft(known, &at, DraftEffort::Full)?;
        found.draft.fits().then_some(found)
    }

    fn may_shift(&self, way: usize) -> bool {
        use super::shares::Shares;
        let shared = &self.space.ways[way];
        let asked = self.space.base.tensor_split.is_some() && !self.space.implied_shares;
        shared.way.mode == SplitMode::Tensor && shared.shares == Shares::Asked && !asked
    }

    /// Replaces drafts on unequal devices by drafts at a lower level if shifted shares make room. Tries the fastest
    /// drafts first, until the work runs out.
    fn with_shares_shifted(&mut self, mut found: Vec<TrialResult>) -> Vec<TrialResult> {
        if !self.space.devices_differ() {
            return found;
        }
        found.sort_by(|a, b| a.us_per_token.total_cmp(&b.us_per_token));
        let shifts = |f: &TrialResult| {
            let level = self.space.first_level(f.point.chain);
            self.may_shift(f.point.way) && f.point.level > level
        };
        let (shifted, mut out): (Vec<TrialResult>, Vec<TrialResult>) =
            found.into_iter().partition(shifts);
        let mut taken = Vec::new();
        for f in shifted {
            let work = SHIFTED * FULL * self.costs[f.point.way].draft;
            let plans = usize::try_from(SHIFTED).unwrap_or(0);
            taken.push((self.effort.take(plans, work), f));
        }
        out.extend(in_parallel(taken, |(is_taken, f)| match is_taken {
            true => self.shift_shares(f),
            false => f,
        }));
        out
    }

    fn shift_shares(&self, mut best: TrialResult) -> TrialResult {
        let known = &self.bound.known[best.point.way];
        let (mut low, mut high) = (self.space.first_level(best.point.chain), best.point.level);
        for _ in 0..SHIFTED {
            if low >= high {
                break;
            }
            let level = (low + high) / 2;
            let point = Point {
                level,
                ..best.point
            };
            let found = self.draft(known, &point, DraftEffort::Full);
            match found.filter(|f| f.draft.fits()) {
                Some(fits) => {
                    high = level;
                    if fits.us_per_token < best.us_per_token {
                        best = fits;
                    }
                }
                None => low = level + 1,
            }
        }
        best
    }
}

const ROUND: usize = 2;
