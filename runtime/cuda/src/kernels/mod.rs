//! Sources of kernels: CUDA C++ that includes nothing, so that it compiles wherever NVRTC or a C++ compiler is.

/// What stands before the source of every module: names of types, macros and intrinsics. Code of the machine (PTX) is behind
/// these names only, each with a twin in C++ for the emulation.
pub const PRELUDE: &str = include_str!("prelude.cuh");
