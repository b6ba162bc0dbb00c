//! The allocator of this program.

/// Gives the system what the allocator holds of memory that was freed: a plan takes more while it is made than while it runs.
#[allow(unsafe_code)]
pub(super) fn give_back() {
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
