use super::clocks::BlockClocks;
use super::happens_before::HappensBefore;
use super::{Accessor, Origin, RaceDetector};

impl RaceDetector {
    /// Returns the node of an access; `None` for a pair of stamps.
    pub(super) fn node(&self, origin: Origin) -> Option<usize> {
        match origin {
            Origin::Thread { instance, .. }
            | Origin::Warp { instance, .. }
            | Origin::Block { instance, .. } => Some(self.instances[instance as usize].0),
            Origin::Node { node } => Some(node as usize),
            Origin::Pair { .. } => None,
        }
    }

    pub(super) fn is_ordered(&self, origin: Origin, actor: &Accessor<'_>) -> bool {
        if let Origin::Pair { first, second } = origin {
            let each = |stamp| {
                let origin = self.stamp(stamp).map(|s| self.origins[s.origin as usize]);
                origin.is_none_or(|origin| self.is_ordered(origin, actor))
            };
            return each(first) && each(second);
        }
        let node = self
            .node(origin)
            .expect("invariant: every origin except two stamps has a node");
        if node != actor.node && self.reach.starts_after(node, actor.node) {
            return true;
        }
        let Some((clocks, thread)) = &actor.thread else {
            return false;
        };
        if is_ordered_in_block(origin, clocks, *thread) {
            return true;
        }
        let acquired = clocks.threads[*thread].acquired.as_deref();
        acquired.is_some_and(|known| self.is_known(origin, node, known))
            || self.is_known(origin, node, &clocks.known)
    }

    /// True if the earlier access is in `known`, or ordered before one of its blocks or nodes.
    fn is_known(&self, origin: Origin, node: usize, known: &HappensBefore) -> bool {
        if known.nodes.iter().any(|&n| self.reach.ends_after(node, n)) {
            return true;
        }
        let mut others = known.blocks.keys().map(|&i| self.instances[i as usize].0);
        if others.any(|n| n != node && self.reach.starts_after(node, n)) {
            return true;
        }
        match origin {
            Origin::Thread {
                instance,
                epoch,
                thread,
                clock,
            } => known.blocks.get(&instance).is_some_and(|seen| {
                epoch < seen.epoch || seen.threads.get(&thread).is_some_and(|&c| c >= clock)
            }),
            Origin::Warp {
                instance, epoch, ..
            }
            | Origin::Block { instance, epoch } => {
                known.blocks.get(&instance).is_some_and(|s| epoch < s.epoch)
            }
            Origin::Node { .. } | Origin::Pair { .. } => false,
        }
    }

    /// Adds a reader to the stamp of a byte's readers; returns the combined stamp.
    pub(super) fn merge(&mut self, actor: &Accessor<'_>, then: u32, now: u32) -> u32 {
        let (Some(old), Some(new)) = (self.stamp(then), self.stamp(now)) else {
            return now;
        };
        let (a, b) = (
            self.origins[old.origin as usize],
            self.origins[new.origin as usize],
        );
        if then == now || self.includes(a, b) {
            return then;
        }
        if self.is_ordered(a, actor) {
            return now;
        }
        let atomic = old.atomic.min(new.atomic);
        let mut origin = self.join_origins(a, b, then, now);
        if let Origin::Pair { first, second } = a {
            // Keep each node in one half of the pair, and drop a half that is ordered.
            for (part, rest) in [(first, second), (second, first)] {
                if self
                    .stamp(part)
                    .is_none_or(|s| self.is_ordered(self.origins[s.origin as usize], actor))
                {
                    return self.merge(actor, rest, now);
                }
                if self.includes_node(part, actor.node) {
                    let second = self.merge(actor, part, now);
                    origin = Origin::Pair {
                        first: rest,
                        second,
                    };
                    break;
                }
            }
        }
        self.summary(origin, old.pc, atomic)
    }

