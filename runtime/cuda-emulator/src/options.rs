//! What is emulated, and how.

use std::path::PathBuf;

use super::compiler::Build;

/// Whether devices reach each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// They do where it is granted.
    Peers,
    /// They do not: only the host's memory is common.
    HostOnly,
}

/// What is emulated, and how.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// The number of devices.
    pub devices: usize,
    /// The bytes of memory of each.
    pub memory: u64,
    /// The compute capability that they tell.
    pub capability: (u32, u32),
    /// Whether they reach each other's memory.
    pub links: Links,
    /// The most blocks that a device runs at once. Blocks that wait for others beyond these wait for ever.
    pub max_resident_blocks: usize,
    /// How kernels are compiled.
    pub build: Build,
    /// What the order depends on where it is not defined.
    pub seed: u64,
    /// The folder of compiled kernels; without one, that of the variable `TPC_CUDA_CACHE`, or one in the user's cache.
    pub cache: Option<PathBuf>,
}

impl Default for EmulatedOptions {
    fn default() -> EmulatedOptions {
        EmulatedOptions {
            devices: 1,
            memory: 16 << 30,
            capability: (9, 0),
            links: Links::Peers,
            max_resident_blocks: 64,
            build: Build::Plain,
            seed: 0,
            cache: None,
        }
    }
}
