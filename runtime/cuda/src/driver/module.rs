//! Modules of kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Kernels that are compiled together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name of the module in diagnostics.
    pub name: String,
    /// CUDA C++ without includes. The [prelude](crate::kernels::PRELUDE) precedes it. `KERNEL(name, parameters)` declares a kernel.
    pub source: Arc<str>,
    /// The source with a single kernel, for each kernel's name. A driver can thus compile only the kernels in use. The map is empty if the
    /// source is not split.
    pub kernel_sources: BTreeMap<String, Arc<str>>,
    /// Code that was compiled ahead of time.
    pub cubins: Vec<Cubin>,
}

impl Module {
    /// Returns a module that is compiled when it is loaded.
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
    /// The target's name in NVRTC, such as `sm_90a`.
    pub target: String,
    /// The code.
    pub code: Arc<[u8]>,
}
