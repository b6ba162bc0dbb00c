//! Tests of what runs: programs, executors, sessions.

mod cpu;
mod mutants;
mod programs;
mod support;
