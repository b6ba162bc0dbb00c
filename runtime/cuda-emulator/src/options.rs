//! Options of the emulation.

use std::path::PathBuf;

use super::compiler::Build;

/// The links between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Devices reach memory that was granted to them.
    Peers,
    /// Devices reach the host's memory only.
    HostOnly,
}

/// Options of the emulation.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// The number of devices.
    pub devices: usize,
    /// The bytes of memory of each.
    pub memory: u64,
    /// The compute capability that they tell.
    pub capability: (u32, u32),
    /// The links between them.
    pub links: Links,
    /// The most blocks that a device runs at once. Blocks that wait for others beyond these wait for ever.
    pub max_resident_blocks: usize,
    /// How kernels are compiled.
    pub build: Build,
    /// The seed of every order that is not defined.
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
