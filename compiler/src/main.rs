//! The `tpc` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tpc::cli::run(std::env::args_os())
}
