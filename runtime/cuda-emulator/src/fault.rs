//! Faults with unresolved code locations.

use tpc_cuda::FaultKind;

/// A location named by the shim, or an address in a module's image.
#[derive(Clone, Debug)]
pub(super) enum CodeLocation {
    Named(String),
    Code { node: usize, pc: usize },
}

/// A fault. The location of the other access replaces `{}` in the text.
#[derive(Debug)]
pub(super) struct UnresolvedFault {
    pub(super) kind: FaultKind,
    pub(super) node: usize,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    pub(super) at: CodeLocation,
    pub(super) other: Option<CodeLocation>,
    pub(super) what: String,
}
