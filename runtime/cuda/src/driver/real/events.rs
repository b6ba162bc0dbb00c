//! Events between the nodes of a graph, which measure the time of each node.

use std::time::Duration;

use cudarc::driver::sys;

use super::device::check;
use crate::driver::DriverError;

/// Events in the order of their records. The nodes of the graph are between them.
#[derive(Default)]
pub(super) struct Events {
    handles: Vec<sys::CUevent>,
    /// The nodes of the graph in running order.
    order: Vec<usize>,
}

impl Events {
    /// Creates an event before each node, and one after the last.
    pub(super) fn new(order: Vec<usize>) -> Result<Events, DriverError> {
        let mut out = Events {
            handles: Vec::new(),
            order,
        };
        for _ in 0..=out.order.len() {
            let mut event = std::ptr::null_mut();
            // SAFETY: the pointer is valid for writes.
            let result = unsafe { sys::cuEventCreate(&raw mut event, 0) };
            check("creating an event", result)?;
            out.handles.push(event);
        }
        Ok(out)
    }

    pub(super) fn handles(&self) -> &[sys::CUevent] {
        &self.handles
    }

    /// Returns the nodes in running order.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the time of each node in the last run, in the order of the nodes.
    pub(super) fn times(&self) -> Result<Vec<Duration>, DriverError> {
        let mut out = vec![Duration::ZERO; self.order.len()];
        for (pair, node) in self.handles.windows(2).zip(&self.order) {
            let mut milliseconds = 0.0;
            // SAFETY: the pointer is valid for writes, and both events exist.
            let result =
                unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, pair[0], pair[1]) };
            check("reading the time between events", result)?;
            out[*node] = Duration::from_secs_f32(milliseconds.max(0.0) / 1e3);
        }
        Ok(out)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for event in &self.handles {
            // SAFETY: the event is destroyed once, and the driver has waited for the graph.
            unsafe { sys::cuEventDestroy_v2(*event) };
        }
    }
}
