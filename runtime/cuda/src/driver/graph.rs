use std::fmt;

use super::{Device, DriverError, Function, HostError};

/// The owner of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A device.
    Device(Device),
    /// The host, for memory from [`Driver::allocate_host`](super::Driver::allocate_host).
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

/// A location in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The owner of the memory.
    pub side: Side,
    /// The address.
    pub address: u64,
}

/// A kernel's arguments, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    bytes: Vec<u8>,
    ranges: Vec<(usize, usize)>,
}

impl Args {
    /// Returns an empty list.
    pub fn new() -> Args {
        Args::default()
    }

    /// Appends bytes, such as a struct.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Args {
        // 16 bytes is the largest alignment of a kernel parameter.
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.ranges.push((self.bytes.len(), bytes.len()));
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends an address or 64-bit integer.
    #[must_use]
    pub fn u64(self, value: u64) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Appends a 32-bit unsigned integer.
    #[must_use]
    pub fn u32(self, value: u32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Appends a 32-bit signed integer.
    #[must_use]
    pub fn i32(self, value: i32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Appends a 32-bit float.
    #[must_use]
    pub fn f32(self, value: f32) -> Args {
        self.bytes(&value.to_ne_bytes())
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the bytes of each argument.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|&(at, n)| &self.bytes[at..at + n])
    }
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelNode {
    /// The kernel, which determines the device.
    pub function: Function,
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
    /// The number of threads per block along each axis.
    pub block: [u32; 3],
    /// The dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The arguments.
    pub args: Args,
}

/// A copy of contiguous bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNode {
    /// The source.
    pub from: Endpoint,
    /// The destination; must not overlap the source.
    pub to: Endpoint,
    /// The number of bytes.
    pub bytes: u64,
}

/// A fill of memory with one byte value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetNode {
    /// The destination, in device memory.
    pub to: Endpoint,
    /// The byte value.
    pub value: u8,
    /// The number of bytes.
    pub bytes: u64,
}

/// Host code in a graph. It must not call the driver.
pub type HostWork = Box<dyn FnMut() -> Result<(), HostError> + Send>;

/// The work of a node.
pub enum Work {
    /// Runs a kernel.
    Kernel(KernelNode),
    /// Copies bytes.
    Copy(CopyNode),
    /// Fills memory.
    Set(SetNode),
    /// Runs a function on the host.
    Host(HostWork),
    /// Joins edges without work.
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
    /// The name of the node in diagnostics.
    pub label: String,
    /// The work.
    pub work: Work,
}

/// The kind of order that an edge defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeKind {
    /// The second node starts after the first has ended.
    #[default]
    Full,
    /// Both nodes are kernels of one device. The second kernel may start when every block of the first has called
    /// `launch_dependents()` or ended. Its work after `wait_dependencies()` starts when the first kernel has ended.
    Programmatic,
}

/// An edge between nodes, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The earlier node.
    pub from: usize,
    /// The later node.
    pub to: usize,
    /// The kind of order.
    pub kind: EdgeKind,
}

/// Nodes, and the edges that order them.
#[derive(Debug, Default)]
pub struct GraphSpec {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges, in any order.
    pub edges: Vec<Edge>,
}

impl GraphSpec {
    /// Appends a node after the nodes in `after`. Returns the index of the new node.
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

    /// Returns the graph with its nodes one after another, in an order that satisfies the edges.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`GraphSpec::order`].
    pub fn in_sequence(self) -> Result<GraphSpec, DriverError> {
        let order = self.order()?;
        let edges = order.windows(2).map(|pair| Edge {
            from: pair[0],
            to: pair[1],
            kind: EdgeKind::Full,
        });
        Ok(GraphSpec {
            edges: edges.collect(),
            ..self
        })
    }

    /// Returns the nodes in an order that satisfies the edges.
    ///
    /// # Errors
    ///
    /// Returns an error if an edge refers to a missing node, a programmatic edge joins a node that is not a kernel, or
    /// the edges form a cycle.
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
                    "a programmatic edge joins {a} and {b}, which are not both kernels"
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
    fn a_sequence_keeps_the_order() {
        let edges = [(2, 1), (1, 0), (2, 0)];
        let sequence = joins(&edges, 4).in_sequence().expect("an order");
        assert_eq!(sequence.edges.len(), 3);
        let order = sequence.order().expect("an order");
        let place = |node: usize| order.iter().position(|n| *n == node);
        assert!(edges.iter().all(|(from, to)| place(*from) < place(*to)));
        assert!(joins(&[(0, 1), (1, 0)], 2).in_sequence().is_err());
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
