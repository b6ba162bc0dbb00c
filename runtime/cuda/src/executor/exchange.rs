//! Plans the memory of values that devices exchange: operands of collectives.
//!
//! Another device may still read an operand when the owner's next kernels run. The planner of arenas reuses the memory
//! at once, so these kernels would wait. Each device therefore has two buffers outside the arenas, which its collectives
//! use in turn. A kernel that writes a buffer again follows the next collective, which follows all readers.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::program::{ArenaKind, Program, Step};
use tpc_ir::{Buffer, Launch, Op, Output, Place, Value};

use super::task::{MemoryKind, Task, TaskKernel};

/// One of the two buffers of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExchangeSlot {
    pub(super) device: usize,
    /// 0 or 1.
    pub(super) number: usize,
    /// The buffer of the arena that the values leave.
    pub(super) from: Buffer,
}

#[derive(Debug, Default)]
pub(super) struct ExchangePlan {
    slots: BTreeMap<Buffer, ExchangeSlot>,
}

/// The launches that access a buffer.
#[derive(Debug, Default)]
struct Users {
    launches: BTreeSet<Launch>,
    /// The devices that access it; `None` for the host.
    places: BTreeSet<Option<usize>>,
    /// The collectives that read it from other devices.
    remote: BTreeSet<Launch>,
}

impl ExchangePlan {
    pub(super) fn new(program: &Program, tasks: &[(Launch, Task)]) -> ExchangePlan {
        let mut out = ExchangePlan::default();
        let users = users(program, tasks);
        for phase in &program.phases {
            for queue in &phase.queues {
                let Place::Device(device) = queue.place else {
                    continue;
                };
                let positions = queue.steps.iter().enumerate();
                let positions: BTreeMap<Launch, usize> = positions
                    .filter_map(|(i, step)| match step {
                        Step::Launch(launch) => Some((*launch, i)),
                        Step::Wait { .. } => None,
                    })
                    .collect();
                out.add_queue(&users, &positions, device.index());
            }
        }
        out
    }

    /// Returns the buffer that a value uses instead of its arena.
    pub(super) fn slot(&self, program: &Program, value: Value) -> Option<ExchangeSlot> {
        self.slots.get(&program.home(value)?.buffer).copied()
    }

    /// Returns the size of a device's buffers in bytes.
    pub(super) fn bytes(&self, program: &Program, device: usize) -> u64 {
        let own = self.slots.values().filter(|slot| slot.device == device);
        let bytes = own.flat_map(|slot| program.buffer(slot.from).extents.iter());
        let most = bytes.map(|extent| extent.bytes).max().unwrap_or(0);
        most.next_multiple_of(256)
    }

    /// Assigns the buffers of a device to the operands of its collectives in turn.
    fn add_queue(
        &mut self,
        users: &BTreeMap<Buffer, Users>,
        positions: &BTreeMap<Launch, usize>,
        device: usize,
    ) {
        let mut spans: Vec<(usize, usize, Buffer)> = users
            .iter()
            .filter_map(|(buffer, users)| {
                let (first, last) = users.span(positions, device)?;
                Some((last, first, *buffer))
            })
            .collect();
        spans.sort_unstable();
        // The position of the last collective that reads each buffer.
        let mut used: [Option<usize>; 2] = [None; 2];
        let mut next = 0;
        for (last, first, from) in spans {
            let is_free = |number: usize| used[number].is_none_or(|last| last < first);
            let Some(number) = [next, 1 - next].into_iter().find(|n| is_free(*n)) else {
                continue;
            };
            used[number] = Some(last);
            next = 1 - number;
            let slot = ExchangeSlot {
                device,
                number,
                from,
            };
            self.slots.insert(from, slot);
        }
    }
}

impl Users {
    /// Returns the positions of the first launch and of the collective in the owner's queue. `None` if other devices
    /// access the buffer outside of its last launch.
    fn span(&self, positions: &BTreeMap<Launch, usize>, device: usize) -> Option<(usize, usize)> {
        let [collective] = self.remote.iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let all: Option<Vec<usize>> = self
            .launches
            .iter()
            .map(|launch| positions.get(launch).copied())
            .collect();
        let all = all?;
        let last = *all.iter().max()?;
        let is_own = self.places.contains(&Some(device));
        let is_last = positions.get(collective) == Some(&last);
        (is_own && is_last).then_some((*all.iter().min()?, last))
    }
}

/// Returns the users of buffers for intermediate values that devices exchange.
fn users(program: &Program, tasks: &[(Launch, Task)]) -> BTreeMap<Buffer, Users> {
    let mut out: BTreeMap<Buffer, Users> = BTreeMap::new();
    for (launch, task) in tasks {
        let several = program.launch(*launch).places.len() > 1;
        for kernel in &task.ops {
            for (value, is_own) in values(kernel) {
                let Some(home) = program.home(value) else {
                    continue;
                };
                let arena = program.arena(program.buffer(home.buffer).arena);
                let Place::Device(owner) = arena.place else {
                    continue;
                };
                if arena.kind != ArenaKind::Work {
                    continue;
                }
                let users = out.entry(home.buffer).or_default();
                users.launches.insert(*launch);
                let is_remote = task.place != Some(owner.index());
                match is_remote && several && is_own {
                    true => drop(users.remote.insert(*launch)),
                    false => drop(users.places.insert(task.place)),
                }
            }
        }
    }
    out.retain(|_, users| !users.remote.is_empty() && users.places.len() <= 1);
    for value in kept(program) {
        if let Some(home) = program.home(value) {
            out.remove(&home.buffer);
        }
    }
    out
}

/// Returns the values of a kernel, each with true if the kernel accesses the value in its own memory.
fn values(kernel: &TaskKernel) -> impl Iterator<Item = (Value, bool)> {
    let bindings = kernel.operands.iter().chain(&kernel.results);
    bindings.map(|b| (b.value, b.memory == MemoryKind::Own))
}

/// Returns the values that the host writes or reads.
fn kept(program: &Program) -> impl Iterator<Item = Value> {
    let outputs = program
        .graph
        .outputs
        .iter()
        .flat_map(|output| match output {
            Output::Named(_, value) => vec![*value],
            Output::State { state, value } => vec![*state, *value],
        });
    let values = program.graph.values().map(|(value, _)| value);
    let inputs = values.filter(|v| matches!(program.graph.def_op(*v), Op::Input(_)));
    outputs.chain(inputs)
}
