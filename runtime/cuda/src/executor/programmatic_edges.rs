//! Which edges between launches are programmatic, and why nothing is lost by it.
//!
//! The second of two kernels that such an edge joins may start before the first has ended. What makes that right:
//!
//! - every kernel calls `wait_dependencies()` once, before its template begins: [`Instance`](crate::kernels::Instance) writes that
//!   call, so no kernel is without it;
//! - what stands before the call touches views, which the host has written before the graph, and asks for weights, which no launch
//!   writes: the verifier refuses a program in which one does;
//! - so all that a kernel reads or writes comes after the end of the kernel before it, and, as that has waited in its turn, after the
//!   end of all before that;
//! - all other edges are full: those of copies and of the host's ops, between devices, and of a kernel that comes after several nodes.
//!
//! The checked build finds an access before the wait, and a kernel that never waits.

use super::options::Edges;
use crate::driver::{DeviceInfo, EdgeKind, GraphSpec};

/// The first compute capability of devices that know programmatic edges.
const KNOWN: (u32, u32) = (9, 0);

/// Finds the edges of a graph that are programmatic.
#[derive(Debug, Default)]
pub(super) struct ProgrammaticEdges {
    /// Per device, whether its kernels may start early.
    able: Vec<bool>,
    /// Per node, the device of its kernel.
    on: Vec<Option<usize>>,
}

impl ProgrammaticEdges {
    /// For devices of a program.
    pub(super) fn new(infos: &[DeviceInfo], edges: Edges) -> ProgrammaticEdges {
        let able = |info: &DeviceInfo| edges == Edges::Programmatic && info.capability >= KNOWN;
        ProgrammaticEdges {
            able: infos.iter().map(able).collect(),
            on: Vec::new(),
        }
    }

    /// Looks at the last node of a graph, the kernel of a device that comes after these: the edge from the only one before it is
    /// programmatic, where that is a kernel of the device.
    pub(super) fn kernel(&mut self, device: usize, after: &[usize], spec: &mut GraphSpec) {
        let node = spec.nodes.len() - 1;
        // The first node of a graph comes after nothing of an older one.
        self.on.truncate(node);
        self.on.resize(node, None);
        self.on.push(Some(device));
        let able = self.able.get(device).copied().unwrap_or(false);
        if let ([before], true) = (after, able)
            && self.on[*before] == Some(device)
            && let Some(edge) = spec.edges.last_mut()
        {
            edge.kind = EdgeKind::Programmatic;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Work;

    fn info(capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: String::new(),
            card: 0,
            capability,
            multiprocessors: 1,
            memory: 0,
            shared_per_block: 0,
        }
    }

    /// The kinds of the edges of kernels on two devices, a node of the host among them.
    fn kinds(capability: (u32, u32), edges: Edges) -> Vec<EdgeKind> {
        let mut found = ProgrammaticEdges::new(&[info(capability), info(capability)], edges);
        let mut spec = GraphSpec::default();
        let mut push = |device: Option<usize>, after: &[usize]| {
            let node = spec.push("node", Work::Join, after);
            if let Some(device) = device {
                found.kernel(device, after, &mut spec);
            }
            node
        };
        let first = push(Some(0), &[]);
        let second = push(Some(0), &[first]);
        let other = push(Some(1), &[second]);
        let host = push(None, &[other]);
        let behind = push(Some(1), &[host]);
        push(Some(1), &[behind, other]);
        spec.edges.iter().map(|e| e.kind).collect()
    }

    #[test]
    fn edges_within_a_device_are_programmatic() {
        use EdgeKind::{Full, Programmatic};
        let found = kinds((9, 0), Edges::Programmatic);
        assert_eq!(found, [Programmatic, Full, Full, Full, Full, Full]);
        assert_eq!(kinds((9, 0), Edges::Full), [Full; 6]);
        assert_eq!(kinds((8, 9), Edges::Programmatic), [Full; 6]);
    }
}
