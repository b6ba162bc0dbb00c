//! Asynchronous copies, which take effect when a thread waits for them.

use std::ffi::c_void;

use super::abi::kind;
use super::access_checker::Access;
use super::thread::{Thread, check_access, context};

fn access_16_bytes(address: usize, kind: u32, pc: usize) -> Access {
    Access {
        address,
        bytes: 16,
        kind,
        pc,
        atomic: 0,
    }
}

pub(super) unsafe extern "C" fn copy(
    thread: Thread,
    to: *mut c_void,
    from: *const c_void,
    pc: *const c_void,
) {
    let (to, from, pc) = (to as usize, from as usize, pc as usize);
    // SAFETY: the thread runs.
    unsafe {
        check_access(thread, &access_16_bytes(from, kind::LOAD, pc), None);
        check_access(thread, &access_16_bytes(to, kind::STORE, pc), None);
        let (head, block, _) = context(thread);
        let n = block.fibers.len().max(block.copies.len());
        block.copies.resize_with(n, Default::default);
        block.copies[head.linear as usize].open.push((to, from, pc));
    }
}

pub(super) unsafe extern "C" fn copies_commit(thread: Thread) {
    // SAFETY: the thread runs.
    unsafe {
        let (head, block, _) = context(thread);
        if let Some(copies) = block.copies.get_mut(head.linear as usize) {
            let group = std::mem::take(&mut copies.open);
            copies.closed.push_back(group);
        }
    }
}

pub(super) unsafe extern "C" fn copies_wait(thread: Thread, left: u32) {
    // SAFETY: the thread runs. The kernel guarantees 16 bytes at each address; the checked build has verified this.
    unsafe {
        loop {
            let (head, block, _) = context(thread);
            let Some(copies) = block.copies.get_mut(head.linear as usize) else {
                return;
            };
            if copies.closed.len() <= left as usize {
                return;
            }
            for (to, from, pc) in copies.closed.pop_front().unwrap_or_default() {
                check_access(thread, &access_16_bytes(to, kind::STORE, pc), None);
                std::ptr::copy(from as *const u8, to as *mut u8, 16);
            }
        }
    }
}
