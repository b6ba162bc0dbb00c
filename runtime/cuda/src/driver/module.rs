use std::collections::BTreeMap;
use std::sync::Arc;

/// Kernels that are compiled together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name of the module in diagnostics.
    pub name: String,
    /// CUDA C++ without includes, to follow the [prelude](crate::kernels::PRELUDE). `KERNEL(name, parameters)` declares
    /// a kernel.
    pub source: Arc<str>,
    /// For each kernel, the source with only this kernel, so that drivers can compile only kernels in use. Empty if the
    /// source is not split.
    pub kernel_sources: BTreeMap<String, Arc<str>>,
    /// Precompiled code.
    pub cubins: Vec<Cubin>,
}

impl Module {
    /// Returns a module without precompiled code.
    pub fn new(name: impl Into<String>, source: impl Into<Arc<str>>) -> Module {
        Module {
            name: name.into(),
            source: source.into(),
            kernel_sources: BTreeMap::new(),
            cubins: Vec::new(),
        }
    }
}

/// Machine code for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// The NVRTC name of the target, such as `sm_90a`.
    pub target: String,
    /// The code.
    pub code: Arc<[u8]>,
}
