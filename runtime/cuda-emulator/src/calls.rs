//! Calls from kernels to the engine, on the stack of an emulated thread. A call may suspend the thread.

use std::ffi::c_void;

use tpc_cuda::FaultKind;

use super::abi::{Calls, RawShared, RawSite, Reduce, SLOT, Slot, kind};
use super::access_checker::Access;
use super::block::{Block, MAX_DECLARED_SHARED};
use super::copies::{copies_commit, copies_wait, copy};
use super::fault::CodeLocation;
use super::race::{Accessor, RaceDetector};
use super::thread::{Thread, check_access, context, fail, leave, spin};

pub(super) const CALLS: Calls = Calls {
    barrier,
    collective,
    shared,
    pause,
    atomic,
    fence,
    copy,
    copies_commit,
    copies_wait,
    dependents,
    dependencies,
    trap,
    access,
    misaligned,
};

pub(super) extern "C" fn thread_main() -> ! {
    let mark = 0_u8;
    let stack = (&raw const mark) as usize & !(super::abi::STACK - 1);
    let thread = super::fiber::head(stack as *mut u8);
    // SAFETY: `run_lane` wrote the head of this stack.
    unsafe {
        let head = *thread;
        (head.run)(head.arguments);
        let (head, block, engine) = context(thread);
        let warp = head.warp as usize;
        block.fibers[head.linear as usize].ended = true;
        block.alive -= 1;
        block.warps[warp].alive &= !(1 << head.lane);
        engine.events += 1;
        if block.release()
            && let Some(clocks) = &mut block.clocks
        {
            clocks.barrier();
        }
        for i in 0..block.warps[warp].collectives.len() {
            complete(block, warp, i, None);
        }
        leave(thread);
    }
    // The engine never resumes an ended thread.
    std::process::abort()
}

unsafe extern "C" fn barrier(thread: Thread, value: u32, site: *const RawSite) -> u32 {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe {
        let (head, block, engine) = context(thread);
        let site = *site;
        if let Some(first) = block.barrier.filter(|first| !first.same(&site)) {
            let what = format!(
                "this thread reached {}, other threads of the block wait in {} at {{}}: all must reach the same call",
                site.what(),
                first.what()
            );
            let other = Some(CodeLocation::Named(first.at()));
            fail(
                thread,
                FaultKind::Divergence,
                CodeLocation::Named(site.at()),
                other,
                what,
            );
        }
        let generation = block.generation & 1;
        block.brought[generation] += value;
        block.arrived += 1;
        if block.release() {
            engine.events += 1;
            if let Some(clocks) = &mut block.clocks {
                clocks.barrier();
            }
        } else {
            block.barrier = Some(site);
            block.warps[head.warp as usize].at_barrier |= 1 << head.lane;
            block.fibers[head.linear as usize].site = Some(site);
            leave(thread);
        }
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = None;
        block.brought[generation]
    }
}

/// Completes a collective call if all live lanes have arrived. The lane `last` continues without suspending.
fn complete(
    block: &mut Block,
    warp: usize,
    at: usize,
    last: Option<(u32, Option<Reduce>)>,
) -> bool {
    let w = &mut block.warps[warp];
    let c = &mut w.collectives[at];
    let needed = c.mask & w.alive;
    if c.arrived == 0 || c.arrived & needed != needed {
        return false;
    }
    if let Some((_, Some(reduce))) = last {
        // SAFETY: these are the slots of the current generation; the lanes of `arrived` have written their slots.
        unsafe { reduce(c.slots[c.generation & 1].as_mut_ptr(), c.arrived) };
    }
    // Only `__syncwarp` orders memory. Other collectives exchange registers.
    let orders = c.site.is_some_and(|s| s.what() == "__syncwarp");
    if let Some(clocks) = block.clocks.as_mut().filter(|_| orders) {
        clocks.warp(warp, c.arrived & needed);
    }
    let own = last.map_or(0, |(lane, _)| 1 << lane);
    w.ready |= c.arrived & needed & !own;
    c.arrived = 0;
    c.generation += 1;
    c.site = None;
    true
}

unsafe extern "C" fn collective(
    thread: Thread,
    mask: u32,
    value: *const c_void,
    bytes: u32,
    reduce: Option<Reduce>,
    site: *const RawSite,
) -> *const Slot {
    // SAFETY: `thread` is the running thread; the value and the site are on its stack.
    unsafe {
        let (head, block, engine) = context(thread);
        let (site, warp, lane) = (*site, head.warp as usize, head.lane);
        if mask >> lane & 1 == 0 {
            let what = format!(
                "lane {lane} calls {} with the mask {mask:#x}, which does not contain the lane",
                site.what()
            );
            fail(
                thread,
                FaultKind::Divergence,
                CodeLocation::Named(site.at()),
                None,
                what,
            );
        }
        let at = block.warps[warp].collective(mask);
        let c = &mut block.warps[warp].collectives[at];
        if let Some(first) = c.site.filter(|first| !first.same(&site)) {
            let what = format!(
                "this lane reached {}, other lanes of the warp wait in {} at {{}}: all must reach the same call",
                site.what(),
                first.what()
            );
            let other = Some(CodeLocation::Named(first.at()));
            fail(
                thread,
                FaultKind::Divergence,
                CodeLocation::Named(site.at()),
                other,
                what,
            );
        }
        c.site = Some(site);
        let generation = c.generation & 1;
        let slot = &mut c.slots[generation][lane as usize];
        let n = (bytes as usize).min(SLOT);
        std::ptr::copy_nonoverlapping(value.cast::<u8>(), slot.0.as_mut_ptr(), n);
        c.arrived |= 1 << lane;
        if complete(block, warp, at, Some((lane, reduce))) {
            engine.events += 1;
        } else {
            block.fibers[head.linear as usize].site = Some(site);
            leave(thread);
        }
        let (head, block, _) = context(thread);
        block.fibers[head.linear as usize].site = None;
        block.warps[warp].collectives[at].slots[generation].as_ptr()
    }
}

