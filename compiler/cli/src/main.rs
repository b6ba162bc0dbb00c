//! The `tpc` program.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Planning makes and drops many small parts of graphs, a third of whose time is that of the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tpc::run(std::env::args_os())
}
