use tpc_cuda::FaultKind;

use super::abi::{RawSite, ThreadHead};
use super::access_checker::Access;
use super::block::Block;
use super::fault::{CodeLocation, UnresolvedFault};
use super::fiber::switch;
use super::run_state::RunState;

pub(super) type Thread = *mut ThreadHead;

/// Returns the head, block and engine of the thread.
///
/// # Safety
///
/// The thread must be running. Its block and the engine must not be used elsewhere until it suspends.
#[inline]
pub(super) unsafe fn context<'a>(
    thread: Thread,
) -> (&'a ThreadHead, &'a mut Block, &'a mut RunState) {
    // SAFETY: `run_lane` wrote the head, with pointers that stay valid while the thread exists.
    unsafe {
        let head = &*thread;
        (head, &mut *head.block.cast(), &mut *head.engine.cast())
    }
}

/// Suspends the thread until the engine resumes it.
///
/// # Safety
///
/// The conditions of [`context`] apply. References to the block or the engine must not be used afterwards.
pub(super) unsafe fn leave(thread: Thread) {
    // SAFETY: guaranteed by the caller.
    let (head, block, engine) = unsafe { context(thread) };
    let save = &raw mut block.fibers[head.linear as usize].sp;
    let load = engine.sp;
    // SAFETY: the engine saved its own stack pointer before it ran this thread.
    unsafe { switch(save, load) };
}

/// Stops the graph with a fault. Never resumes the thread.
///
/// # Safety
///
/// The conditions of [`context`] apply.
pub(super) unsafe fn fail(
    thread: Thread,
    kind: FaultKind,
    at: CodeLocation,
    other: Option<CodeLocation>,
    what: String,
) -> ! {
    // SAFETY: guaranteed by the caller.
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
    // The engine never resumes a failed thread.
    std::process::abort()
}

/// Yields to other threads.
///
/// # Safety
///
/// The conditions of [`context`] apply.
pub(super) unsafe fn spin(thread: Thread, site: RawSite) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = Some(site);
        block.warps[head.warp as usize].spinning |= 1 << head.lane;
        leave(thread);
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = None;
    }
}

/// Checks an access; stops the graph if it is invalid.
///
/// # Safety
///
/// The conditions of [`context`] apply.
pub(super) unsafe fn check_access(thread: Thread, access: &Access, at: Option<CodeLocation>) {
    // SAFETY: guaranteed by the caller.
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
