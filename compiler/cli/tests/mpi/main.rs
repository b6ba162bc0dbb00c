//! Runs the program in several processes on MPI, on one machine.
//!
//! `cargo test -p tpc --features mpi --test mpi`. `TPC_FULL=1` takes all golden models and 200 faults.

mod faults;
mod logits;
mod support;
