use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;

use super::device::check;
use super::events::Events;
use crate::driver::DriverError;
use crate::driver::graph::{CopyNode, EdgeKind, GraphSpec, HostWork, KernelNode, SetNode, Work};

/// The first host error since the last launch.
pub(super) type HostFailure = Arc<Mutex<Option<DriverError>>>;

#[derive(Clone, Copy)]
pub(super) struct LaunchSite {
    pub(super) function: sys::CUfunction,
    pub(super) context: sys::CUcontext,
    pub(super) programmatic: bool,
}

struct HostCallback {
    label: String,
    work: HostWork,
    failed: HostFailure,
}

/// The measurement of a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Off,
    /// Nodes run one after another, with an event before and after each.
    Nodes,
}

pub(super) struct Executable {
    pub(super) handle: sys::CUgraphExec,
    events: Option<Events>,
    /// Host functions that the driver calls while the graph runs.
    #[expect(clippy::vec_box, reason = "the driver keeps pointers to them")]
    _hosted: Vec<Box<HostCallback>>,
}

impl Executable {
    /// Returns the time of each node in the last run.
    pub(super) fn node_times(&self) -> Result<Vec<Duration>, DriverError> {
        let events = self.events.as_ref().ok_or_else(|| DriverError::Malformed {
            what: "the graph does not measure its nodes".to_owned(),
        })?;
        events.times()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once, and the driver has waited for the graph.
        unsafe { sys::cuGraphExecDestroy(self.handle) };
    }
}

struct GraphGuard(sys::CUgraph);

impl Drop for GraphGuard {
    fn drop(&mut self) {
        // SAFETY: the graph is destroyed once. Instantiated graphs do not depend on it.
        unsafe { sys::cuGraphDestroy(self.0) };
    }
}

/// Runs host work. After an error, later host work is skipped, but the rest of the graph still runs.
unsafe extern "C" fn call(data: *mut c_void) {
    // SAFETY: `data` is the pointer from `GraphGuard::host`, which outlives the graph. The driver calls the function of
    // a node at most once at a time.
    let hosted = unsafe { &mut *data.cast::<HostCallback>() };
    let first = || hosted.failed.lock().unwrap_or_else(PoisonError::into_inner);
    if first().is_some() {
        return;
    }
    let result = catch_unwind(AssertUnwindSafe(|| (hosted.work)()));
    let result = result.unwrap_or_else(|_| Err("host work panicked".into()));
    if let Err(cause) = result {
        let label = hosted.label.clone();
        first().get_or_insert(DriverError::Host { label, cause });
    }
}

/// `site` returns the function and context of a launch.
pub(super) fn build(
    spec: GraphSpec,
    (context, timing): (sys::CUcontext, Timing),
    failed: &HostFailure,
    site: &dyn Fn(&KernelNode) -> Result<LaunchSite, DriverError>,
) -> Result<Executable, DriverError> {
    let events = match timing {
        Timing::Off => None,
        Timing::Nodes => Some(Events::new(spec.order()?)?),
    };
    let mut graph = std::ptr::null_mut();
    // SAFETY: the pointer is valid for writes.
    check("creating a graph", unsafe {
        sys::cuGraphCreate(&raw mut graph, 0)
    })?;
    let draft = GraphGuard(graph);
    let mut nodes = Vec::with_capacity(spec.nodes.len());
    let mut programmatic = Vec::with_capacity(spec.nodes.len());
    let mut hosted = Vec::new();
    for node in spec.nodes {
        let mut knows = false;
        let made = match node.work {
            Work::Kernel(kernel) => {
                let site = site(&kernel)?;
                knows = site.programmatic;
                draft.kernel(&node.label, &kernel, site)
            }
            Work::Copy(copy) => draft.copy(&node.label, &copy, context),
            Work::Set(set) => draft.set(&node.label, &set, context),
            Work::Host(work) => {
                let failed = Arc::clone(failed);
                let label = node.label.clone();
                hosted.push(Box::new(HostCallback {
                    label,
                    work,
                    failed,
                }));
                let data = hosted.last_mut().expect("invariant: it was just added");
                draft.host(&node.label, &raw mut **data)
            }
            Work::Join => draft.join(&node.label),
        };
        nodes.push(made?);
        programmatic.push(knows);
    }
    if let Some(events) = &events {
        draft.sequence(&nodes, events)?;
    }
    // A sequence of nodes satisfies all edges.
    for edge in spec.edges.iter().filter(|_| events.is_none()) {
        let both = programmatic[edge.from] && programmatic[edge.to];
        let early = edge.kind == EdgeKind::Programmatic && both;
        draft.edge(nodes[edge.from], nodes[edge.to], early)?;
    }
    let mut handle = std::ptr::null_mut();
    // SAFETY: the graph is complete.
    let result = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut handle, draft.0, 0) };
    check("instantiating a graph", result)?;
    Ok(Executable {
        handle,
        events,
        _hosted: hosted,
    })
}

