//! Which accesses come before which.

use super::clocks::BlockClocks;
use super::known::Known;
use super::{Actor, Checks, Who};

impl Checks {
    /// The node of an access; `None` for several.
    pub(super) fn node(&self, who: Who) -> Option<usize> {
        match who {
            Who::Thread { instance, .. }
            | Who::Warp { instance, .. }
            | Who::Block { instance, .. } => Some(self.instances[instance as usize].0),
            Who::Node { node } => Some(node as usize),
            Who::Both { .. } => None,
        }
    }

    /// Whether what was done comes before what is done now.
    pub(super) fn before(&self, who: Who, actor: &Actor<'_>) -> bool {
        if let Who::Both { first, second } = who {
            let each = |stamp| {
                let who = self.stamp(stamp).map(|s| self.whos[s.who as usize]);
                who.is_none_or(|who| self.before(who, actor))
            };
            return each(first) && each(second);
        }
        let node = self
            .node(who)
            .expect("invariant: one node but for two stamps");
        if node != actor.node && self.reach.starts_after(node, actor.node) {
            return true;
        }
        let Some((clocks, thread)) = &actor.thread else {
            return false;
        };
        if inside(who, clocks, *thread) {
            return true;
        }
        let learnt = clocks.threads[*thread].learnt.as_deref();
        learnt.is_some_and(|known| self.known(who, node, known))
            || self.known(who, node, &clocks.known)
    }

    /// Whether what was done is known, or comes before something that is.
    fn known(&self, who: Who, node: usize, known: &Known) -> bool {
        if known.nodes.iter().any(|&n| self.reach.ends_after(node, n)) {
            return true;
        }
        let mut others = known.blocks.keys().map(|&i| self.instances[i as usize].0);
        if others.any(|n| n != node && self.reach.starts_after(node, n)) {
            return true;
        }
        match who {
            Who::Thread {
                instance,
                epoch,
                thread,
                clock,
            } => known.blocks.get(&instance).is_some_and(|seen| {
                epoch < seen.epoch || seen.threads.get(&thread).is_some_and(|&c| c >= clock)
            }),
            Who::Warp {
                instance, epoch, ..
            }
            | Who::Block { instance, epoch } => {
                known.blocks.get(&instance).is_some_and(|s| epoch < s.epoch)
            }
            Who::Node { .. } | Who::Both { .. } => false,
        }
    }

    /// The readers of a byte with one more.
    pub(super) fn merge(&mut self, actor: &Actor<'_>, then: u32, now: u32) -> u32 {
        let (Some(old), Some(new)) = (self.stamp(then), self.stamp(now)) else {
            return now;
        };
        let (a, b) = (self.whos[old.who as usize], self.whos[new.who as usize]);
        if then == now || self.includes(a, b) {
            return then;
        }
        if self.before(a, actor) {
            return now;
        }
        let atomic = old.atomic.min(new.atomic);
        let mut who = self.both(a, b, then, now);
        if let Who::Both { first, second } = a {
            // A node is in it once, and what is known to have ended is not.
            for (part, rest) in [(first, second), (second, first)] {
                if self
                    .stamp(part)
                    .is_none_or(|s| self.before(self.whos[s.who as usize], actor))
                {
                    return self.merge(actor, rest, now);
                }
                if self.has(part, actor.node) {
                    let second = self.merge(actor, part, now);
                    who = Who::Both {
                        first: rest,
                        second,
                    };
                    break;
                }
            }
        }
        self.summary(who, old.pc, atomic)
    }

    /// Whether a stamp says what a node did.
    fn has(&self, stamp: u32, node: usize) -> bool {
        match self.stamp(stamp).map(|s| self.whos[s.who as usize]) {
            Some(Who::Both { first, second }) => self.has(first, node) || self.has(second, node),
            Some(who) => self.node(who) == Some(node),
            None => false,
        }
    }

    /// The stamp of several accesses.
    fn summary(&mut self, who: Who, pc: usize, atomic: u8) -> u32 {
        if let Some(&summary) = self.summaries.get(&(who, atomic)) {
            return summary;
        }
        let number = self.new_who(who);
        let summary = self.new_stamp(number, pc, atomic);
        self.summaries.insert((who, atomic), summary);
        summary
    }

    /// Whether the first says already what the second does.
    fn includes(&self, a: Who, b: Who) -> bool {
        match (a, b) {
            (
                Who::Warp {
                    instance,
                    epoch,
                    warp,
                    clock,
                },
                Who::Thread {
                    instance: i,
                    epoch: e,
                    thread,
                    clock: c,
                },
            ) => instance == i && epoch >= e && warp == thread / 32 && clock >= c,
            (
                Who::Block { instance, epoch },
                Who::Thread {
                    instance: i,
                    epoch: e,
                    ..
                },
            ) => instance == i && epoch >= e,
            (Who::Node { node }, b) => self.node(b) == Some(node as usize),
            (Who::Both { first, second }, b) => [first, second].iter().any(|&s| {
                let who = self.stamp(s).map(|s| self.whos[s.who as usize]);
                who.is_some_and(|who| self.includes(who, b))
            }),
            _ => a == b,
        }
    }

    /// The least that says both.
    fn both(&self, a: Who, b: Who, then: u32, now: u32) -> Who {
        let of = |who: Who| match who {
            Who::Thread {
                instance,
                epoch,
                thread,
                clock,
            } => Some((instance, epoch, Some((thread / 32, clock)))),
            Who::Warp {
                instance,
                epoch,
                warp,
                clock,
            } => Some((instance, epoch, Some((warp, clock)))),
            Who::Block { instance, epoch } => Some((instance, epoch, None)),
            Who::Node { .. } | Who::Both { .. } => None,
        };
        match (of(a), of(b)) {
            (Some((i, e, w)), Some((j, f, v))) if i == j => match (w, v) {
                (Some((warp, c)), Some((other, d))) if warp == other => Who::Warp {
                    instance: i,
                    epoch: e.max(f),
                    warp,
                    clock: c.max(d),
                },
                _ => Who::Block {
                    instance: i,
                    epoch: e.max(f),
                },
            },
            _ => match (self.node(a), self.node(b)) {
                (Some(n), Some(m)) if n == m => Who::Node { node: n as u32 },
                _ => Who::Both {
                    first: then,
                    second: now,
                },
            },
        }
    }
}

/// Whether the block itself orders what was done before what its thread does now.
fn inside(who: Who, clocks: &BlockClocks, thread: usize) -> bool {
    let lanes = &clocks.lanes[thread / 32][thread % 32];
    match who {
        Who::Thread {
            instance,
            epoch,
            thread: then,
            clock,
        } if instance == clocks.instance => {
            let then = then as usize;
            let same_warp = then / 32 == thread / 32;
            then == thread || epoch < clocks.epoch || same_warp && lanes[then % 32] >= clock
        }
        Who::Warp {
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
        Who::Block { instance, epoch } => instance == clocks.instance && epoch < clocks.epoch,
        _ => false,
    }
}
