use std::path::PathBuf;

use super::compiler::Build;

/// Links between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Devices may access the memory of other devices, if access was granted.
    Peers,
    /// Devices may only access host memory.
    HostOnly,
    /// The driver offers peer access, but copies between devices return wrong data.
    WrongData,
}

/// Options of the emulator.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// The number of devices.
    pub devices: usize,
    /// The memory per device in bytes.
    pub memory: u64,
    /// The compute capability that devices report.
    pub capability: (u32, u32),
    /// Links between the devices.
    pub links: Links,
    /// The maximum number of resident blocks per device. A block that waits for a non-resident block deadlocks.
    pub max_resident_blocks: usize,
    /// The build mode of kernels.
    pub build: Build,
    /// The seed for all orders that CUDA leaves undefined.
    pub seed: u64,
    /// The cache folder for compiled kernels. `None`: the folder in the variable `TPC_CUDA_CACHE`, or else a folder in
    /// the user's cache.
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