type NodeResult = Result<sys::CUgraphNode, DriverError>;

impl GraphGuard {
    fn kernel(&self, label: &str, kernel: &KernelNode, site: LaunchSite) -> NodeResult {
        // The driver copies the arguments during the call.
        let pointers = kernel
            .args
            .iter()
            .map(|a| a.as_ptr().cast::<c_void>().cast_mut());
        let mut pointers: Vec<*mut c_void> = pointers.collect();
        let params = sys::CUDA_KERNEL_NODE_PARAMS {
            func: site.function,
            gridDimX: kernel.grid[0],
            gridDimY: kernel.grid[1],
            gridDimZ: kernel.grid[2],
            blockDimX: kernel.block[0],
            blockDimY: kernel.block[1],
            blockDimZ: kernel.block[2],
            sharedMemBytes: kernel.shared_bytes,
            kernelParams: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: site.context,
        };
        let mut node = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the parameters outlive the call.
        let result = unsafe {
            sys::cuGraphAddKernelNode_v2(&raw mut node, self.0, none, 0, &raw const params)
        };
        check(label, result).map(|()| node)
    }

    fn copy(&self, label: &str, copy: &CopyNode, context: sys::CUcontext) -> NodeResult {
        if copy.bytes == 0 {
            return self.join(label);
        }
        let unified = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        let params = sys::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: unified,
            srcHost: std::ptr::null(),
            srcDevice: copy.from.address,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: 0,
            srcHeight: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: unified,
            dstHost: std::ptr::null_mut(),
            dstDevice: copy.to.address,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: copy.bytes as usize,
            Height: 1,
            Depth: 1,
        };
        let mut node = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the parameters outlive the call.
        let result = unsafe {
            sys::cuGraphAddMemcpyNode(&raw mut node, self.0, none, 0, &raw const params, context)
        };
        check(label, result).map(|()| node)
    }

    fn set(&self, label: &str, set: &SetNode, context: sys::CUcontext) -> NodeResult {
        if set.bytes == 0 {
            return self.join(label);
        }
        let params = sys::CUDA_MEMSET_NODE_PARAMS {
            dst: set.to.address,
            pitch: 0,
            value: set.value.into(),
            elementSize: 1,
            width: set.bytes as usize,
            height: 1,
        };
        let mut node = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the parameters outlive the call.
        let result = unsafe {
            sys::cuGraphAddMemsetNode(&raw mut node, self.0, none, 0, &raw const params, context)
        };
        check(label, result).map(|()| node)
    }

    fn host(&self, label: &str, data: *mut HostCallback) -> NodeResult {
        let params = sys::CUDA_HOST_NODE_PARAMS {
            fn_: Some(call),
            userData: data.cast(),
        };
        let mut node = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the parameters outlive the call, and the data outlives the graph.
        let result =
            unsafe { sys::cuGraphAddHostNode(&raw mut node, self.0, none, 0, &raw const params) };
        check(label, result).map(|()| node)
    }

    /// Adds the events and the edges of a sequence: an event before each node, and one after the last.
    fn sequence(&self, nodes: &[sys::CUgraphNode], events: &Events) -> Result<(), DriverError> {
        let mut last: Option<sys::CUgraphNode> = None;
        for (i, event) in events.handles().iter().enumerate() {
            let mut record = std::ptr::null_mut();
            let none = std::ptr::null();
            // SAFETY: the list of edges is null and its length is 0, and the event exists.
            let result =
                unsafe { sys::cuGraphAddEventRecordNode(&raw mut record, self.0, none, 0, *event) };
            check("adding an event to a graph", result)?;
            if let Some(last) = last {
                self.edge(last, record, false)?;
            }
            last = match events.order().get(i) {
                Some(node) => {
                    self.edge(record, nodes[*node], false)?;
                    Some(nodes[*node])
                }
                None => Some(record),
            };
        }
        Ok(())
    }

    fn join(&self, label: &str) -> NodeResult {
        let mut node = std::ptr::null_mut();
        // SAFETY: the list of edges is null and its length is 0.
        let result =
            unsafe { sys::cuGraphAddEmptyNode(&raw mut node, self.0, std::ptr::null(), 0) };
        check(label, result).map(|()| node)
    }

    fn edge(
        &self,
        from: sys::CUgraphNode,
        to: sys::CUgraphNode,
        early: bool,
    ) -> Result<(), DriverError> {
        let data = sys::CUgraphEdgeData {
            // Port 1 is the programmatic trigger of a kernel, port 0 its end.
            from_port: u8::from(early),
            to_port: 0,
            type_: match early {
                true => sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
                false => sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_DEFAULT as u8,
            },
            reserved: [0; 5],
        };
        // SAFETY: both nodes belong to this graph.
        let result = unsafe {
            sys::cuGraphAddDependencies_v2(
                self.0,
                &raw const from,
                &raw const to,
                &raw const data,
                1,
            )
        };
        check("adding an edge to a graph", result)
    }
}
