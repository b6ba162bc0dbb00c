//! The kernel of every op, one file per family.

mod elementwise;

use tpc_ir::Op;

use crate::launch::{Request, Selected};

/// The kernel of `op`.
pub(crate) fn select(op: &Op, request: &Request<'_>) -> Selected {
    match op {
        Op::Scale(op) => elementwise::scale(op, request),
        _ => Err("not written yet"),
    }
}
