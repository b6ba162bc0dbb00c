//! Tests of what runs: programs, executors, sessions.

mod cpu;
mod programs;
mod support;
