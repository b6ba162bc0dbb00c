use std::ffi::{CStr, c_char};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use super::library_check::check_library;
use crate::driver::{CudaVersion, DeviceFailure, DeviceInfo, DriverError};

pub(super) fn check(what: &str, result: CUresult) -> Result<(), DriverError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: the driver returns a constant string or null.
    let text = unsafe {
        sys::cuGetErrorString(result, &raw mut text);
        match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    };
    let what = what.to_owned();
    if let Some(failure) = DeviceFailure::of_result(result as u32) {
        let name = format!("{result:?}");
        return Err(DriverError::Failed {
            what,
            failure,
            name,
        });
    }
    Err(DriverError::Driver {
        what,
        error: format!("{text} ({result:?})"),
    })
}

/// A device with its primary context. The context is null until `open`.
pub(super) struct Context {
    pub(super) device: sys::CUdevice,
    pub(super) context: sys::CUcontext,
    pub(super) info: DeviceInfo,
}

fn contexts() -> Result<Vec<Context>, DriverError> {
    let mut count = 0;
    // SAFETY: `check_library` has found the driver and its functions.
    unsafe {
        check("starting the driver", sys::cuInit(0))?;
        check("counting devices", sys::cuDeviceGetCount(&raw mut count))?;
    }
    (0..count).map(context).collect()
}

fn context(number: i32) -> Result<Context, DriverError> {
    let (mut device, mut bytes) = (0, 0);
    let mut name = [0 as c_char; 256];
    // SAFETY: as above; `n` is the length of the buffer.
    unsafe {
        check(
            "opening a device",
            sys::cuDeviceGet(&raw mut device, number),
        )?;
        let n = name.len() as i32;
        check(
            "reading the name of a device",
            sys::cuDeviceGetName(name.as_mut_ptr(), n, device),
        )?;
        check(
            "reading the memory size of a device",
            sys::cuDeviceTotalMem_v2(&raw mut bytes, device),
        )?;
    }
    let attribute = |of: Attribute| {
        let mut value = 0;
        // SAFETY: as above.
        let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, of, device) };
        check("reading a device attribute", result).map(|()| u32::try_from(value).unwrap_or(0))
    };
    let info = DeviceInfo {
        // SAFETY: the driver terminates the name with a zero byte.
        name: unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned(),
        card: number.unsigned_abs(),
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory: bytes as u64,
        shared_per_block: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
    };
    Ok(Context {
        device,
        context: std::ptr::null_mut(),
        info,
    })
}

/// Returns the CUDA version that the driver supports, and its devices, without opening them.
pub(super) fn list_devices() -> Result<(CudaVersion, Vec<Context>), DriverError> {
    let version = check_library()?;
    let contexts = contexts()?;
    match contexts.is_empty() {
        true => Err(DriverError::Missing {
            what: "the driver reports 0 devices".into(),
        }),
        false => Ok((version, contexts)),
    }
}

/// Returns the CUDA version that the driver supports, without listing devices.
///
/// # Errors
///
/// Returns an error if the driver is missing, too old, or lacks a function.
pub fn driver_version() -> Result<CudaVersion, DriverError> {
    check_library()
}

/// Returns the cards of the machine, without reserving resources.
///
/// # Errors
///
/// Returns an error if the driver is missing or too old, or the machine has no device.
pub fn cards() -> Result<Vec<DeviceInfo>, DriverError> {
    let (_, contexts) = list_devices()?;
    Ok(contexts.into_iter().map(|c| c.info.clone()).collect())
}

impl Context {
    pub(super) fn is_open(&self) -> bool {
        !self.context.is_null()
    }

    pub(super) fn open(&mut self) -> Result<(), DriverError> {
        if self.is_open() {
            return Ok(());
        }
        // SAFETY: the device is valid, and the pointer is valid for writes.
        let result = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut self.context, self.device) };
        check("creating the context of a device", result)
    }

    pub(super) fn enter(&self) -> Result<(), DriverError> {
        // SAFETY: `self` retains the context.
        check("selecting a device", unsafe {
            sys::cuCtxSetCurrent(self.context)
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: the context was retained once.
            unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}
