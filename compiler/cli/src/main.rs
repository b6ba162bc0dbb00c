//! The `tpc` program.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Planning makes many small allocations. With the system's allocator, they would take a third of the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tpc::run(std::env::args_os())
}
