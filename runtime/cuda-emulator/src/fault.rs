//! Faults as the engine finds them.

use tpc_cuda::FaultKind;

/// Where something is in the code: said by the shim, or an address within the image of a module.
#[derive(Clone, Debug)]
pub(super) enum Where {
    Named(String),
    Code { node: usize, pc: usize },
}

/// A fault whose places are not looked up yet. `{}` in the text stands for the other place.
#[derive(Debug)]
pub(super) struct RawFault {
    pub(super) kind: FaultKind,
    pub(super) node: usize,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    pub(super) at: Where,
    pub(super) other: Option<Where>,
    pub(super) what: String,
}
