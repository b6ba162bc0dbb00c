//! Tests of execution: programs, executors, sessions.

mod bits;
mod cells;
mod cpu;
mod cuda;
mod exact;
mod memory;
mod mutants;
mod overlap;
mod prefixes;
mod programs;
mod random;
mod ranks;
mod sessions;
mod support;
