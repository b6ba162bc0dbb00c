//! The search: points in the order of the bound, sketched, drafted, corrected, and at last proved.

use std::collections::BTreeSet;

use tpc_ir::{Device, Place};
use tpc_passes::footprint::Footprint;

use super::Advisor;
use super::bound::{Bound, Compute, Extremes, Known, Leaves, Load, Placed, Times};
use super::growth::{self, Growth};
use super::price::{Advice, Shortfall, per_token, price};
use super::space::{Chain, Class, Offload, Point, Space};
use crate::pipeline::{Compiled, Draft, Prepared, Sketch, in_parallel};
use crate::placement::{Placement, SplitMode};

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Work, in instructions times devices that are planned.
    pub steps: u64,
}

impl Default for Limits {
    /// About one second of one processor's time. What is found does not depend on the machine.
    fn default() -> Limits {
        Limits { steps: 2_500_000 }
    }
}

/// The steps of a draft beside those of a sketch.
const DRAFT: u64 = 3;
/// The drafts that a full effort takes: memory is priced higher, then shares are shifted.
const FULL: usize = 5;
/// Points of each class that are sketched.
const SKETCHED: usize = 3;
/// Drafts that correct the bound for one class.
const DRAFTED: usize = 6;
/// Drafts that every class has, whatever the limits are: one tells what the next has to be.
const LEAST_DRAFTED: usize = 3;
/// Drafts of a full effort that look for the least on the host.
const SHIFTED: usize = 4;
/// The drafts of the smallest configurations where nothing fits.
const SHORT: usize = 12;
/// Points that are named.
const NAMED: usize = 5;
/// The part by which a point may be slower than the fastest of its class if it gives up less.
const MILDER: f64 = 1.06;
/// The part by which a point has to be faster than one that gives up less.
const FASTER: f64 = 1.05;
/// The part of a point's context that another has to have at least to give up no more.
const AS_MUCH: f64 = 0.75;
/// Levels that are tried beyond that of a point with its caches on the host when they are moved back to the devices.
const MOVED: u64 = 4;
/// The step of contexts, in cells.
const CELLS: u64 = 256;

/// A search among the configurations of one model.
pub(super) struct Search<'a> {
    advisor: &'a Advisor<'a>,
    space: Space<'a>,
    bound: Bound,
    /// What the model stores, per pair of cache types.
    leaves: Vec<Leaves>,
    /// The steps of a sketch.
    step: u64,
    left: u64,
    tried: usize,
    complete: bool,
}

/// A point with its estimated time per token.
type Timed = (Point, f64);

/// How hard a draft tries to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// One plan, divided as its point says.
    Once,
    /// All that a plan for its placement tries.
    Full,
}

/// The drafts that a class may still have.
struct Allowed {
    /// Drafts of one plan.
    once: usize,
    /// Whether it may have one that tries all.
    full: bool,
}

/// A draft that fits, with its point.
struct Found {
    point: Point,
    placement: Placement,
    prepared: Prepared,
    draft: Draft,
    us_per_token: f64,
}