    fn includes_node(&self, stamp: u32, node: usize) -> bool {
        match self.stamp(stamp).map(|s| self.origins[s.origin as usize]) {
            Some(Origin::Pair { first, second }) => {
                self.includes_node(first, node) || self.includes_node(second, node)
            }
            Some(origin) => self.node(origin) == Some(node),
            None => false,
        }
    }

    fn summary(&mut self, origin: Origin, pc: usize, atomic: u8) -> u32 {
        if let Some(&summary) = self.summaries.get(&(origin, atomic)) {
            return summary;
        }
        let number = self.new_origin(origin);
        let summary = self.new_stamp(number, pc, atomic);
        self.summaries.insert((origin, atomic), summary);
        summary
    }

    fn includes(&self, a: Origin, b: Origin) -> bool {
        match (a, b) {
            (
                Origin::Warp {
                    instance,
                    epoch,
                    warp,
                    clock,
                },
                Origin::Thread {
                    instance: i,
                    epoch: e,
                    thread,
                    clock: c,
                },
            ) => instance == i && epoch >= e && warp == thread / 32 && clock >= c,
            (
                Origin::Block { instance, epoch },
                Origin::Thread {
                    instance: i,
                    epoch: e,
                    ..
                },
            ) => instance == i && epoch >= e,
            (Origin::Node { node }, b) => self.node(b) == Some(node as usize),
            (Origin::Pair { first, second }, b) => [first, second].iter().any(|&s| {
                let origin = self.stamp(s).map(|s| self.origins[s.origin as usize]);
                origin.is_some_and(|origin| self.includes(origin, b))
            }),
            _ => a == b,
        }
    }

    fn join_origins(&self, a: Origin, b: Origin, then: u32, now: u32) -> Origin {
        let of = |origin: Origin| match origin {
            Origin::Thread {
                instance,
                epoch,
                thread,
                clock,
            } => Some((instance, epoch, Some((thread / 32, clock)))),
            Origin::Warp {
                instance,
                epoch,
                warp,
                clock,
            } => Some((instance, epoch, Some((warp, clock)))),
            Origin::Block { instance, epoch } => Some((instance, epoch, None)),
            Origin::Node { .. } | Origin::Pair { .. } => None,
        };
        match (of(a), of(b)) {
            (Some((i, e, w)), Some((j, f, v))) if i == j => match (w, v) {
                (Some((warp, c)), Some((other, d))) if warp == other => Origin::Warp {
                    instance: i,
                    epoch: e.max(f),
                    warp,
                    clock: c.max(d),
                },
                _ => Origin::Block {
                    instance: i,
                    epoch: e.max(f),
                },
            },
            _ => match (self.node(a), self.node(b)) {
                (Some(n), Some(m)) if n == m => Origin::Node { node: n as u32 },
                _ => Origin::Pair {
                    first: then,
                    second: now,
                },
            },
        }
    }
}

/// True if barriers or warp synchronisation order the earlier access before the current access of the thread.
fn is_ordered_in_block(origin: Origin, clocks: &BlockClocks, thread: usize) -> bool {
    let lanes = &clocks.lanes[thread / 32][thread % 32];
    match origin {
        Origin::Thread {
            instance,
            epoch,
            thread: then,
            clock,
        } if instance == clocks.instance => {
            let then = then as usize;
            let same_warp = then / 32 == thread / 32;
            then == thread || epoch < clocks.epoch || same_warp && lanes[then % 32] >= clock
        }
        Origin::Warp {
            instance,
            epoch,
            warp,
            clock,
        } if instance == clocks.instance => {
            let live = clocks.threads.len() - warp as usize * 32;
            let mut others = lanes.iter().take(live).enumerate();
            let own = warp as usize == thread / 32;
            epoch < clocks.epoch || own && others.all(|(l, &c)| l == thread % 32 || c >= clock)
        }
        Origin::Block { instance, epoch } => instance == clocks.instance && epoch < clocks.epoch,
        _ => false,
    }
}
