//! Tests of what runs: programs, executors, sessions.

mod programs;
mod support;
