use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::{
    Device, DeviceInfo, Driver, DriverError, Endpoint, Function, Graph, GraphSpec, Memory, Module,
    ModuleHandle,
};

/// A driver with a time limit. If the devices do not end within the limit, the call returns an error, and so do all
/// later calls: a thread still waits for the devices.
pub struct WatchedDriver<D: Driver + 'static> {
    /// `None` if a thread waits for the devices.
    inner: Option<D>,
    infos: Vec<DeviceInfo>,
    limit: Duration,
}

impl<D: Driver + 'static> WatchedDriver<D> {
    /// Limits the time of [`Driver::launch`] and [`Driver::synchronize`].
    pub fn new(inner: D, limit: Duration) -> WatchedDriver<D> {
        WatchedDriver {
            infos: inner.devices().to_vec(),
            inner: Some(inner),
            limit,
        }
    }

    fn hang(&self) -> DriverError {
        DriverError::Hang { limit: self.limit }
    }

    fn get(&self) -> Result<&D, DriverError> {
        self.inner.as_ref().ok_or_else(|| self.hang())
    }

    fn get_mut(&mut self) -> Result<&mut D, DriverError> {
        let hang = self.hang();
        self.inner.as_mut().ok_or(hang)
    }

    fn watch(
        &mut self,
        work: impl FnOnce(&mut D) -> Result<(), DriverError> + Send + 'static,
    ) -> Result<(), DriverError> {
        let hang = self.hang();
        let Some(mut inner) = self.inner.take() else {
            return Err(hang);
        };
        let (send, receive) = mpsc::channel();
        let started = thread::Builder::new()
            .name("launch".to_owned())
            .spawn(move || {
                let result = work(&mut inner);
                // If the receiver is gone, the driver stays open until the process ends.
                if let Err(unsent) = send.send((inner, result)) {
                    std::mem::forget(unsent);
                }
            });
        if let Err(cause) = started {
            let what = "starting the thread that waits for the devices".to_owned();
            return Err(DriverError::Io { what, cause });
        }
        match receive.recv_timeout(self.limit) {
            Ok((inner, result)) => {
                self.inner = Some(inner);
                result
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(hang),
        }
    }
}

impl<D: Driver + 'static> Driver for WatchedDriver<D> {
    fn devices(&self) -> &[DeviceInfo] {
        &self.infos
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.get()?.free_memory(device)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        self.get_mut()?.load(device, module)
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        self.get_mut()?.function(module, name)
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        self.get_mut()?.allocate(device, bytes)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.get_mut()?.allocate_host(bytes)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        self.get_mut()?.free(memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.get_mut()?.grant(reader, owner)
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        self.get_mut()?.write(to, bytes)
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.get_mut()?.read(from, bytes)
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        self.get_mut()?.instantiate(spec)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        self.get_mut()?.instantiate_timed(spec)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.synchronize()?;
        self.get_mut()?.node_times(graph)
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.get_mut()?.discard(graph)
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.watch(move |inner| inner.launch(graph))
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.watch(Driver::synchronize)
    }
}
