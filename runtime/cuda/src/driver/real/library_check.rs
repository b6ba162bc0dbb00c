use cudarc::driver::sys;

use crate::driver::{CudaVersion, DriverError};

const CALLS: [&str; 42] = [
    "cuCtxEnablePeerAccess",
    "cuCtxSetCurrent",
    "cuDeviceCanAccessPeer",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuGraphAddDependencies_v2",
    "cuGraphAddEmptyNode",
    "cuGraphAddEventRecordNode",
    "cuGraphAddHostNode",
    "cuGraphAddKernelNode_v2",
    "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpyAsync",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
];

/// The minimum CUDA version, as `cuDriverGetVersion` reports it. Older versions lack programmatic edges in graphs.
const MIN_VERSION: i32 = 12030;

/// Returns the version that `cuDriverGetVersion` reports as 1000 × major + 10 × minor.
fn version_of(number: i32) -> CudaVersion {
    let number = number.unsigned_abs();
    CudaVersion::new(number / 1000, number % 1000 / 10)
}

/// Checks the driver, because a call of a missing function would panic. Returns the CUDA version that it supports.
pub(super) fn check_library() -> Result<CudaVersion, DriverError> {
    // SAFETY: this loads the system's library if it exists.
    if !unsafe { sys::is_culib_present() } {
        return Err(DriverError::Missing {
            what: "no libcuda on this machine".into(),
        });
    }
    // SAFETY: the library was loaded above.
    let library = unsafe { sys::culib() };
    // SAFETY: the symbols are looked up and not called.
    let has =
        |call: &str| unsafe { library.get::<unsafe extern "C" fn()>(call.as_bytes()) }.is_ok();
    let version = match has("cuDriverGetVersion") {
        true => {
            let mut version = 0;
            // SAFETY: the function exists, and the pointer is valid for writes.
            unsafe { sys::cuDriverGetVersion(&raw mut version) };
            version
        }
        false => 0,
    };
    let lacking = CALLS.into_iter().find(|call| !has(call));
    match lacking {
        _ if version < MIN_VERSION => Err(DriverError::TooOld {
            what: format!(
                "it supports CUDA {}, tpc needs {}",
                version_of(version),
                version_of(MIN_VERSION)
            ),
        }),
        Some(call) => Err(DriverError::TooOld {
            what: format!("it supports CUDA {}, but lacks {call}", version_of(version)),
        }),
        None => Ok(version_of(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::CALLS;

    #[test]
    fn every_call_that_is_made_is_looked_for() {
        let sources = [
            include_str!("mod.rs"),
            include_str!("graph.rs"),
            include_str!("events.rs"),
            include_str!("device.rs"),
            include_str!("library_check.rs"),
            include_str!("staging.rs"),
        ];
        let mut made = std::collections::BTreeSet::new();
        for source in sources {
            for rest in source.split("sys::").skip(1) {
                let name = rest
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next();
                let name = name.filter(|n| n.starts_with("cu") && *n != "culib");
                made.extend(name);
            }
        }
        assert_eq!(made.into_iter().collect::<Vec<_>>(), CALLS);
    }
}
