use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use super::abi::{HEAD, STACK, ThreadHead};

const CHUNK: usize = 32;
/// The word at the lower end of a stack. A changed word means that the stack overflowed.
const CANARY: u64 = 0x7bc5_7ac4_0f1b_e120;

/// A pool of stacks. The stack freed last is reused first.
#[derive(Default)]
pub(super) struct Stacks {
    chunks: Vec<*mut u8>,
    free: Vec<*mut u8>,
    all: Vec<*mut u8>,
}

fn layout() -> Layout {
    Layout::from_size_align(STACK * CHUNK, STACK).expect("invariant: a stack is a power of two")
}

impl Stacks {
    pub(super) fn take(&mut self) -> *mut u8 {
        if let Some(stack) = self.free.pop() {
            return stack;
        }
        // SAFETY: the layout is not empty.
        let chunk = unsafe { alloc(layout()) };
        if chunk.is_null() {
            handle_alloc_error(layout());
        }
        self.chunks.push(chunk);
        for i in (0..CHUNK).rev() {
            // SAFETY: within the chunk, which has room for `CHUNK` stacks.
            let stack = unsafe { chunk.add(i * STACK) };
            // SAFETY: the lower end of the stack, which is aligned.
            unsafe { stack.cast::<u64>().write(CANARY) };
            self.free.push(stack);
            self.all.push(stack);
        }
        self.free.pop().expect("invariant: a chunk has stacks")
    }

    pub(super) fn give(&mut self, stack: *mut u8) {
        self.free.push(stack);
    }

    /// Frees all stacks, including stacks of unfinished threads.
    pub(super) fn reset(&mut self) {
        self.free.clear();
        self.free.extend(self.all.iter().rev());
        for &stack in &self.all {
            // SAFETY: the lower end of a stack of this pool.
            unsafe { stack.cast::<u64>().write(CANARY) };
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for &chunk in &self.chunks {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(chunk, layout()) };
        }
    }
}

/// True if a thread has overflowed its stack.
///
/// # Safety
///
/// The stack must belong to a pool.
pub(super) unsafe fn overrun(stack: *mut u8) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { stack.cast::<u64>().read() != CANARY }
}

pub(super) fn head(stack: *mut u8) -> *mut ThreadHead {
    stack.wrapping_add(STACK - HEAD).cast()
}

/// Prepares a stack to run `main`; returns the stack pointer for [`switch`]. The offset from the upper end depends on
/// `number`: with equal offsets, stacks would compete for the same cache lines.
///
/// # Safety
///
/// The stack must belong to a pool and be unused.
pub(super) unsafe fn prepare(stack: *mut u8, number: usize, main: extern "C" fn() -> !) -> *mut u8 {
    let top = stack.wrapping_add(STACK - HEAD - number % 61 * 192);
    #[cfg(target_arch = "x86_64")]
    const SAVED: usize = 6;
    #[cfg(target_arch = "aarch64")]
    const SAVED: usize = 20;
    // SAFETY: all writes are below the head and far above the lower end.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            // A jump enters `main`. This slot aligns its frame as a call would; `main` never returns.
            let frame = top.cast::<usize>().sub(SAVED + 2);
            frame.write_bytes(0, SAVED + 2);
            frame.add(SAVED).write(main as usize);
            frame.cast()
        }
        #[cfg(target_arch = "aarch64")]
        {
            let frame = top.cast::<usize>().sub(SAVED);
            frame.write_bytes(0, SAVED);
            frame.add(11).write(main as usize);
            frame.cast()
        }
    }
}

/// Saves the current stack pointer in `save` and resumes the stack pointer `load`.
///
/// # Safety
/// `load` must come from [`prepare`] or from a save by this function, and may be resumed only once.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn switch(save: *mut *mut u8, load: *mut u8) {
    core::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        // A jump, because `ret` would mispredict: the return predictor expects matching calls.
        "pop rcx",
        "jmp rcx",
    )
}

/// Saves the current stack pointer in `save` and resumes the stack pointer `load`.
///
/// # Safety
/// `load` must come from [`prepare`] or from a save by this function, and may be resumed only once.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn switch(save: *mut *mut u8, load: *mut u8) {
    core::arch::naked_asm!(
        "sub sp, sp, #160",
        "stp x19, x20, [sp, #0]",
        "stp x21, x22, [sp, #16]",
        "stp x23, x24, [sp, #32]",
        "stp x25, x26, [sp, #48]",
        "stp x27, x28, [sp, #64]",
        "stp x29, x30, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x9, sp",
        "str x9, [x0]",
        "mov sp, x1",
        "ldp x19, x20, [sp, #0]",
        "ldp x21, x22, [sp, #16]",
        "ldp x23, x24, [sp, #32]",
        "ldp x25, x26, [sp, #48]",
        "ldp x27, x28, [sp, #64]",
        "ldp x29, x30, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "add sp, sp, #160",
        "ret",
    )
}
