use super::happens_before::HappensBefore;
use super::{Accessor, BlockClocks, RaceDetector};
use crate::abi::kind;

impl RaceDetector {
    /// Records the accesses that an atomic publishes and acquires, but not the atomic's own access.
    pub(crate) fn atomic(&mut self, actor: &mut Accessor<'_>, address: usize, of: u32) {
        let device = actor.device;
        let Some((clocks, thread)) = &mut actor.thread else {
            return;
        };
        let (stores, loads) = (of & kind::STORE != 0, of & kind::LOAD != 0);
        let scope = 1 + u32::from(of & kind::SYSTEM != 0);
        if loads && let Some(flag) = self.flags.get(&address) {
            let both = scope.min(flag.scope);
            let reaches =
                flag.instance == clocks.instance || both > 1 || both == 1 && flag.device == device;
            match (reaches, of & kind::ACQUIRE != 0) {
                (true, true) => clocks.acquire(*thread, &flag.known),
                (true, false) => {
                    clocks.busy = true;
                    let pending = &mut clocks.threads[*thread].pending;
                    pending.get_or_insert_default().join(&flag.known);
                }
                (false, _) => {}
            }
        }
        if !stores {
            return;
        }
        let told = match of & kind::RELEASE != 0 {
            true => Some((clocks.snapshot(*thread), scope)),
            false => clocks.threads[*thread].fenced.as_deref().cloned(),
        };
        let flag = self.flags.entry(address).or_default();
        if !loads {
            // A plain store discards earlier releases to this flag; a read-modify-write keeps them.
            flag.known = HappensBefore::default();
        }
        if let Some((known, scope)) = told {
            flag.scope = match flag.known.is_empty() {
                true => scope,
                false => scope.min(flag.scope),
            };
            flag.known.join(&known);
            (flag.device, flag.instance) = (device, clocks.instance);
            clocks.threads[*thread].advance();
        }
    }

    /// Records a fence. Scopes: 0 block, 1 device, 2 system.
    pub(crate) fn fence(clocks: &mut BlockClocks, thread: usize, scope: u32) {
        if let Some(pending) = clocks.threads[thread].pending.take() {
            clocks.acquire(thread, &pending);
        }
        let known = clocks.snapshot(thread);
        clocks.threads[thread].fenced = Some(Box::new((known, scope)));
        clocks.threads[thread].advance();
    }

    pub(crate) fn wait_for_nodes(clocks: &mut BlockClocks, thread: usize, nodes: &[usize]) {
        let known = HappensBefore {
            nodes: nodes.iter().copied().collect(),
            ..HappensBefore::default()
        };
        clocks.acquire(thread, &known);
    }
}
