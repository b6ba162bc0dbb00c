//! The interface between scheduler and compiled kernels. Layouts match `shim.h`.

use std::ffi::{CStr, c_char, c_void};

/// The size and alignment of a stack in bytes, a power of two.
pub(super) const STACK: usize = 64 << 10;
/// The size of the thread head at the upper end of a stack, in bytes.
pub(super) const HEAD: usize = 512;
/// The maximum size of a value that a lane publishes, in bytes.
pub(super) const SLOT: usize = 64;

/// A call site that may wait, with the name of the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSite {
    what: *const c_char,
    file: *const c_char,
    line: u32,
}

/// Returns the text of a C string.
///
/// # Safety
///
/// The pointer must be null or point to a terminated string.
unsafe fn text(s: *const c_char) -> String {
    match s.is_null() {
        true => String::new(),
        // SAFETY: guaranteed by the caller.
        false => unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned(),
    }
}

impl RawSite {
    pub(super) fn what(&self) -> String {
        // SAFETY: sites come from the shim, with strings of the module's image.
        unsafe { text(self.what) }
    }

    pub(super) fn at(&self) -> String {
        // SAFETY: as above.
        format!("{}:{}", unsafe { text(self.file) }, self.line)
    }

    pub(super) fn same(&self, other: &RawSite) -> bool {
        self.line == other.line
            && (self.file == other.file || self.at() == other.at())
            && (self.what == other.what || self.what() == other.what())
    }
}

#[repr(C)]
pub(super) struct RawShared {
    pub(super) bytes: u32,
    line: u32,
    name: *const c_char,
    file: *const c_char,
}

impl RawShared {
    pub(super) fn name(&self) -> String {
        // SAFETY: declarations come from the shim, with strings of the module's image.
        let (name, file) = unsafe { (text(self.name), text(self.file)) };
        format!("{name} ({file}:{})", self.line)
    }
}

/// The fields of a block that its threads read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHead {
    pub(super) index: [u32; 3],
    pub(super) threads: [u32; 3],
    pub(super) blocks: [u32; 3],
    pub(super) dynamic_bytes: u32,
    pub(super) dynamic: *mut u8,
}

/// The fields of a thread that the thread reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadHead {
    pub(super) index: [u32; 3],
    pub(super) linear: u32,
    pub(super) lane: u32,
    pub(super) warp: u32,
    pub(super) block: *mut c_void,
    pub(super) engine: *mut c_void,
    pub(super) head: BlockHead,
    // The remaining fields are for the scheduler.
    pub(super) run: unsafe extern "C" fn(*const *const c_void),
    pub(super) arguments: *const *const c_void,
}

pub(super) fn thread_index(threads: [u32; 3], linear: u32) -> [u32; 3] {
    let [x, y, _] = threads;
    [linear % x, linear / x % y, linear / x / y]
}

#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(super) struct Slot(pub(super) [u8; SLOT]);

pub(super) type Reduce = unsafe extern "C" fn(*mut Slot, u32);

#[repr(C)]
pub(super) struct RawKernel {
    count: u32,
    pub(super) bound: u32,
    sizes: *const u32,
    pub(super) run: unsafe extern "C" fn(*const *const c_void),
}

impl RawKernel {
    pub(super) fn sizes(&self) -> &[u32] {
        // SAFETY: the shim declares `count` sizes.
        unsafe { std::slice::from_raw_parts(self.sizes, self.count as usize) }
    }
}

pub(super) mod kind {
    pub(crate) const LOAD: u32 = 1;
    pub(crate) const STORE: u32 = 2;
    pub(crate) const ACQUIRE: u32 = 4;
    pub(crate) const RELEASE: u32 = 8;
    pub(crate) const SYSTEM: u32 = 16;
    pub(crate) const UNALIGNED: u32 = 32;
}

type Thread = *mut ThreadHead;
type Site = *const RawSite;
type Address = *const c_void;

#[repr(C)]
pub(super) struct Calls {
    pub(super) barrier: unsafe extern "C" fn(Thread, u32, Site) -> u32,
    pub(super) collective:
        unsafe extern "C" fn(Thread, u32, Address, u32, Option<Reduce>, Site) -> *const Slot,
    pub(super) shared: unsafe extern "C" fn(Thread, *const RawShared) -> *mut u8,
    pub(super) pause: unsafe extern "C" fn(Thread, Site),
    pub(super) atomic: unsafe extern "C" fn(Thread, Address, u32, u32, Address, Site),
    pub(super) fence: unsafe extern "C" fn(Thread, u32),
    pub(super) copy: unsafe extern "C" fn(Thread, *mut c_void, Address, Address),
    pub(super) copies_commit: unsafe extern "C" fn(Thread),
    pub(super) copies_wait: unsafe extern "C" fn(Thread, u32),
    pub(super) dependents: unsafe extern "C" fn(Thread),
    pub(super) dependencies: unsafe extern "C" fn(Thread, Site),
    pub(super) trap: unsafe extern "C" fn(Thread, Site),
    pub(super) access: unsafe extern "C" fn(Thread, Address, u32, u32, Address),
    pub(super) misaligned: unsafe extern "C" fn(Thread, Site, Address, u32),
}
