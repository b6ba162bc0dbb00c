use std::time::Duration;

use super::{
    CopyNode, Device, DeviceInfo, Driver, DriverError, Endpoint, Function, Graph, GraphSpec,
    Memory, Module, ModuleHandle, SetNode, Side, Work,
};

/// A driver whose devices are the entries of a list of cards. Devices on the same card have separate memory; their
/// launches are branches of one graph.
pub struct DeviceMap<D: Driver> {
    driver: D,
    cards: Vec<Device>,
    infos: Vec<DeviceInfo>,
}

impl<D: Driver> DeviceMap<D> {
    /// Creates one device for each card number, in this order.
    ///
    /// # Errors
    ///
    /// Returns [`DriverError::NoDevice`] for an unknown number.
    pub fn new(driver: D, cards: &[u32]) -> Result<DeviceMap<D>, DriverError> {
        let found = driver.devices().len();
        let info = |&card: &u32| {
            let device = Device(card);
            let info = driver.devices().get(card as usize);
            info.cloned().ok_or(DriverError::NoDevice { device, found })
        };
        let infos: Result<Vec<DeviceInfo>, DriverError> = cards.iter().map(info).collect();
        Ok(DeviceMap {
            infos: infos?,
            cards: cards.iter().map(|&card| Device(card)).collect(),
            driver,
        })
    }

    fn card(&self, device: Device) -> Result<Device, DriverError> {
        let found = self.cards.len();
        let card = self.cards.get(device.0 as usize).copied();
        card.ok_or(DriverError::NoDevice { device, found })
    }

    fn side(&self, side: Side) -> Result<Side, DriverError> {
        match side {
            Side::Host => Ok(Side::Host),
            Side::Device(device) => self.card(device).map(Side::Device),
        }
    }

    fn endpoint(&self, at: Endpoint) -> Result<Endpoint, DriverError> {
        let side = self.side(at.side)?;
        Ok(Endpoint { side, ..at })
    }

    /// Replaces the devices of copies and fills by their cards.
    fn on_cards(&self, mut spec: GraphSpec) -> Result<GraphSpec, DriverError> {
        for node in &mut spec.nodes {
            match &mut node.work {
                Work::Copy(CopyNode { from, to, .. }) => {
                    *from = self.endpoint(*from)?;
                    *to = self.endpoint(*to)?;
                }
                Work::Set(SetNode { to, .. }) => *to = self.endpoint(*to)?,
                Work::Kernel(_) | Work::Host(_) | Work::Join => {}
            }
        }
        Ok(spec)
    }
}

impl<D: Driver> Driver for DeviceMap<D> {
    fn devices(&self) -> &[DeviceInfo] {
        &self.infos
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.driver.free_memory(self.card(device)?)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        self.driver.load(self.card(device)?, module)
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        self.driver.function(module, name)
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        let memory = self.driver.allocate(self.card(device)?, bytes)?;
        let side = Side::Device(device);
        Ok(Memory { side, ..memory })
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.driver.allocate_host(bytes)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        let side = self.side(memory.side)?;
        self.driver.free(Memory { side, ..memory })
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.driver.grant(self.card(reader)?, self.card(owner)?)
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        self.driver.write(self.endpoint(to)?, bytes)
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.driver.read(self.endpoint(from)?, bytes)
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let spec = self.on_cards(spec)?;
        self.driver.instantiate(spec)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let spec = self.on_cards(spec)?;
        self.driver.instantiate_timed(spec)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.driver.node_times(graph)
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.driver.discard(graph)
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.driver.launch(graph)
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.driver.synchronize()
    }
}
