use tpc_cuda::{
    Args, Device, Driver, DriverError, Endpoint, Function, GraphSpec, KernelNode, Memory, Module,
    ModuleHandle, Work,
};
use tpc_cuda_emulator::{EmulatedDriver, EmulatedOptions};

pub(crate) struct Rig {
    pub(crate) driver: EmulatedDriver,
    modules: Vec<ModuleHandle>,
}

pub(crate) fn rig(source: &str, mut options: EmulatedOptions) -> Option<Rig> {
    options.cache = Some(env!("CARGO_TARGET_TMPDIR").into());
    let mut driver = match EmulatedDriver::new(options) {
        Err(e @ DriverError::NoCompiler { .. }) => {
            tpc_op_cases::skip(e);
            return None;
        }
        other => other.expect("emulated devices"),
    };
    let module = Module::new("test", source);
    let devices = driver.devices().len() as u32;
    let load = |d| {
        driver
            .load(Device(d), &module)
            .expect("kernels that compile")
    };
    let modules = (0..devices).map(load).collect();
    Some(Rig { driver, modules })
}

impl Rig {
    pub(crate) fn floats(&mut self, device: u32, values: &[f32]) -> Memory {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(device, &bytes)
    }

    pub(crate) fn bytes(&mut self, device: u32, bytes: &[u8]) -> Memory {
        let memory = self.driver.allocate(Device(device), bytes.len() as u64);
        let memory = memory.expect("memory");
        self.driver.write(at(memory), bytes).expect("room");
        memory
    }

    pub(crate) fn kernel(
        &mut self,
        device: u32,
        name: &str,
        grid: u32,
        block: u32,
        args: Args,
    ) -> Work {
        Work::Kernel(KernelNode {
            function: self.function(device, name),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
            args,
        })
    }

    pub(crate) fn function(&mut self, device: u32, name: &str) -> Function {
        let module = self.modules[device as usize];
        self.driver.function(module, name).expect("a kernel")
    }

    pub(crate) fn run(&mut self, spec: GraphSpec) -> Result<(), DriverError> {
        let graph = self.driver.instantiate(spec)?;
        self.driver.launch(graph)?;
        self.driver.synchronize()
    }
}

pub(crate) fn at(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}