impl<'a> Search<'a> {
    /// A search beside a plan, with speeds at a part of the context where `filled` says so and nobody says a depth; `None` where
    /// the model cannot be planned at all.
    pub(super) fn new(
        advisor: &'a Advisor<'a>,
        base: &'a Placement,
        compiled: &'a Compiled,
        filled: bool,
    ) -> Option<Search<'a>> {
        let mut space = Space {
            filled: filled && base.depth == 0,
            base,
            cells: compiled.caches.n_ctx,
            n_block: compiled.model.summary.n_block(),
            has_experts: false,
            has_caches: false,
            ways: Space::ways(base),
            caches: Space::cache_types(base),
        };
        // A model whose rows are no multiples of a type's blocks has no such caches.
        let leaves = |types: [tpc_ir::DType; 2]| {
            let placement = Placement {
                cache_type_k: types[0],
                cache_type_v: types[1],
                ..base.clone()
            };
            let prepared = advisor.origin.prepare(&placement).ok()?;
            Some((types, Leaves::new(&prepared, base).ok()?))
        };
        let all = in_parallel(space.caches.clone(), leaves);
        let (types, leaves): (Vec<_>, Vec<Leaves>) = all.into_iter().flatten().unzip();
        space.caches = types;
        let first = leaves
            .first()
            .filter(|_| space.caches.first() == Some(&[base.cache_type_k, base.cache_type_v]))?;
        (space.has_experts, space.has_caches) = (first.has_experts(), first.has_caches());
        let devices = base.devices.len() as u64;
        let step = compiled.model.graph.insts().len() as u64 * devices.max(1);
        let mut out = Search {
            advisor,
            bound: Bound {
                compute: Compute::of(compiled, base),
                known: Vec::new(),
                extremes: Extremes {
                    none: Times::default(),
                    experts: None,
                    kv: None,
                    layers: None,
                },
            },
            space,
            leaves,
            step,
            left: advisor.limits.steps,
            tried: 0,
            complete: true,
        };
        out.learn()?;
        Some(out)
    }

    /// The point that was asked for, with nothing on the host that can be elsewhere, divided by a way.
    fn origin(&self, way: usize) -> Point {
        Point {
            way,
            chain: Chain {
                experts: self.space.has_experts,
                kv: self.space.base.kv_on_host,
                all: false,
            },
            level: 0,
            caches: 0,
            cells: self.space.cells,
            parallel: self.space.base.parallel,
            ubatch: self.space.base.ubatch_size,
        }
    }

    /// Sketches every way with nothing on the host, and one of them with all of each sort.
    fn learn(&mut self) -> Option<()> {
        let ways = self.space.ways.len();
        let whole = |way: usize| self.space.ways[way].way.stages.iter().all(|s| s.len() == 1);
        // Plans without split tensors are made fast.
        let plain = (0..ways).find(|&way| whole(way) && self.space.ways[way].shares.is_none())?;
        let mut points: Vec<Point> = (0..ways).map(|way| self.origin(way)).collect();
        let none = points[plain];
        let layers = self.space.n_block + 1;
        let before = if none.chain.experts {
            self.space.n_block
        } else {
            0
        };
        let kv = Chain {
            kv: true,
            ..none.chain
        };
        points.push(Point {
            level: before,
            ..none
        });
        points.push(Point { chain: kv, ..none });
        points.push(Point {
            level: before + layers,
            ..none
        });
        // Without these there is no search, whatever the limits are.
        self.left = self.left.max(points.len() as u64 * self.step);
        let sketches = self.sketches(&points);
        self.left = self.left.min(self.advisor.limits.steps);
        let devices = self.space.base.devices.len();
        let times = |i: usize| Some(Times::of(&sketches[i].as_ref()?.estimate));
        for (way, sketch) in sketches[..ways].iter().enumerate() {
            let known = Known::of(sketch.as_ref()?, &self.space.ways[way], devices);
            self.bound.known.push(known);
        }
        self.bound.extremes = Extremes {
            none: times(plain)?,
            experts: times(ways).filter(|_| self.space.has_experts),
            kv: times(ways + 1).filter(|_| self.space.has_caches),
            layers: times(ways + 2),
        };
        Some(())
    }

    /// The sketches of points, of as many as the limits allow.
    fn sketches(&mut self, points: &[Point]) -> Vec<Option<Sketch>> {
        let allowed = self.take(points.len(), self.step);
        let points: Vec<Option<Point>> = points
            .iter()
            .enumerate()
            .map(|(i, p)| (i < allowed).then_some(*p))
            .collect();
        in_parallel(points, |point| {
            let point = point?;
            let placement = self.space.placement(&point);
            let prepared = self.advisor.origin.prepare(&placement).ok()?;
            let sketch = prepared.sketch(&placement, &self.space.ways[point.way].way);
            (self.advisor.watch)();
            sketch.ok()
        })
    }

    /// How many of `n` plans of so many steps the limits allow, which are counted.
    fn take(&mut self, n: usize, steps: u64) -> usize {
        let most = self.left / steps.max(1);
        let allowed = n.min(usize::try_from(most).unwrap_or(usize::MAX));
        self.left -= allowed as u64 * steps;
        self.tried += allowed;
        self.complete &= allowed == n;
        allowed
    }

    /// Plans that were tried.
    pub(super) fn tried(&self) -> usize {
        self.tried
    }

    /// Whether no limit ended the search.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The fastest points of these classes, each planned and proved.
    pub(super) fn fastest(&mut self, classes: &[Class]) -> Vec<Advice> {
        let mut points: Vec<(Class, Vec<Timed>)> = Vec::new();
        for &class in classes {
            let best = self.candidates(class);
            // What the bound takes for no faster than a point that gives up less is not tried.
            let idle = points.iter().any(|(other, of)| {
                let times = of.first().zip(best.first());
                other.is_within(class)
                    && times.is_some_and(|(a, b)| a.1 <= b.1 * FASTER && has_as_much(&a.0, &b.0))
            });
            if !idle {
                points.push((class, best));
            }
        }
        let all: Vec<Point> = points
            .iter()
            .flat_map(|(_, of)| of.iter().map(|p| p.0))
            .collect();
        let mut sketches = self.sketches(&all).into_iter();
        for (_, of) in &mut points {
            for (_, time) in of.iter_mut() {
                if let Some(sketch) = sketches.next().flatten() {
                    *time = per_token(&sketch.estimate);
                }
            }
            of.sort_by(|a, b| a.1.total_cmp(&b.1));
        }
        let points: Vec<(Class, Vec<Timed>)> = points
            .into_iter()
            .filter(|(_, of)| !of.is_empty())
            .collect();
        // The same number for each, whichever comes first.
        let most = self.left / (self.step * DRAFT).max(1) / (points.len() as u64).max(1);
        let each = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .clamp(LEAST_DRAFTED, DRAFTED);
        let full = usize::try_from(most).is_ok_and(|most| most >= each + FULL);
        let found = in_parallel(points, |(class, of)| {
            let mut allowed = Allowed { once: each, full };
            let found = self.first_that_fits(class, &of, &mut allowed);
            (found, allowed)
        });
        let drafts = |allowed: &Allowed| {
            let full = usize::from(full && !allowed.full) * FULL;
            each - allowed.once + full
        };
        let drafts: usize = found.iter().map(|(_, allowed)| drafts(allowed)).sum();
        self.tried += drafts;
        self.left = self.left.saturating_sub(drafts as u64 * self.step * DRAFT);
        // Whoever has had all and found nothing might have found something with more.
        self.complete &= found
            .iter()
            .all(|(found, allowed)| found.is_some() || allowed.once > 0 && full);
        let found = found.into_iter().filter_map(|(found, _)| found).collect();
        let found = self.with_shares_shifted(found);
        self.name(found)
    }

    /// The points of a class that are fastest by the bound: of each way and chain one, the mildest of the fast ones.
    fn candidates(&self, class: Class) -> Vec<Timed> {
        let space = &self.space;
        let mut loads: Vec<(Point, Load)> = Vec::new();
        for caches in space.cache_levels(class) {
            for cells in space.contexts(class) {
                for parallel in space.sequences(class) {
                    for ubatch in space.batches() {
                        let point = Point {
                            caches,
                            cells,
                            parallel,
                            ubatch,
                            ..self.origin(0)
                        };
                        let load = self.leaves[caches].load(&point, space.base.devices.len());
                        loads.push((point, load));
                    }
                }
            }
        }
        let mut out: Vec<Timed> = Vec::new();
        for way in 0..space.ways.len() {
            for chain in space.chains() {
                let timed = |(point, load): &(Point, Load)| {
                    let point = Point {
                        way,
                        chain,
                        ..*point
                    };
                    let level = self.least_level(&self.bound.known[way], &point, load)?;
                    let point = Point { level, ..point };
                    Some((point, self.time(&point, load)))
                };
                let all: Vec<Timed> = loads.iter().filter_map(timed).collect();
                let least = all.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
                // The loads are in order: the more precise and the larger come first.
                out.extend(all.into_iter().find(|p| p.1 <= least * MILDER));
            }
        }
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        // A chain that begins otherwise and puts the same there is no other point.
        let mut seen = BTreeSet::new();
        out.retain(|(p, _)| {
            let Offload {
                experts,
                layers,
                kv,
            } = space.offload(p);
            seen.insert((p.way, experts, layers, kv))
        });
        out.truncate(SKETCHED);
        out
    }

    fn time(&self, point: &Point, load: &Load) -> f64 {
        let offload = self.space.offload(point);
        let asked = self.space.base.ubatch_size;
        self.bound.times(point, offload, load, asked).per_token()
    }

    fn placed<'b>(&'b self, known: &'b Known, point: &'b Point, load: &'b Load) -> Placed<'b> {
        Placed {
            known,
            shared: &self.space.ways[point.way],
            base: self.space.base,
            point,
            load,
            offload: self.space.offload(point),
        }
    }

    fn fits(&self, known: &Known, point: &Point, load: &Load) -> bool {
        self.bound.fits(&self.placed(known, point, load))
    }

    /// The least that has to go to the host by the bound; `None` where everything there does not help.
    fn least_level(&self, known: &Known, point: &Point, load: &Load) -> Option<u64> {
        let level = self.level_of_devices(known, point, load);
        self.fits(known, &Point { level, ..*point }, load)
            .then_some(level)
    }

    /// The least that has to go to the host for the devices to have room by the bound, whatever the host has; the last level
    /// where they never have.
    fn level_of_devices(&self, known: &Known, point: &Point, load: &Load) -> u64 {
        let last = self.space.last_level(point.chain);
        let (mut low, mut high) = (if point.chain.all { last } else { 0 }, last);
        while low < high {
            let middle = low + (high - low) / 2;
            let at = Point {
                level: middle,
                ..*point
            };
            if self.bound.fits_devices(&self.placed(known, &at, load)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The mildest point like this one that fits by what is known: the least on the host, then the largest context.
    fn mildest(&self, class: Class, known: &Known, point: &Point) -> Option<Point> {
        let devices = self.space.base.devices.len();
        let load = |p: &Point| self.leaves[p.caches].load(p, devices);
        let level = self.least_level(known, point, &load(point))?;
        let mut out = Point { level, ..*point };
        if class.context {
            let fits = |steps: u64| {
                let cells = (steps * CELLS).min(self.space.cells - 1);
                let larger = Point { cells, ..out };
                self.fits(known, &larger, &load(&larger))
            };
            let (mut low, mut high) = (out.cells / CELLS, (self.space.cells - 1) / CELLS);
            while low < high {
                let middle = high - (high - low) / 2;
                if fits(middle) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            out.cells = out.cells.max(low * CELLS);
        }
        Some(out)
    }

    /// A draft of a point, whether it fits or not.
    fn draft(&self, point: &Point, effort: Effort) -> Option<Found> {
        let placement = self.space.placement(point);
        let prepared = self.advisor.origin.prepare(&placement).ok()?;
        let draft = match effort {
            Effort::Once => prepared.draft_once(&placement, &self.space.ways[point.way].way),
            Effort::Full => prepared.draft(&placement),
        };
        let draft = draft.ok()?;
        (self.advisor.watch)();
        if draft.is_refused(&prepared, &placement) {
            return None;
        }
        Some(Found {
            point: *point,
            us_per_token: per_token(draft.estimate()),
            placement,
            prepared,
            draft,
        })
    }

    /// The draft of the first of these points that fits, corrected so that it is as mild as can be.
    fn first_that_fits(
        &self,
        class: Class,
        points: &[Timed],
        allowed: &mut Allowed,
    ) -> Option<Found> {
        let mut best: Option<Found> = None;
        for (start, time) in points {
            // By the bound, the rest is slower than what is found.
            if allowed.once == 0 || best.as_ref().is_some_and(|b| b.us_per_token <= *time) {
                break;
            }
            let found = self.corrected(class, start, allowed);
            let found = found.and_then(|f| self.with_caches_moved_back(f));
            let faster = |f: &Found| {
                best.as_ref()
                    .is_none_or(|b| f.us_per_token < b.us_per_token)
            };
            if let Some(found) = found.filter(faster) {
                best = Some(found);
            }
        }
        best
    }

    /// A draft whose caches are on the host, with its caches on the devices instead and a little more of the rest on the host,
    /// where that fits and is no slower. The bound is not exact enough to tell.
    fn with_caches_moved_back(&self, found: Found) -> Option<Found> {
        if !found.point.chain.kv || self.space.base.kv_on_host {
            return Some(found);
        }
        let (point, time) = (found.point, found.us_per_token);
        // Drafts are large: one at a time.
        drop(found);
        let chain = Chain {
            kv: false,
            ..point.chain
        };
        let last = self.space.last_level(chain);
        for more in [1, MOVED] {
            let level = (point.level + more).min(last);
            let moved = Point {
                chain,
                level,
                ..point
            };
            let moved = self.draft(&moved, Effort::Once);
            match moved.filter(|moved| moved.draft.fits()) {
                Some(moved) if moved.us_per_token <= time * FASTER => return Some(moved),
                Some(_) => break,
                None => {}
            }
        }
        self.draft(&point, Effort::Once)
    }

    /// The mildest draft like a point that fits: what one draft needs corrects the bound for the next.
    fn corrected(&self, class: Class, start: &Point, allowed: &mut Allowed) -> Option<Found> {
        let mut known = self.bound.known[start.way].clone();
        let mut best: Option<Found> = None;
        let mut tried: BTreeSet<Point> = BTreeSet::new();
        let mut at = self.mildest(class, &known, start)?;
        let last = self.space.last_level(start.chain);
        // Where the bound is wrong again and again, steps grow.
        let mut step = 1;
        while allowed.once > 0 && tried.insert(at) {
            allowed.once -= 1;
            let found = self.draft(&at, Effort::Once)?;
            let fits = found.draft.fits();
            known.learn(self.bound.compute, &at, found.draft.footprints());
            if fits && best.as_ref().is_none_or(|b| milder(&at, &b.point)) {
                best = Some(found);
            }
            let restart = Point {
                cells: start.cells.min(at.cells),
                ..*start
            };
            let next = self.mildest(class, &known, &restart);
            at = match next {
                Some(next) if !tried.contains(&next) && (!fits || milder(&next, &at)) => next,
                _ if fits => break,
                // The bound is wrong about this one: a little more than it says.
                _ if class.context && at.cells > 2 * CELLS && step == 1 => Point {
                    cells: (at.cells - at.cells / 16) / CELLS * CELLS,
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
        // Devices that differ may need shares that shift.
        best.or_else(|| {
            if !self.may_shift(start.way) || !std::mem::take(&mut allowed.full) {
                return None;
            }
            let at = self.mildest(class, &self.bound.known[start.way], start)?;
            let found = self.draft(&at, Effort::Full)?;
            found.draft.fits().then_some(found)
        })
    }

    /// Whether a plan of this way may shift the shares of the devices to fit.
    fn may_shift(&self, way: usize) -> bool {
        let shared = &self.space.ways[way];
        shared.way.mode == SplitMode::Tensor
            && shared.shares.is_none()
            && self.space.base.tensor_split.is_none()
    }

    /// The drafts with less on the host, where the devices differ and shares that shift make room for it; of as many as the
    /// limits allow, the fastest first.
    fn with_shares_shifted(&mut self, mut found: Vec<Found>) -> Vec<Found> {
        if !self.space.devices_differ() {
            return found;
        }
        found.sort_by(|a, b| a.us_per_token.total_cmp(&b.us_per_token));
        let shifts = |f: &Found| self.may_shift(f.point.way) && f.point.level > 0;
        let (shifted, mut out): (Vec<Found>, Vec<Found>) = found.into_iter().partition(shifts);
        let most = self.left / (self.step * DRAFT * (SHIFTED * FULL) as u64).max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let n = shifted.len().min(most);
        self.tried += n * SHIFTED;
        self.left -= (n * SHIFTED * FULL) as u64 * self.step * DRAFT;
        self.complete &= n == shifted.len();
        let shifted = (0..).zip(shifted).collect();
        out.extend(in_parallel(shifted, |(i, f)| match i < n {
            true => self.shifted(f),
            false => f,
        }));
        out
    }

    /// The draft with the least on the host between nothing and its own.
    fn shifted(&self, mut best: Found) -> Found {
        let (mut low, mut high) = (0, best.point.level);
        for _ in 0..SHIFTED {
            if low >= high {
                break;
            }
            let level = (low + high) / 2;
            let point = Point {
                level,
                ..best.point
            };
            let found = self.draft(&point, Effort::Full);
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

    /// The drafts worth naming, proved: none that is slower than one that gives up less.
    fn name(&self, mut found: Vec<Found>) -> Vec<Advice> {
        found.sort_by(|a, b| a.us_per_token.total_cmp(&b.us_per_token));
        let class = |f: &Found| self.space.class(&f.point);
        let worth = |f: &Found| {
            !found.iter().any(|other| {
                other.point != f.point
                    && class(other).is_within(class(f))
                    && class(other) != class(f)
                    && other.us_per_token <= f.us_per_token * FASTER
                    && has_as_much(&other.point, &f.point)
            })
        };
        let keep: Vec<bool> = found.iter().map(worth).collect();
        let mut kept: Vec<Found> = found
            .into_iter()
            .zip(keep)
            .filter_map(|(f, k)| k.then_some(f))
            .collect();
        let mut seen = BTreeSet::new();
        kept.retain(|f| seen.insert(f.point));
        kept.truncate(NAMED);
        let proved = in_parallel(kept, |f| self.proved(f));
        let mut out: Vec<Advice> = proved.into_iter().flatten().collect();
        out.sort_by(|a, b| a.us_per_token.total_cmp(&b.us_per_token));
        out
    }

    /// The advice of a draft; `None` where its plan is not proved.
    fn proved(&self, found: Found) -> Option<Advice> {
        if !found.draft.fits() {
            return None;
        }
        let changes = self.space.changes(&found.point);
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
        Some(Advice {
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
        })
    }

    /// What the smallest configurations lack: the least of them.
    pub(super) fn shortfall(&mut self) -> Option<Shortfall> {
        let space = &self.space;
        let smallest = |way: usize, level: u64, chain: Chain| Point {
            way,
            chain,
            level,
            caches: if space.has_caches {
                space.caches.len() - 1
            } else {
                0
            },
            cells: *space
                .contexts(Class {
                    context: true,
                    ..Class::default()
                })
                .last()
                .unwrap_or(&space.cells),
            parallel: 1,
            ubatch: *space.batches().last().unwrap_or(&space.base.ubatch_size),
        };
        let mut points = Vec::new();
        for chain in space.chains() {
            let last = space.last_level(chain);
            let point = smallest(0, 0, chain);
            let load = self.leaves[point.caches].load(&point, space.base.devices.len());
            // Between full devices and a full host.
            let full = self.level_of_devices(&self.bound.known[0], &point, &load);
            for level in [0, full, full + 1, last] {
                points.push(smallest(0, level.min(last), chain));
            }
        }
        points.dedup();
        points.truncate(SHORT);
        let found = in_parallel(points, |p| {
            let found = self.draft(&p, Effort::Once)?;
            let (place, bytes) = lacks(&found)?;
            let words = self
                .space
                .changes(&p)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>();
            Some(Shortfall {
                place,
                bytes,
                options: words.join(" "),
            })
        });
        found.into_iter().flatten().min_by_key(|s| s.bytes)
    }

    /// The number of devices of the same kind that suffice.
    pub(super) fn growth(&mut self) -> Option<Growth> {
        let complete = self.complete;
        let allowed = self.take(growth::DRAFTS, self.step * DRAFT).max(1);
        self.complete = complete;
        let base = self.space.base;
        let asked = self.origin(0);
        let load = self.leaves.first()?.load(&asked, base.devices.len());
        let all = self.space.n_block + 1;
        let (units, _) = load.divided(Offload {
            experts: base.host_experts.count(self.space.n_block),
            layers: base.n_gpu_layers.map_or(0, |kept| all.saturating_sub(kept)),
            kv: base.kv_on_host,
        });
        let taken = self.bound.compute.bytes(&asked);
        growth::growth(self.advisor, base, (&units, taken), allowed)
    }
}

/// Whether a point has about as much context as another.
fn has_as_much(a: &Point, b: &Point) -> bool {
    a.cells as f64 >= b.cells as f64 * AS_MUCH
}

/// Whether a point gives up less than another like it.
fn milder(a: &Point, b: &Point) -> bool {
    (a.level, std::cmp::Reverse(a.cells)) < (b.level, std::cmp::Reverse(b.cells))
}

/// The place that lacks most, and how much all of them lack.
fn lacks(found: &Found) -> Option<(String, u64)> {
    let topology = &found.placement.topology;
    let prints = found.draft.footprints();
    let lacks = |(place, print): (&Place, &Footprint)| {
        let (name, usable) = match place {
            Place::Device(d) => {
                let spec = found.placement.devices.get(d.index())?;
                (
                    spec.name.clone(),
                    topology.device(d.index()).usable_memory()?,
                )
            }
            Place::Host => ("host".to_owned(), topology.host.usable_memory()?),
            Place::Group(_) => return None,
        };
        let over = print.total().saturating_sub(usable as u64);
        (over > 0).then_some((over, name))
    };
    let all: Vec<(u64, String)> = prints.iter().filter_map(lacks).collect();
    let sum = all
        .iter()
        .fold(0_u64, |sum, (over, _)| sum.saturating_add(*over));
    let (_, name) = all.into_iter().max_by_key(|(over, _)| *over)?;
    Some((name, sum))
}
