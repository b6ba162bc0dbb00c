//! What the emulation finds wrong in kernels.

use std::fmt;

/// The kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access beyond what was allocated or declared, or to memory that was given back.
    OutOfBounds,
    /// An access to the memory of a device that was not granted, or to the host's own.
    WrongDevice,
    /// An access whose address is no multiple of its size.
    Misaligned,
    /// A write to memory of constants.
    ReadOnly,
    /// Two accesses without an order, one of which writes.
    Race,
    /// Threads of a block or a warp that meet at different places.
    Divergence,
    /// Threads that wait for what does not come.
    Deadlock,
    /// More shared memory or stack than there is.
    Resources,
    /// The kernel stopped itself.
    Trap,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::OutOfBounds => "access out of bounds",
            FaultKind::WrongDevice => "access to another device's memory",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::ReadOnly => "write to constant memory",
            FaultKind::Race => "data race",
            FaultKind::Divergence => "divergent barrier",
            FaultKind::Deadlock => "deadlock",
            FaultKind::Resources => "out of resources",
            FaultKind::Trap => "trap",
        })
    }
}

/// Something wrong in a kernel, found while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// The label of the launch.
    pub label: String,
    /// The block in the grid.
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// The file and the line, as far as they are known.
    pub at: String,
    /// What was found, and what was expected.
    pub what: String,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            "{} in kernel {} ({}), block {bx},{by},{bz}, thread {tx},{ty},{tz}, at {}: {}",
            self.kind, self.kernel, self.label, self.at, self.what
        )
    }
}
