use std::time::Duration;

use tpc_ir::Code;

use super::CudaVersion;
use super::Device;
use super::failure::DeviceFailure;
use super::fault::Fault;
use crate::codes;

/// An error of [host work](super::HostWork).
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a device does not access another device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum PeerFailure {
    /// The driver reports no peer link.
    #[error("the driver reports no peer access")]
    NoLink,
    /// A test pattern arrived changed, for example because of an IOMMU or PCIe ACS.
    #[error("copies between them return wrong data (an IOMMU or PCIe ACS is probably on)")]
    WrongData,
}

/// An error of a driver call.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant describes its fields"
)]
pub enum DriverError {
    #[error("no usable CUDA driver: {what}")]
    Missing { what: String },
    #[error("the CUDA driver is too old: {what}")]
    TooOld { what: String },
    #[error("{device} does not exist: {found} devices found")]
    NoDevice { device: Device, found: usize },
    #[error("module {module} cannot run on {device} (compute capability {}.{}): {why}", capability.0, capability.1)]
    Architecture {
        module: String,
        device: Device,
        capability: (u32, u32),
        why: String,
    },
    #[error("{device} ({name}) has compute capability {}.{}: kernels need one from 7.5 to 12.1", capability.0, capability.1)]
    Capability {
        device: Device,
        name: String,
        capability: (u32, u32),
    },
    #[error(
        "the code of module {module} for {target} needs a driver for CUDA {needed}{}; this driver supports CUDA {found}",
        needed.driver_branch().map(|b| format!(" (version {b} or newer)")).unwrap_or_default()
    )]
    CodeTooNew {
        module: String,
        target: String,
        needed: CudaVersion,
        found: CudaVersion,
    },
    #[error("the kernels of module {module} do not compile:\n{log}")]
    Compile { module: String, log: String },
    #[error("no compiler for the kernels: {what}")]
    NoCompiler { what: String },
    #[error(
        "CXX={value}: `{value} --version` does not run; emulated devices need a C++20 compiler"
    )]
    BadCompiler { value: String },
    #[error(
        "a launch of kernel {kernel} has {threads} threads per block, but its registers allow {max} on this device"
    )]
    TooManyThreads {
        kernel: String,
        threads: u32,
        max: u32,
    },
    #[error("module {module} does not contain kernel {name}")]
    NoFunction { module: String, name: String },
    #[error("{device} cannot access the memory of {owner}: {why}")]
    NoPeerAccess {
        device: Device,
        owner: Device,
        why: PeerFailure,
    },
    #[error("{place} has not enough memory: {needed} bytes needed, {free} free")]
    OutOfMemory {
        place: String,
        needed: u64,
        free: u64,
    },
    #[error("{bytes} bytes at {address:#x} are outside of the memory of {side}")]
    Address {
        side: String,
        address: u64,
        bytes: u64,
    },
    #[error("the graph is malformed: {what}")]
    Malformed { what: String },
    #[error("{label}: {cause}")]
    Host { label: String, cause: HostError },
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    #[error("{what} failed: {failure} ({name})")]
    Failed {
        what: String,
        failure: DeviceFailure,
        name: String,
    },
    #[error("the device did not end within {} s", limit.as_secs_f64())]
    Hang { limit: Duration },
    #[error("{what} failed in the CUDA driver: {error}")]
    Driver { what: String, error: String },
    #[error("{what}: {cause}")]
    Io { what: String, cause: std::io::Error },
}

impl DriverError {
    /// Returns the code, which [`crate::CODES`] declares.
    pub fn code(&self) -> &'static Code {
        match self {
            DriverError::Missing { .. } => &codes::DRIVER_MISSING,
            DriverError::TooOld { .. } | DriverError::CodeTooNew { .. } => &codes::DRIVER_TOO_OLD,
            DriverError::NoDevice { .. } => &codes::NO_DEVICE,
            DriverError::Architecture { .. } | DriverError::Capability { .. } => {
                &codes::ARCHITECTURE
            }
            DriverError::Compile { .. } => &codes::COMPILE,
            DriverError::NoCompiler { .. } | DriverError::BadCompiler { .. } => &codes::NO_COMPILER,
            DriverError::NoFunction { .. } => &codes::NO_FUNCTION,
            DriverError::TooManyThreads { .. } => &codes::SPILLS,
            DriverError::NoPeerAccess { .. } => &codes::NO_PEER_ACCESS,
            DriverError::OutOfMemory { .. } => &codes::OUT_OF_MEMORY,
            DriverError::Address { .. } | DriverError::Malformed { .. } => &codes::MALFORMED,
            DriverError::Host { .. } => &codes::HOST_WORK,
            DriverError::Fault(_) => &codes::FAULT,
            DriverError::Failed { failure, .. } => match failure.is_of_kernel() {
                true => &codes::KERNEL_FAILED,
                false => &codes::DEVICE_LOST,
            },
            DriverError::Hang { .. } => &codes::HANG,
            DriverError::Driver { .. } => &codes::DRIVER,
            DriverError::Io { .. } => &codes::FILES,
        }
    }
}
