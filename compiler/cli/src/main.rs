//! The `tpc` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tpc::run(std::env::args_os())
}
