//! A thread that runs: what calls see of it, and how it leaves its stack.

use tpc_cuda::FaultKind;

use super::abi::{RawSite, ThreadHead};
use super::access_checker::Access;
use super::block::Block;
use super::fault::{CodeLocation, UnresolvedFault};
use super::fiber::switch;
use super::run_state::RunState;

/// A thread, by its head.
pub(super) type Thread = *mut ThreadHead;

/// The thread, its block and the engine.
///
/// # Safety
/// The thread runs now: nothing else uses the block or the engine until it leaves itself.
#[inline]
pub(super) unsafe fn context<'a>(
    thread: Thread,
) -> (&'a ThreadHead, &'a mut Block, &'a mut RunState) {
    // SAFETY: `run_lane` wrote the head, with pointers that live while the thread does.
    unsafe {
        let head = &*thread;
        (head, &mut *head.block.cast(), &mut *head.engine.cast())
    }
}

/// Leaves the thread, which goes on when the engine comes back to it.
///
/// # Safety
/// As for [`context`]; no reference to the block or the engine is used after it.
pub(super) unsafe fn leave(thread: Thread) {
    // SAFETY: the caller says so.
    let (head, block, engine) = unsafe { context(thread) };
    let save = &raw mut block.fibers[head.linear as usize].sp;
    let load = engine.sp;
    // SAFETY: the engine has left itself to run this thread.
    unsafe { switch(save, load) };
}

/// Stops the graph at a fault. The thread does not go on.
///
/// # Safety
/// As for [`context`].
pub(super) unsafe fn fail(
    thread: Thread,
    kind: FaultKind,
    at: CodeLocation,
    other: Option<CodeLocation>,
    what: String,
) -> ! {
    // SAFETY: the caller says so.
    unsafe {
        let (head, block, engine) = context(thread);
        engine.fault = Some(UnresolvedFault {
            kind,
            node: block.node,
            block: block.head.index,
            thread: head.index,
            at,
            other,
            what,
        });
        leave(thread);
    }
    // Nobody comes back to it.
    std::process::abort()
}

/// Lets others run.
///
/// # Safety
/// As for [`context`].
pub(super) unsafe fn spin(thread: Thread, site: RawSite) {
    // SAFETY: the caller says so.
    unsafe {
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = Some(site);
        block.warps[head.warp as usize].spinning |= 1 << head.lane;
        leave(thread);
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = None;
    }
}

/// The checks look at an access; the thread stops where something is wrong.
///
/// # Safety
/// As for [`context`].
pub(super) unsafe fn check_access(thread: Thread, access: &Access, at: Option<CodeLocation>) {
    // SAFETY: the caller says so.
    unsafe {
        let (head, block, engine) = context(thread);
        if let Err(wrong) = engine.check_access(block, head, access) {
            let (kind, what, other) = *wrong;
            let code = CodeLocation::Code {
                node: block.node,
                pc: access.pc,
            };
            fail(thread, kind, at.unwrap_or(code), other, what);
        }
    }
}
