//! Puts the memory of pinned devices next to their cores.
//!
//! Linux places a page on the NUMA node of the thread that writes it first. Kernels write work buffers and states on
//! their device's threads. Weights are packed by all threads, so the device's threads touch their pages before.
#![allow(unsafe_code)]

use tpc_ir::Place;
use tpc_ir::program::{ArenaKind, Program};
use tpc_runtime::ExecError;

use super::memory::Region;
use crate::team::Team;

/// Bytes of the smallest page.
const PAGE: usize = 4 << 10;
/// Bytes that one thread touches at a time: a huge page.
const CHUNK: usize = 2 << 20;

/// The arenas of pinned devices.
#[derive(Debug)]
pub(super) struct Local {
    /// Content and thread group of each arena; no group if the device is not pinned.
    arenas: Vec<(ArenaKind, Option<usize>)>,
    /// True once all pages of the states are placed.
    states: bool,
}

impl Local {
    /// Finds the arenas of pinned devices. `cores` are the cores of each group.
    pub(super) fn new(program: &Program, groups: &[Place], cores: &[&[usize]]) -> Local {
        let group = |place: Place| {
            let found = groups.iter().position(|g| *g == place);
            found.filter(|&g| !cores[g].is_empty())
        };
        let arenas = program.arenas.iter();
        let arenas: Vec<_> = arenas.map(|a| (a.kind, group(a.place))).collect();
        Local {
            states: arenas.iter().all(|(_, group)| group.is_none()),
            arenas,
        }
    }

    /// Places the pages of weights. The arenas are unwritten.
    ///
    /// # Errors
    /// Returns an error if a worker fails.
    pub(super) fn place_weights(
        &self,
        arenas: &[Region],
        team: &mut Team,
    ) -> Result<(), ExecError> {
        self.touch(ArenaKind::Weights, arenas, team)
    }

    /// Places the pages of states before another thread writes them. Keeps their content.
    ///
    /// # Errors
    /// Returns an error if a worker fails.
    pub(super) fn place_states(
        &mut self,
        arenas: &[Region],
        team: &mut Team,
    ) -> Result<(), ExecError> {
        if !self.states {
            self.touch(ArenaKind::States, arenas, team)?;
            self.states = true;
        }
        Ok(())
    }

    /// Writes to every page of an arena on its group's threads.
    fn touch(&self, kind: ArenaKind, arenas: &[Region], team: &mut Team) -> Result<(), ExecError> {
        let own = |device: usize| {
            let all = arenas.iter().zip(&self.arenas);
            all.filter(move |(_, a)| **a == (kind, Some(device)))
        };
        if self.arenas.iter().all(|a| a.0 != kind || a.1.is_none()) {
            return Ok(());
        }
        let done = team.run(|worker| {
            for (arena, _) in own(worker.device()) {
                let len = arena.len();
                for chunk in worker.share(len.div_ceil(CHUNK)) {
                    let bytes = chunk * CHUNK..len.min((chunk + 1) * CHUNK);
                    for at in bytes.step_by(PAGE) {
                        // SAFETY: the byte is inside the arena. No kernel runs, and each chunk has one worker.
                        unsafe {
                            let byte = arena.ptr().add(at);
                            // Reading first would take a second page fault, and new pages are zero.
                            let old = match kind {
                                ArenaKind::Weights => 0,
                                _ => byte.read_volatile(),
                            };
                            byte.write_volatile(old);
                        }
                    }
                }
            }
            Ok(())
        });
        done.map_err(super::io::error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placed_pages_keep_their_bytes() {
        let bytes = (2 * CHUNK + PAGE + 1) as u64;
        let arenas = || -> Vec<Region> {
            let all = (0..3).map(|_| Region::new(bytes));
            all.collect::<Result<_, _>>().expect("memory")
        };
        let mut team = Team::of_devices(&[2, 1]).expect("threads");
        let mut weights = arenas();
        let own = |kind| vec![(kind, Some(0)), (kind, Some(1)), (kind, None)];
        let local = Local {
            arenas: own(ArenaKind::Weights),
            states: true,
        };
        local.place_weights(&weights, &mut team).expect("touched");
        for arena in &mut weights {
            let len = arena.len();
            let found = arena.range(0, len).expect("all bytes");
            assert!(found.iter().all(|byte| *byte == 0));
        }
        let mut states = arenas();
        for arena in &mut states {
            let len = arena.len();
            arena.range(0, len).expect("all bytes").fill(7);
        }
        let mut local = Local {
            arenas: own(ArenaKind::States),
            states: false,
        };
        local.place_states(&states, &mut team).expect("touched");
        assert!(local.states, "the next call does nothing");
        for arena in &states {
            let found = arena.bytes(0, arena.len()).expect("all bytes");
            assert!(found.iter().all(|byte| *byte == 7));
        }
    }
}