unsafe extern "C" fn shared(thread: Thread, site: *const RawShared) -> *mut u8 {
    // SAFETY: `thread` is the running thread; declarations live as long as the module.
    unsafe {
        let (_, block, _) = context(thread);
        if let Some(at) = block.shared(site) {
            return at;
        }
        let what = format!(
            "{} needs {} bytes in addition to {}: a block has {}",
            (*site).name(),
            (*site).bytes,
            block.shared_bytes(),
            MAX_DECLARED_SHARED
        );
        fail(
            thread,
            FaultKind::Resources,
            CodeLocation::Named((*site).name()),
            None,
            what,
        )
    }
}

unsafe extern "C" fn pause(thread: Thread, site: *const RawSite) {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe { spin(thread, *site) };
}

unsafe extern "C" fn atomic(
    thread: Thread,
    address: *const c_void,
    bytes: u32,
    of_kind: u32,
    pc: *const c_void,
    site: *const RawSite,
) {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe {
        let watched = context(thread).2.checker.is_some();
        if watched {
            let access = Access {
                address: address as usize,
                bytes: bytes as usize,
                kind: of_kind,
                pc: pc as usize,
                atomic: 1 + u8::from(of_kind & kind::SYSTEM != 0),
            };
            check_access(thread, &access, Some(CodeLocation::Named((*site).at())));
        }
        if of_kind & kind::STORE != 0 {
            let engine = context(thread).2;
            engine.events += 1;
            // Let other threads run first, to vary the order in which stores become visible.
            if engine.random.below(4) == 0 {
                spin(thread, *site);
            }
            context(thread).2.events += 1;
        } else {
            // The flag has not changed since this thread loaded it: other threads must run.
            let now = match bytes {
                8 => address.cast::<u64>().read_volatile(),
                _ => u64::from(address.cast::<u32>().read_volatile()),
            };
            let (head, block, _) = context(thread);
            let fiber = &mut block.fibers[head.linear as usize];
            let seen = (address as usize, now);
            if std::mem::replace(&mut fiber.flag, seen) == seen {
                spin(thread, *site);
            }
        }
        let (head, block, engine) = context(thread);
        if let (Some(checker), Some(clocks)) = (&mut engine.checker, &mut block.clocks) {
            let device = checker.device_of(block.node, &*engine.graph);
            let mut actor = Accessor {
                node: block.node,
                device,
                thread: Some((clocks, head.linear as usize)),
            };
            checker.races.atomic(&mut actor, address as usize, of_kind);
        }
    }
}

unsafe extern "C" fn fence(thread: Thread, scope: u32) {
    // SAFETY: `thread` is the running thread.
    unsafe {
        let (head, block, _) = context(thread);
        if let Some(clocks) = &mut block.clocks {
            RaceDetector::fence(clocks, head.linear as usize, scope);
        }
    }
}

unsafe extern "C" fn dependents(thread: Thread) {
    // SAFETY: `thread` is the running thread.
    unsafe {
        let (_, block, engine) = context(thread);
        engine.trigger(block);
    }
}

unsafe extern "C" fn dependencies(thread: Thread, site: *const RawSite) {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe {
        loop {
            let (head, block, engine) = context(thread);
            let before = &engine.node(block.node).programmatic;
            if before.iter().all(|&n| engine.nodes[n].over) {
                if let Some(clocks) = &mut block.clocks {
                    RaceDetector::wait_for_nodes(clocks, head.linear as usize, before);
                }
                engine.nodes[block.node].waited = true;
                return;
            }
            block.waiting += 1;
            spin(thread, *site);
            context(thread).1.waiting -= 1;
        }
    }
}

unsafe extern "C" fn trap(thread: Thread, site: *const RawSite) {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe {
        let at = CodeLocation::Named((*site).at());
        fail(
            thread,
            FaultKind::Trap,
            at,
            None,
            "the kernel executed a trap".into(),
        )
    }
}

unsafe extern "C" fn access(
    thread: Thread,
    address: *const c_void,
    bytes: u32,
    of: u32,
    pc: *const c_void,
) {
    let access = Access {
        address: address as usize,
        bytes: bytes as usize,
        kind: of,
        pc: pc as usize,
        atomic: 0,
    };
    // SAFETY: `thread` is the running thread.
    unsafe { check_access(thread, &access, None) };
}

unsafe extern "C" fn misaligned(
    thread: Thread,
    site: *const RawSite,
    address: *const c_void,
    to: u32,
) {
    // SAFETY: `thread` is the running thread; sites are on its stack.
    unsafe {
        let what = format!("the address {address:?} is not a multiple of {to}");
        fail(
            thread,
            FaultKind::Misaligned,
            CodeLocation::Named((*site).at()),
            None,
            what,
        )
    }
}
