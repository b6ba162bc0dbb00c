use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A back end of ggml.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Deserialize,
    Serialize,
    JsonSchema,
)]
pub enum Backend {
    /// NVIDIA GPUs.
    #[default]
    #[serde(rename = "CUDA")]
    Cuda,
    /// AMD GPUs, through HIP.
    #[serde(rename = "ROCm")]
    Rocm,
    /// Any GPU, through Vulkan.
    Vulkan,
    /// Intel GPUs.
    #[serde(rename = "SYCL")]
    Sycl,
    /// Apple processors.
    Metal,
    /// The CPU.
    #[serde(rename = "CPU")]
    Cpu,
    /// Devices of other processes or machines.
    #[serde(rename = "RPC")]
    Rpc,
}

impl Backend {
    /// Every back end.
    pub const ALL: [Backend; 7] = [
        Backend::Cuda,
        Backend::Rocm,
        Backend::Vulkan,
        Backend::Sycl,
        Backend::Metal,
        Backend::Cpu,
        Backend::Rpc,
    ];

    /// Returns the prefix of llama.cpp's device names.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cuda => "CUDA",
            Backend::Rocm => "ROCm",
            Backend::Vulkan => "Vulkan",
            Backend::Sycl => "SYCL",
            Backend::Metal => "Metal",
            Backend::Cpu => "CPU",
            Backend::Rpc => "RPC",
        }
    }

    /// Returns the back end with this name, ignoring case. Accepts the names of `hip`, `mtl` and `cuda` builds, too.
    pub fn from_name(name: &str) -> Option<Backend> {
        let name = name.trim();
        let same = |b: &Backend| b.name().eq_ignore_ascii_case(name);
        let other = [("hip", Backend::Rocm), ("mtl", Backend::Metal)];
        let known = Backend::ALL.into_iter().find(same);
        known.or_else(|| {
            let (_, found) = other
                .into_iter()
                .find(|(n, _)| n.eq_ignore_ascii_case(name))?;
            Some(found)
        })
    }

    /// Returns the back end of a device name: CUDA for `CUDA0`, RPC for `RPC0[10.0.0.2:50052]`.
    pub fn of_device(device: &str) -> Option<Backend> {
        let end = device.find(|c: char| c.is_ascii_digit() || c == '[');
        Backend::from_name(&device[..end.unwrap_or(device.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_have_their_back_end() {
        for (device, backend) in [
            ("CUDA0", Some(Backend::Cuda)),
            ("rocm1", Some(Backend::Rocm)),
            ("Vulkan12", Some(Backend::Vulkan)),
            ("RPC0[10.0.0.2:50052]", Some(Backend::Rpc)),
            ("MTL0", Some(Backend::Metal)),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(Backend::of_device(device), backend, "{device}");
        }
        for b in Backend::ALL {
            assert_eq!(Backend::from_name(b.name()), Some(b));
        }
    }
}
