use serde::{Deserialize, Serialize};

use super::{Backend, Basis};

/// The cache types of a back end's attention kernels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheKernels {
    /// The back end.
    pub backend: Backend,
    /// The cache types.
    pub types: Vec<String>,
    /// True if K and V may have different types.
    pub mixed: bool,
    /// Types that cannot be mixed.
    #[serde(default)]
    pub unmixed: Vec<String>,
    /// The cache types that kernels read directly if K and V have the same type; other pairs are converted to f16.
    /// `None` if kernels read all pairs directly.
    #[serde(default)]
    pub direct: Option<Vec<String>>,
    /// The build option that adds kernels for other pairs.
    #[serde(default)]
    pub with: Option<String>,
    /// The evidence.
    pub basis: Basis,
}

/// The kernel for a pair of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CacheKernel {
    /// Reads the cache directly.
    Direct,
    /// Converts the cache to f16 before each use.
    Converted,
    /// No kernel: the CPU computes attention.
    Missing,
}

impl CacheKernels {
    /// Returns the kernel for these K and V cache types.
    pub fn kernel(&self, k: &str, v: &str) -> CacheKernel {
        let has = |list: &[String], name: &str| list.iter().any(|t| t == name);
        let alone = |name: &str| !self.mixed || has(&self.unmixed, name);
        let missing =
            !has(&self.types, k) || !has(&self.types, v) || k != v && (alone(k) || alone(v));
        match &self.direct {
            _ if missing => CacheKernel::Missing,
            Some(direct) if k != v || !has(direct, k) => CacheKernel::Converted,
            _ => CacheKernel::Direct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::Build;
    use crate::llama_cpp::Maker;

    #[test]
    fn kernels_depend_on_the_back_end_and_the_release() {
        let of = |version: &str, backend, k, v| {
            let build = Build::find(Maker::LlamaCpp, version).expect("a release");
            build.cache_kernels(backend).map(|c| c.kernel(k, v))
        };
        use super::CacheKernel::{Converted, Direct, Missing};
        assert_eq!(of("0.8.0", Backend::Cuda, "q8_0", "q8_0"), Some(Direct));
        assert_eq!(of("0.8.0", Backend::Cuda, "q8_0", "q4_0"), Some(Converted));
        assert_eq!(
            of("0.8.0", Backend::Cuda, "iq4_nl", "iq4_nl"),
            Some(Missing)
        );
        assert_eq!(of("0.8.0", Backend::Vulkan, "q8_0", "iq4_nl"), Some(Direct));
        assert_eq!(of("0.8.0", Backend::Vulkan, "bf16", "f16"), Some(Missing));
        assert_eq!(of("0.8.0", Backend::Metal, "q8_0", "q4_0"), Some(Missing));
        assert_eq!(of("0.5.0", Backend::Cuda, "q8_0", "q4_0"), Some(Missing));
        assert_eq!(of("0.8.0", Backend::Rpc, "q8_0", "q4_0"), None);
    }
}
