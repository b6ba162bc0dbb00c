//! Modules of kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Kernels that are compiled together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name in diagnostics.
    pub name: String,
    /// CUDA C++ that includes nothing: the [prelude](crate::kernels::PRELUDE) is put before it. Kernels are declared by
    /// `KERNEL(name, parameters)`.
    pub source: Arc<str>,
    /// By the names of its kernels, the same kind of source with that kernel alone, for those who compile what they use only. Empty where
    /// the kernels are not apart.
    pub kernel_sources: BTreeMap<String, Arc<str>>,
    /// Code that was compiled ahead of time.
    pub cubins: Vec<Cubin>,
}

impl Module {
    /// A module that is compiled when it is loaded.
    pub fn new(name: impl Into<String>, source: impl Into<Arc<str>>) -> Module {
        Module {
            name: name.into(),
            source: source.into(),
            kernel_sources: BTreeMap::new(),
            cubins: Vec::new(),
        }
    }
}

/// Machine code for one kind of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// The target as NVRTC names it: `sm_90a`.
    pub target: String,
    /// The code.
    pub code: Arc<[u8]>,
}
