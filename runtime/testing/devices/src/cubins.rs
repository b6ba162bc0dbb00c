use std::path::PathBuf;

use tpc_cuda::nvrtc::{Cache, Nvrtc, with_prelude};
use tpc_cuda::{DriverError, Module, cache_dir};

/// The variable with the folder of compiled kernels.
const FOLDER: &str = "TPC_TEST_CUBINS";
/// The variable with a target such as `sm_90a`. Tests on emulated devices also compile their kernels for it.
const TARGET: &str = "TPC_TEST_COMPILE";

/// Returns the folder of kernels compiled for cards. Other users must not have write access, because cards run this code.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os(FOLDER).filter(|v| !v.is_empty()) {
        Some(folder) => folder.into(),
        None => cache_dir("test-cubins").unwrap_or_else(|e| panic!("{e}")),
    }
}

/// Compiles a module for the target in `TPC_TEST_COMPILE`, if it is set, and stores the code for tests on cards.
pub(crate) fn store(module: &Module) -> Result<(), DriverError> {
    let Ok(target) = std::env::var(TARGET) else {
        return Ok(());
    };
    let compiled = Nvrtc::find().and_then(|nvrtc| {
        let text = with_prelude(&module.source);
        Cache::new(folder()).compile(&nvrtc, &module.name, &text, &target)
    });
    match compiled {
        Ok(_) => Ok(()),
        Err(e) => Err(DriverError::Malformed {
            what: format!("{TARGET}={target}: {e}"),
        }),
    }
}
