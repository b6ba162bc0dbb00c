/// Returns freed memory to the system. Planning takes more memory than the finished plan.
#[allow(unsafe_code)]
pub(super) fn give_back() {
    // SAFETY: `mi_collect` takes no pointers; any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
