/// The resources of a kernel, from the report of the assembler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel name.
    pub kernel: String,
    /// The number of registers per thread.
    pub registers: u64,
    /// The bytes of registers stored to memory and loaded again.
    pub spilled: u64,
    /// The stack bytes per thread, for arrays outside registers.
    pub stack: u64,
    /// The bytes of declared shared memory.
    pub shared: u64,
}

fn before(line: &str, word: &str) -> u64 {
    let head = line.split(word).next().filter(|h| h.len() < line.len());
    let last = head.and_then(|h| h.split_whitespace().next_back());
    last.and_then(|n| n.parse().ok()).unwrap_or(0)
}

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
