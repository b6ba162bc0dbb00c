use std::fmt;

/// A failure of a device. It ends all work of the process on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFailure {
    /// A kernel accessed memory that is not allocated.
    IllegalAddress,
    /// A kernel accessed an address that is not a multiple of the size.
    Misaligned,
    /// A kernel used an address of the wrong kind of memory.
    AddressSpace,
    /// A kernel ran an instruction that the device does not have.
    Instruction,
    /// The stack of a kernel failed.
    Stack,
    /// A kernel stopped at an assertion or a trap.
    Assert,
    /// A kernel failed for another reason.
    LaunchFailed,
    /// The system's watchdog stopped a kernel.
    Timeout,
    /// Memory has an error that ECC cannot correct.
    Ecc,
    /// The link between cards has an error that cannot be corrected.
    Link,
    /// The driver no longer reaches the device.
    Lost,
}

impl DeviceFailure {
    /// Returns the failure of a `CUresult`; `None` if the call was wrong and the device still works.
    pub fn of_result(result: u32) -> Option<DeviceFailure> {
        Some(match result {
            700 => DeviceFailure::IllegalAddress,
            716 => DeviceFailure::Misaligned,
            717 => DeviceFailure::AddressSpace,
            715 | 718 => DeviceFailure::Instruction,
            714 => DeviceFailure::Stack,
            710 => DeviceFailure::Assert,
            719 => DeviceFailure::LaunchFailed,
            702 => DeviceFailure::Timeout,
            214 => DeviceFailure::Ecc,
            220 => DeviceFailure::Link,
            // Device unavailable, context destroyed, contained error, unknown error.
            46 | 709 | 721 | 999 => DeviceFailure::Lost,
            _ => return None,
        })
    }

    /// True if a kernel is the cause; false if the device is.
    pub const fn is_of_kernel(self) -> bool {
        !matches!(
            self,
            DeviceFailure::Ecc | DeviceFailure::Link | DeviceFailure::Lost
        )
    }
}

impl fmt::Display for DeviceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceFailure::IllegalAddress => "a kernel accessed an illegal address",
            DeviceFailure::Misaligned => "a kernel accessed a misaligned address",
            DeviceFailure::AddressSpace => "a kernel used an address of the wrong memory",
            DeviceFailure::Instruction => "a kernel ran an illegal instruction",
            DeviceFailure::Stack => "the stack of a kernel failed",
            DeviceFailure::Assert => "a kernel stopped at an assertion",
            DeviceFailure::LaunchFailed => "a kernel failed",
            DeviceFailure::Timeout => "the system stopped a kernel that ran too long",
            DeviceFailure::Ecc => "the memory has an error that ECC cannot correct",
            DeviceFailure::Link => "the link between cards has an error",
            DeviceFailure::Lost => "the driver lost the device",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_failed_devices_are_known() {
        for (result, kernel) in [(700, true), (719, true), (214, false), (999, false)] {
            let failure = DeviceFailure::of_result(result).expect("a failure");
            assert_eq!(failure.is_of_kernel(), kernel, "{failure}");
        }
        // Invalid value, out of memory, not found.
        for result in [0, 1, 2, 500] {
            assert_eq!(DeviceFailure::of_result(result), None);
        }
    }
}
