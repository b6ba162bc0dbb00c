//! Selects programmatic edges between launches.
//!
//! A programmatic edge lets the second kernel start before the first has ended. This is correct because of these rules:
//!
//! - Every kernel calls `wait_dependencies()` once, before its template begins. [`Instance`](crate::kernels::Instance)
//!   generates the call.
//! - Before the call, a kernel reads only views, which the host writes before the graph, and prefetches weights. The
//!   verifier refuses writes to weights.
//! - All other accesses follow the end of the previous kernel, which has waited too, so they follow all earlier kernels.
//! - All other edges are full: edges of copies and host ops, between devices, and of kernels with several predecessors.
//!
//! The emulator's checked build finds an access before the wait, and a kernel that never waits.

use super::options::Edges;
use crate::driver::{DeviceInfo, EdgeKind, GraphSpec};

const MIN_CAPABILITY: (u32, u32) = (9, 0);

#[derive(Debug, Default)]
pub(super) struct ProgrammaticEdges {
    /// For each device, true if kernels may start early.
    supported: Vec<bool>,
    node_devices: Vec<Option<usize>>,
}

impl ProgrammaticEdges {
    pub(super) fn new(infos: &[DeviceInfo], edges: Edges) -> ProgrammaticEdges {
        let supported =
            |info: &DeviceInfo| edges == Edges::Programmatic && info.capability >= MIN_CAPABILITY;
        ProgrammaticEdges {
            supported: infos.iter().map(supported).collect(),
            node_devices: Vec::new(),
        }
    }

    /// Handles the kernel that is the last node of the graph and follows the nodes in `after`. The edge is programmatic
    /// if the only predecessor is a kernel of the same device.
    pub(super) fn kernel(&mut self, device: usize, after: &[usize], spec: &mut GraphSpec) {
        let node = spec.nodes.len() - 1;
        // The first node must not refer to an earlier graph.
        self.node_devices.truncate(node);
        self.node_devices.resize(node, None);
        self.node_devices.push(Some(device));
        let supported = self.supported.get(device).copied().unwrap_or(false);
        if let ([before], true) = (after, supported)
            && self.node_devices[*before] == Some(device)
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
