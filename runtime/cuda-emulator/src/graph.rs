use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tpc_cuda::{Args, CopyNode, Device, EdgeKind, HostWork, SetNode};

use super::image::{Image, Kernel};
use super::race::Reachability;

pub(super) struct Launch {
    pub(super) device: Device,
    pub(super) image: Arc<Image>,
    pub(super) kernel: Kernel,
    pub(super) name: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) _args: Args,
}

pub(super) enum Task {
    Kernel(Launch),
    Copy(CopyNode),
    Set(SetNode),
    Host(HostWork),
    Join,
}

pub(super) struct GraphNode {
    pub(super) label: String,
    pub(super) task: Task,
    pub(super) next: Vec<(usize, EdgeKind)>,
    pub(super) before: usize,
    /// The programmatic predecessors that `wait_dependencies` waits for.
    pub(super) programmatic: Vec<usize>,
}

pub(super) struct GraphInstance {
    pub(super) nodes: Vec<GraphNode>,
    pub(super) reach: Rc<Reachability>,
    /// The times of the nodes in the last run, if they are measured.
    pub(super) times: Option<Vec<Duration>>,
}
