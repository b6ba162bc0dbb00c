use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tpc_ir::program::Program;
use tpc_runtime::{ExecError, Options};

use super::launches::Launches;
use super::options::CudaOptions;
use crate::driver::{Cubin, DeviceInfo, Module};
use crate::kernels::{self, Source};
use crate::nvrtc::with_prelude;

/// Returns the modules of a program, one per kernel family, with kernels for devices with and without peer access.
///
/// # Errors
///
/// Returns an error if an op is not supported.
pub fn modules(program: &Program, options: Options) -> Result<Vec<Source>, ExecError> {
    let mut instances = BTreeSet::new();
    for joined in [true, false] {
        let launches = launches_on_any_device(program, options, joined)?;
        let kernels = launches.kernels().map(|(_, k)| k.instance.clone());
        instances.extend(kernels);
        if program.graph.devices.len() < 2 {
            break;
        }
    }
    Ok(kernels::modules(&instances))
}

/// Returns the modules with the kernels of these launches.
pub(super) fn modules_of(launches: &Launches) -> Vec<Source> {
    let kernels = launches.kernels().map(|(_, k)| k.instance.clone());
    kernels::modules(&kernels.collect())
}

fn launches_on_any_device(
    program: &Program,
    options: Options,
    joined: bool,
) -> Result<Launches, ExecError> {
    let some = DeviceInfo {
        name: String::new(),
        card: 0,
        capability: (9, 0),
        multiprocessors: 1,
        memory: 0,
        shared_per_block: 0,
    };
    let infos = vec![some; program.graph.devices.len()];
    let options = CudaOptions {
        options,
        ..CudaOptions::with_threads(1)
    };
    Launches::new((program, None), &infos, &mut |_, _| Ok(joined), options)
}

/// Returns the kernels that a batch of the first shape launches with peer access, as devices and template instances.
///
/// # Errors
///
/// Returns an error if an op is not supported.
pub fn launch_list(program: &Program, options: Options) -> Result<Vec<(usize, String)>, ExecError> {
    let launches = launches_on_any_device(program, options, true)?;
    Ok(launches
        .kernels_of_shape(0)
        .map(|(device, k)| (device, k.instance.name().to_owned()))
        .collect())
}

/// The hash of a module's complete source, which identifies compiled code.
pub type SourceHash = [u8; 32];

/// Precompiled code by source hash.
#[derive(Clone, Debug, Default)]
pub struct PrebuiltCode(BTreeMap<SourceHash, Vec<Cubin>>);

impl PrebuiltCode {
    /// Adds code for an NVRTC target.
    pub fn add(&mut self, source: SourceHash, target: &str, code: Arc<[u8]>) {
        self.0.entry(source).or_default().push(Cubin {
            target: target.to_owned(),
            code,
        });
    }

    pub(super) fn with_code(&self, source: Source) -> Module {
        let kernels = source.kernels();
        let kernel_sources = kernels
            .map(|(name, source)| (name, source.text.into()))
            .collect();
        let mut module = Module::new(source.name, source.text);
        module.kernel_sources = kernel_sources;
        if !self.0.is_empty() {
            let hash: SourceHash = Sha256::digest(with_prelude(&module.source)).into();
            module.cubins = self.0.get(&hash).cloned().unwrap_or_default();
        }
        module
    }
}
