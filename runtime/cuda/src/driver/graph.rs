//! Graphs: what runs, and the order.

use std::fmt;

use super::{Device, DriverError, Function, HostError};

/// Whose memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A device's.
    Device(Device),
    /// The host's, from [`Driver::allocate_host`](super::Driver::allocate_host).
    Host,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Side::Device(device) => device.fmt(f),
            Side::Host => f.write_str("the host"),
        }
    }
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whose memory it is.
    pub side: Side,
    /// The address.
    pub address: u64,
}

/// The arguments of a kernel, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    bytes: Vec<u8>,
    ranges: Vec<(usize, usize)>,
}

impl Args {
    /// No arguments yet.
    pub fn new() -> Args {
        Args::default()
    }

    /// Adds an argument that is given as its bytes: a structure, say.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Args {
        // Every argument is aligned to 16 bytes, the most that a parameter of a kernel asks for.
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.ranges.push((self.bytes.len(), bytes.len()));
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Adds an address, or a number of 64 bits.
    #[must_use]
    pub fn u64(self, value: u64) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Adds a number of 32 bits.
    #[must_use]
    pub fn u32(self, value: u32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Adds a number of 32 bits that may be negative.
    #[must_use]
    pub fn i32(self, value: i32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Adds a real of 32 bits.
    #[must_use]
    pub fn f32(self, value: f32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The bytes of each argument.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|&(at, n)| &self.bytes[at..at + n])
    }
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelNode {
    /// The kernel, which also says on which device it runs.
    pub function: Function,
    /// The blocks in each direction.
    pub grid: [u32; 3],
    /// The threads of a block in each direction.
    pub block: [u32; 3],
    /// The bytes of shared memory per block beyond those that the kernel declares.
    pub shared_bytes: u32,
    /// The arguments.
    pub args: Args,
}

/// A copy of bytes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNode {
    /// The source.
    pub from: Endpoint,
    /// The destination, which does not overlap the source.
    pub to: Endpoint,
    /// The number of bytes.
    pub bytes: u64,
}

/// A byte written again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetNode {
    /// A device's memory.
    pub to: Endpoint,
    /// The value.
    pub value: u8,
    /// The number of bytes.
    pub bytes: u64,
}

/// Work of the host. It must not call the driver.
pub type HostWork = Box<dyn FnMut() -> Result<(), HostError> + Send>;

/// The work of a node.
pub enum Work {
    /// Runs a kernel.
    Kernel(KernelNode),
    /// Copies bytes.
    Copy(CopyNode),
    /// Fills memory.
    Set(SetNode),
    /// Runs a function of the host.
    Host(HostWork),
    /// Nothing: it joins edges.
    Join,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Kernel(kernel) => kernel.fmt(f),
            Work::Copy(copy) => copy.fmt(f),
            Work::Set(set) => set.fmt(f),
            Work::Host(_) => f.write_str("Host"),
            Work::Join => f.write_str("Join"),
        }
    }
}

/// A node of a graph.
#[derive(Debug)]
pub struct Node {
    /// The name of its launch in diagnostics.
    pub label: String,
    /// Its work.
    pub work: Work,
}

/// The order that an edge makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeKind {
    /// The second node starts when the first has ended.
    #[default]
    Full,
    /// Both are kernels of one device. The second may start when all blocks of the first have called `launch_dependents()` or
    /// ended; what it does after `wait_dependencies()` comes after the end of the first.
    Programmatic,
}

/// An edge between nodes, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that comes first.
    pub from: usize,
    /// The node that comes later.
    pub to: usize,
    /// Its order.
    pub kind: EdgeKind,
}

/// A graph: nodes, and the edges that order them.
#[derive(Debug, Default)]
pub struct GraphSpec {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges, in any order.
    pub edges: Vec<Edge>,
}

impl GraphSpec {
    /// Adds a node that comes after those of `after`, and gives its position.
    pub fn push(&mut self, label: impl Into<String>, work: Work, after: &[usize]) -> usize {
        let to = self.nodes.len();
        let label = label.into();
        self.nodes.push(Node { label, work });
        self.edges.extend(after.iter().map(|&from| Edge {
            from,
            to,
            kind: EdgeKind::Full,
        }));
        to
    }

    /// The nodes in an order that the edges allow.
    ///
    /// # Errors
    /// When an edge has no nodes, when an edge is programmatic and its nodes are not both kernels, or when edges form a circle.
    pub fn order(&self) -> Result<Vec<usize>, DriverError> {
        let n = self.nodes.len();
        let malformed = |what: String| Err(DriverError::Malformed { what });
        let mut missing = vec![0_usize; n];
        let mut next = vec![Vec::new(); n];
        for Edge { from, to, kind } in &self.edges {
            if *from >= n || *to >= n {
                return malformed(format!("an edge joins nodes {from} and {to} of {n}"));
            }
            let kernel = |i: usize| matches!(self.nodes[i].work, Work::Kernel(_));
            if *kind == EdgeKind::Programmatic && !(kernel(*from) && kernel(*to)) {
                let (a, b) = (&self.nodes[*from].label, &self.nodes[*to].label);
                return malformed(format!(
                    "a programmatic edge joins {a} and {b}: both must be kernels"
                ));
            }
            missing[*to] += 1;
            next[*from].push(*to);
        }
        let mut order: Vec<usize> = (0..n).filter(|&i| missing[i] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            for &to in &next[order[done]] {
                missing[to] -= 1;
                if missing[to] == 0 {
                    order.push(to);
                }
            }
            done += 1;
        }
        match missing.iter().position(|&m| m > 0) {
            Some(i) => malformed(format!("node {} comes before itself", self.nodes[i].label)),
            None => Ok(order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins(edges: &[(usize, usize)], n: usize) -> GraphSpec {
        let mut spec = GraphSpec::default();
        for i in 0..n {
            spec.push(format!("n{i}"), Work::Join, &[]);
        }
        let kind = EdgeKind::Full;
        let edges = edges.iter().map(|&(from, to)| Edge { from, to, kind });
        spec.edges = edges.collect();
        spec
    }

    #[test]
    fn nodes_come_after_those_before_them() {
        let order = joins(&[(2, 1), (1, 0), (2, 0)], 3)
            .order()
            .expect("an order");
        assert_eq!(order, [2, 1, 0]);
    }

    #[test]
    fn circles_and_loose_edges_are_refused() {
        let circle = joins(&[(0, 1), (1, 2), (2, 1)], 3).order();
        assert!(
            circle
                .expect_err("a circle")
                .to_string()
                .contains("n1 comes before itself")
        );
        assert!(joins(&[(0, 3)], 3).order().is_err());
        let mut programmatic = joins(&[(0, 1)], 2);
        programmatic.edges[0].kind = EdgeKind::Programmatic;
        assert!(programmatic.order().is_err());
    }

    #[test]
    fn arguments_are_aligned() {
        let args = Args::new().u32(7).u64(9).f32(0.5).bytes(&[1, 2, 3]);
        let sizes: Vec<usize> = args.iter().map(<[u8]>::len).collect();
        assert_eq!(sizes, [4, 8, 4, 3]);
        assert!(args.ranges.iter().all(|(at, _)| at % 16 == 0));
    }
}
