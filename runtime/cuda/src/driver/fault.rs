use std::fmt;

/// The kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside of allocated memory.
    OutOfBounds,
    /// An access to another device's memory without a grant.
    WrongDevice,
    /// An access whose address is not a multiple of its size.
    Misaligned,
    /// A write to constant memory.
    ReadOnly,
    /// Two unordered accesses to the same memory, including a write.
    Race,
    /// Threads that wait at different barriers.
    Divergence,
    /// Threads that wait forever.
    Deadlock,
    /// More shared memory or stack than the device has.
    Resources,
    /// A trap instruction.
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

/// An error of a running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The name of the kernel.
    pub kernel: String,
    /// The label of the launch.
    pub label: String,
    /// The index of the block in the grid.
    pub block: [u32; 3],
    /// The index of the thread in the block.
    pub thread: [u32; 3],
    /// The file and line, if known.
    pub at: String,
    /// A description of the fault, and the expected behaviour.
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
