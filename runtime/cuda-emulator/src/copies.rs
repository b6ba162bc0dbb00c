//! Copies that end when they are waited for.

use std::ffi::c_void;

use super::abi::kind;
use super::calls::{Thread, look, of};
use super::checked::Access;

/// The access of one end of an asynchronous copy.
fn sixteen(address: usize, kind: u32, pc: usize) -> Access {
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
        look(thread, &sixteen(from, kind::LOAD, pc), None);
        look(thread, &sixteen(to, kind::STORE, pc), None);
        let (head, block, _) = of(thread);
        let n = block.fibers.len().max(block.copies.len());
        block.copies.resize_with(n, Default::default);
        block.copies[head.linear as usize].open.push((to, from, pc));
    }
}

pub(super) unsafe extern "C" fn copies_commit(thread: Thread) {
    // SAFETY: the thread runs.
    unsafe {
        let (head, block, _) = of(thread);
        if let Some(copies) = block.copies.get_mut(head.linear as usize) {
            let group = std::mem::take(&mut copies.open);
            copies.closed.push_back(group);
        }
    }
}

pub(super) unsafe extern "C" fn copies_wait(thread: Thread, left: u32) {
    // SAFETY: the thread runs. The kernel says that 16 bytes are at each address; the checked build has looked.
    unsafe {
        loop {
            let (head, block, _) = of(thread);
            let Some(copies) = block.copies.get_mut(head.linear as usize) else {
                return;
            };
            if copies.closed.len() <= left as usize {
                return;
            }
            for (to, from, pc) in copies.closed.pop_front().unwrap_or_default() {
                look(thread, &sixteen(to, kind::STORE, pc), None);
                std::ptr::copy(from as *const u8, to as *mut u8, 16);
            }
        }
    }
}
