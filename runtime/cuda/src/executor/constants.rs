use std::collections::BTreeMap;

use tpc_runtime::ExecError;

use super::memory::error;
use crate::driver::{Device, Driver, Endpoint};

/// Kernel parameters for a device, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Constants {
    bytes: Vec<u8>,
    known: BTreeMap<Vec<u8>, u64>,
}

impl Constants {
    const ALIGNMENT: usize = 16;

    pub(super) fn add(&mut self, params: &[u8]) -> u64 {
        if let Some(at) = self.known.get(params) {
            return *at;
        }
        let at = self.bytes.len().next_multiple_of(Self::ALIGNMENT);
        self.bytes.resize(at, 0);
        self.bytes.extend_from_slice(params);
        self.known.insert(params.to_vec(), at as u64);
        at as u64
    }

    pub(super) fn write(&self, device: Device, driver: &mut impl Driver) -> Result<u64, ExecError> {
        let bytes = self.bytes.len().max(1) as u64;
        let memory = driver.allocate(device, bytes).map_err(error)?;
        let to = Endpoint {
            side: memory.side,
            address: memory.address,
        };
        driver.write(to, &self.bytes).map_err(error)?;
        Ok(memory.address)
    }
}
