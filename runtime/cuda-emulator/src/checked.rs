//! Looks at every access of the checked build: bounds, device, alignment, order.

use std::collections::BTreeSet;
use std::rc::Rc;

use tpc_cuda::{Endpoint, FaultKind, Side};

use super::abi::{ThreadHead, kind};
use super::block::Block;
use super::checks::{Actor, Cell, Checks, Conflict, Reach};
use super::engine::{Engine, Prepared, Task};
use super::fault::{RawFault, Where};
use super::memory::Memories;

/// What the checks of an engine need.
pub(super) struct Watch {
    pub(super) checks: Checks,
    pub(super) memories: *mut Memories,
    pub(super) granted: BTreeSet<(u32, u32)>,
}

/// What is wrong with an access.
type Wrong = Box<(FaultKind, String, Option<Where>)>;

/// An access to bytes.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) kind: u32,
    pub(super) pc: usize,
    /// 0 for a plain access; for an atomic one 1 for the device, 2 for the system.
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

impl Watch {
    /// Starts a graph.
    pub(super) fn begin(&mut self, reach: &Rc<Reach>) {
        if self.checks.begin(reach) {
            // SAFETY: the driver's memories, which nothing else uses while a graph runs.
            unsafe { (*self.memories).forget() };
        }
    }

    /// The device on which a node runs.
    pub(super) fn device_of(&self, node: usize, nodes: &[Prepared]) -> u32 {
        match &nodes[node].task {
            Task::Kernel(launch) => launch.device.0,
            _ => 0,
        }
    }

    /// Looks at an access of a thread.
    pub(super) fn thread(
        &mut self,
        block: &mut Block,
        head: &ThreadHead,
        nodes: &[Prepared],
        access: &Access,
    ) -> Result<(), Wrong> {
        let Task::Kernel(launch) = &nodes[block.node].task else {
            return Ok(());
        };
        let Access { address, bytes, .. } = *access;
        if access.kind & kind::UNALIGNED == 0 && address % bytes != 0 {
            let what = format!(
                "it {} {bytes} bytes at {address:#x}, which is no multiple of {bytes}",
                access.verb()
            );
            return Err(Box::new((FaultKind::Misaligned, what, None)));
        }
        if launch.image.range.contains(&address) {
            let what = "it writes to a constant".to_owned();
            return match access.writes() {
                true => Err(Box::new((FaultKind::ReadOnly, what, None))),
                false => Ok(()),
            };
        }
        let mut clocks = block.clocks.take();
        let (node, device) = (block.node, launch.device.0);
        let cells = match block.is_shared(address) {
            true => block.shared_cells(address, bytes).map_err(|what| {
                let what = format!("it {} {what}", access.verb());
                Box::new((FaultKind::OutOfBounds, what, None))
            }),
            // SAFETY: as in `begin`.
            false => cells(
                unsafe { &mut *self.memories },
                &self.granted,
                device,
                access,
            ),
        };
        let result = cells.and_then(|cells| {
            let thread = clocks.as_deref_mut().map(|c| (c, head.linear as usize));
            let mut actor = Actor {
                node,
                device,
                thread,
            };
            let how = (access.writes(), access.atomic, access.pc);
            let conflict = self.checks.access(&mut actor, cells, how);
            conflict.map_err(|c| race(&c, access, nodes))
        });
        block.clocks = clocks;
        result
    }

    /// Looks at a copy's or a fill's access.
    pub(super) fn node(
        &mut self,
        node: usize,
        nodes: &[Prepared],
        (at, bytes): (Endpoint, u64),
        of: u32,
    ) -> Result<(), RawFault> {
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
        let mut actor = Actor {
            node,
            device: 0,
            thread: None,
        };
        let how = (access.writes(), 0, 0);
        let conflict = self.checks.access(&mut actor, cells, how);
        conflict.map_err(|c| {
            let (kind, what, other) = *race(&c, &access, nodes);
            RawFault {
                kind,
                node,
                block: [0; 3],
                thread: [0; 3],
                at: Where::Named(nodes[node].label.clone()),
                other,
                what,
            }
        })
    }
}

fn race(conflict: &Conflict, access: &Access, nodes: &[Prepared]) -> Wrong {
    let Conflict {
        node,
        pc,
        who,
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
    let comma = if who.is_empty() { "" } else { ", " };
    let what = format!(
        "it {} {} bytes at {:#x}, which {kernel}({}){comma}{who} {verb}{at}; expected an edge, a barrier or a flag between them",
        access.verb(),
        access.bytes,
        access.address,
        nodes[*node].label,
    );
    let other = Where::Code {
        node: *node,
        pc: *pc,
    };
    Box::new((FaultKind::Race, what, Some(other)))
}

/// What is known of bytes in memory that a device may access.
fn cells<'a>(
    memories: &'a mut Memories,
    granted: &BTreeSet<(u32, u32)>,
    device: u32,
    access: &Access,
) -> Result<&'a mut [Cell], Wrong> {
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
                memories.count(address, bytes);
            }
            let found = memories.cells(address, bytes);
            Ok(found.map_or(&mut [], |(_, cells)| cells))
        }
        None => {
            let what = match near {
                Some((side, start, size)) if address - start < size + (1 << 20) => format!(
                    "it {verb} {bytes} bytes at byte {} of an allocation of {size} bytes of {side}",
                    address - start
                ),
                _ => format!("it {verb} {bytes} bytes at {address:#x}, where nothing is allocated"),
            };
            Err(Box::new((FaultKind::OutOfBounds, what, None)))
        }
    }
}

impl Engine {
    /// Looks at an access of the thread that runs.
    pub(super) fn look(
        &mut self,
        block: &mut Block,
        head: &ThreadHead,
        access: &Access,
    ) -> Result<(), Wrong> {
        // SAFETY: as in `node`.
        let nodes = unsafe { &*self.graph };
        match &mut self.watch {
            Some(watch) => watch.thread(block, head, nodes, access),
            None => Ok(()),
        }
    }
}
