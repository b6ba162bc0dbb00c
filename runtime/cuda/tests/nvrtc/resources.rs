//! The resources of compiled kernels: registers of a block, and the driver that loads the code.

use std::collections::BTreeMap;

use tpc_cuda::kernels::Kernel;
use tpc_cuda::nvrtc::CompiledModule;
use tpc_cuda::{Cubin, CudaVersion};

/// The registers of a multiprocessor, which a block must not exceed.
const REGISTER_FILE: u32 = 65_536;

/// The threads per block of each kernel, by entry.
#[derive(Default)]
pub(super) struct Threads(BTreeMap<String, u32>);

impl Threads {
    pub(super) fn add(&mut self, kernel: &Kernel) {
        let most = self.0.entry(kernel.instance.entry()).or_default();
        *most = (*most).max(kernel.geometry.threads);
    }

    /// Returns the faults of a module compiled for a target: blocks that need more registers than exist, and code for
    /// cards up to Hopper that drivers of CUDA 12 cannot load.
    pub(super) fn faults(
        &self,
        compiled: &CompiledModule,
        target: &str,
        version: (i32, i32),
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for k in &compiled.kernels {
            let Some(threads) = self.0.get(&k.kernel) else {
                faults.push(format!("{}: no launch is known", k.kernel));
                continue;
            };
            // The hardware allocates registers in steps of eight per thread.
            let registers = k.registers as u32;
            let needed = registers.next_multiple_of(8) * threads;
            if needed > REGISTER_FILE {
                let name = &k.kernel;
                faults.push(format!(
                    "{name} on {target}: {registers} registers × {threads} threads exceed {REGISTER_FILE}"
                ));
            }
        }
        let code = Cubin {
            target: target.to_owned(),
            code: compiled.cubin.as_slice().into(),
        };
        let old_cards = ["sm_75", "sm_80", "sm_89", "sm_90a"].contains(&target);
        match code.min_driver() {
            None => faults.push(format!("{target}: the code states no driver")),
            Some(needed) if old_cards && version.0 == 12 && needed >= CudaVersion::new(13, 0) => {
                faults.push(format!(
                    "{target}: the code needs a driver for CUDA {needed}"
                ));
            }
            Some(_) => {}
        }
        faults
    }
}
