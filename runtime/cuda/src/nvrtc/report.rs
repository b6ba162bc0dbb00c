//! The assembler's report about kernels.

/// The resources of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The name of the kernel.
    pub kernel: String,
    /// The registers per thread.
    pub registers: u64,
    /// The bytes of registers that are stored to memory and loaded again.
    pub spilled: u64,
    /// The bytes of a thread's stack, which holds arrays that are not in registers.
    pub stack: u64,
    /// The bytes of shared memory that the kernel declares.
    pub shared: u64,
}

/// Returns the number before a word.
fn before(line: &str, word: &str) -> u64 {
    let head = line.split(word).next().filter(|h| h.len() < line.len());
    let last = head.and_then(|h| h.split_whitespace().next_back());
    last.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns the kernels of a log, in the order of the log.
pub(super) fn kernels(log: &str) -> Vec<Resources> {
    let mut all: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            all.push(Resources {
                kernel: rest.split('\'').next().unwrap_or_default().to_owned(),
                ..Resources::default()
            });
        }
        let Some(kernel) = all.last_mut() else {
            continue;
        };
        if line.contains("bytes spill stores") {
            kernel.stack = before(line, " bytes stack frame");
            kernel.spilled =
                before(line, " bytes spill stores") + before(line, " bytes spill loads");
        }
        if line.contains(" registers") {
            kernel.registers = before(line, " registers");
            kernel.shared = before(line, " bytes smem");
        }
    }
    all
}
