//! # Ranks on MPI
//!
//! `World` connects the processes of an MPI job. MPI starts the processes, carries the messages, and ends them all if
//! one ends. A thread of each process sends and expects signs of life, so a process or machine that hangs is found too.
//!
//! The crate is empty without the feature `mpi`, because MPI's headers and libclang are needed to build it.
#![cfg_attr(not(feature = "mpi"), allow(unused_crate_dependencies))]

#[cfg(feature = "mpi")]
mod calls;
#[cfg(feature = "mpi")]
mod pulse;
#[cfg(feature = "mpi")]
mod shared;
#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::{StartError, World, abort};
