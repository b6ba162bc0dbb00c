//! Checks every access in the checked build: bounds, device, alignment, races.

use std::collections::BTreeSet;
use std::rc::Rc;

use tpc_cuda::{Endpoint, FaultKind, Side};

use super::abi::{ThreadHead, kind};
use super::block::Block;
use super::fault::{CodeLocation, UnresolvedFault};
use super::graph::{GraphNode, Task};
use super::memory::Memories;
use super::race::{Accessor, Conflict, RaceDetector, Reachability, ShadowCell};

pub(super) struct AccessChecker {
    pub(super) races: RaceDetector,
    pub(super) memories: *mut Memories,
    pub(super) granted: BTreeSet<(u32, u32)>,
}

/// An invalid access. For a race, the location is the other access.
pub(super) type Violation = Box<(FaultKind, String, Option<CodeLocation>)>;

#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) kind: u32,
    pub(super) pc: usize,
    /// 0 for a plain access; the scope of an atomic: 1 device, 2 system.
    pub(super) atomic: u8,
}

impl Access {
    fn writes(&self) -> bool {
        self.kind & kind::STORE != 0
    }

    fn verb(&self) -> &'static str {
        match self.writes() {
            true => "writes",
            false => "reads",
        }
    }
}

impl AccessChecker {
    pub(super) fn begin(&mut self, reach: &Rc<Reachability>) {
        if self.races.begin(reach) {
            // SAFETY: the driver's memories, which are not used elsewhere while a graph runs.
            unsafe { (*self.memories).clear_shadow() };
        }
    }

    pub(super) fn device_of(&self, node: usize, nodes: &[GraphNode]) -> u32 {
        match &nodes[node].task {
            Task::Kernel(launch) => launch.device.0,
            _ => 0,
        }
    }

    pub(super) fn thread(
        &mut self,
        block: &mut Block,
        head: &ThreadHead,
        nodes: &[GraphNode],
        access: &Access,
    ) -> Result<(), Violation> {
        let Task::Kernel(launch) = &nodes[block.node].task else {
            return Ok(());
        };
        let Access { address, bytes, .. } = *access;
        if access.kind & kind::UNALIGNED == 0 && address % bytes != 0 {
            let what = format!(
                "the thread {} {bytes} bytes at {address:#x}, not a multiple of {bytes}",
                access.verb()
            );
            return Err(Box::new((FaultKind::Misaligned, what, None)));
        }
        if launch.image.range.contains(&address) {
            let what = "the thread writes to a constant".to_owned();
            return match access.writes() {
                true => Err(Box::new((FaultKind::ReadOnly, what, None))),
                false => Ok(()),
            };
        }
        let mut clocks = block.clocks.take();
        let (node, device) = (block.node, launch.device.0);
        let cells = match block.is_shared(address) {
            true => block.shared_cells(address, bytes).map_err(|what| {
                let what = format!("the thread {} {what}", access.verb());
                Box::new((FaultKind::OutOfBounds, what, None))
            }),
            // SAFETY: as in `begin`.
            false => shadow_cells(
                unsafe { &mut *self.memories },
                &self.granted,
                device,
                access,
            ),
        };
        let result = cells.and_then(|cells| {
            let thread = clocks.as_deref_mut().map(|c| (c, head.linear as usize));
            let mut actor = Accessor {
                node,
                device,
                thread,
            };
            let how = (access.writes(), access.atomic, access.pc);
            let conflict = self.races.access(&mut actor, cells, how);
            conflict.map_err(|c| race_violation(&c, access, nodes))
        });
        block.clocks = clocks;
        result
    }

    pub(super) fn node(
        &mut self,
        node: usize,
        nodes: &[GraphNode],
        (at, bytes): (Endpoint, u64),
        of: u32,
    ) -> Result<(), UnresolvedFault> {
        let access = Access {
            address: at.address as usize,
            bytes: bytes as usize,
            kind: of,
            pc: 0,
            atomic: 0,
        };
        // SAFETY: as in `begin`.
        let found = unsafe { (*self.memories).cells(access.address, access.bytes) };
        let Some((_, cells)) = found else {
            return Ok(());
        };
        let mut actor = Accessor {
            node,
            device: 0,
            thread: None,
        };
        let how = (access.writes(), 0, 0);
        let conflict = self.races.access(&mut actor, cells, how);
        conflict.map_err(|c| {
            let (kind, what, other) = *race_violation(&c, &access, nodes);
            UnresolvedFault {
                kind,
                node,
                block: [0; 3],
                thread: [0; 3],
                at: CodeLocation::Named(nodes[node].label.clone()),
                other,
                what,
            }
        })
    }
}

fn race_violation(conflict: &Conflict, access: &Access, nodes: &[GraphNode]) -> Violation {
    let Conflict {
        node,
        pc,
        origin,
        wrote,
    } = conflict;
    let verb = match wrote {
        true => "wrote",
        false => "read",
    };
    let (kernel, at) = match &nodes[*node].task {
        Task::Kernel(k) => (format!("kernel {} ", k.name), " at {}"),
        _ => (String::new(), ""),
    };
    let comma = if origin.is_empty() { "" } else { ", " };
    let what = format!(
        "this access {} {} bytes at {:#x}, which {kernel}({}){comma}{origin} {verb}{at}; expected an edge, a barrier or a flag between them",
        access.verb(),
        access.bytes,
        access.address,
        nodes[*node].label,
    );
    let other = CodeLocation::Code {
        node: *node,
        pc: *pc,
    };
    Box::new((FaultKind::Race, what, Some(other)))
}

fn shadow_cells<'a>(
    memories: &'a mut Memories,
    granted: &BTreeSet<(u32, u32)>,
    device: u32,
    access: &Access,
) -> Result<&'a mut [ShadowCell], Violation> {
    let Access { address, bytes, .. } = *access;
    let verb = access.verb();
    let near = memories.find(address).map(|a| (a.side, a.start, a.bytes));
    match memories.holds(address, bytes) {
        Some(Side::Device(owner)) if owner.0 != device && !granted.contains(&(device, owner.0)) => {
            let what = format!(
                "cuda:{device} {verb} {bytes} bytes of {owner}, which was not granted to it"
            );
            Err(Box::new((FaultKind::WrongDevice, what, None)))
        }
        Some(_) => {
            if !access.writes() {
                memories.count_read(address, bytes);
            }
            let found = memories.cells(address, bytes);
            Ok(found.map_or(&mut [], |(_, cells)| cells))
        }
        None => {
            let what = match near {
                Some((side, start, size)) if address - start < size + (1 << 20) => format!(
                    "the thread {verb} {bytes} bytes at byte {} of an allocation of {size} bytes of {side}",
                    address - start
                ),
                _ => format!(
                    "the thread {verb} {bytes} bytes at {address:#x}, outside of all allocations"
                ),
            };
            Err(Box::new((FaultKind::OutOfBounds, what, None)))
        }
    }
}
