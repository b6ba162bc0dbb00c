//! Tests of execution: programs, executors, sessions.

mod bits;
mod cpu;
mod cuda;
mod memory;
mod mutants;
mod overlap;
mod programs;
mod random;
mod sessions;
mod support;
