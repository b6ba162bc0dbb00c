use std::collections::{BTreeMap, BTreeSet};

use tpc_cuda::kernels::{Instance, Kernel, Request, Tensor as Sizes, select};
use tpc_cuda::{
    Device, Driver, DriverError, Endpoint, Function, GraphSpec, Memory, StandaloneLaunch,
    TensorView, Work, load_kernels,
};
use tpc_cuda_emulator::{Build, EmulatedOptions};
use tpc_ir::Dim;
use tpc_op_cases::suite::{ExecutorUnderTest, Failure};
use tpc_op_cases::{Case, Random, Stored, aligned_operands, aligned_results};
use tpc_test_devices::TestDriver;

pub(super) struct Rig {
    pub(super) driver: TestDriver,
    pub(super) functions: BTreeMap<Instance, Function>,
}

/// The tensors after a launch, and the index out of range with its bound.
pub(super) struct Left {
    pub(super) operands: Vec<Stored>,
    pub(super) results: Vec<Stored>,
    /// The bytes read per tensor, counting repeated reads, in the checked build; `None` on a card.
    pub(super) read: Option<Vec<u64>>,
    pub(super) fault: Option<(i64, i64)>,
}

pub(super) fn rig(seed: u64, build: Build) -> Option<Rig> {
    let options = EmulatedOptions {
        seed,
        build,
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..EmulatedOptions::default()
    };
    let driver = TestDriver::new(options)?;
    Some(Rig {
        driver,
        functions: BTreeMap::new(),
    })
}

fn at(memory: &Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

impl Rig {
    pub(super) fn memory(&mut self, bytes: &[u8]) -> Memory {
        let memory = self.driver.allocate(Device(0), bytes.len().max(1) as u64);
        let memory = memory.expect("memory");
        self.driver.write(at(&memory), bytes).expect("room");
        memory
    }

    fn function(&mut self, kernel: &Kernel) -> Result<Function, DriverError> {
        if let Some(known) = self.functions.get(&kernel.instance) {
            return Ok(*known);
        }
        let only = BTreeSet::from([kernel.instance.clone()]);
        let loaded = load_kernels(&mut self.driver, Device(0), &only)?;
        self.functions.extend(loaded);
        Ok(self.functions[&kernel.instance])
    }

    /// Runs a kernel on copies of tensors. `in_place` names an operand and the result that shares its memory.
    pub(super) fn launch(
        &mut self,
        (kernel, size): (&Kernel, Option<u64>),
        (mut operands, mut results): (Vec<Stored>, Vec<Stored>),
        in_place: Option<(usize, usize)>,
    ) -> Result<Left, DriverError> {
        let function = self.function(kernel)?;
        let mut views = Vec::new();
        let mut memories = Vec::new();
        for (i, stored) in operands.iter().chain(&results).enumerate() {
            let shared = match in_place {
                Some((operand, result)) if i == operands.len() + result => Some(operand),
                _ => None,
            };
            let memory = match shared {
                Some(operand) => memories[operand],
                None => self.memory(stored.bytes()),
            };
            memories.push(memory);
            let stored = shared.map_or(stored, |operand| &operands[operand]);
            views.push(TensorView {
                address: memory.address + stored.offset() as u64,
                dims: stored.dims(),
                strides: stored.strides(),
            });
        }
        let driver = &mut self.driver;
        let on = (Device(0), function);
        let launch = StandaloneLaunch::new(driver, on, kernel, &views, size)?;
        let mut spec = GraphSpec::default();
        spec.push(kernel.instance.name(), Work::Kernel(launch.node()), &[]);
        let graph = driver.instantiate(spec)?;
        driver.launch(graph)?;
        let done = driver.synchronize();
        driver.discard(graph)?;
        let fault = launch.fault(driver)?;
        let has_zero_counters = launch.has_zero_counters(driver, kernel)?;
        let read = memories.iter().map(|m| driver.bytes_read(*m));
        let read = read.collect();
        let count = operands.len();
        for (memory, stored) in memories.iter().zip(operands.iter_mut()) {
            driver.read(at(memory), stored.bytes_mut())?;
        }
        if in_place.is_none() {
            for (memory, stored) in memories[count..].iter().zip(results.iter_mut()) {
                driver.read(at(memory), stored.bytes_mut())?;
            }
        }
        let shared = |i: usize| in_place.is_some_and(|(_, result)| i == count + result);
        for (i, memory) in memories.into_iter().enumerate() {
            if !shared(i) {
                driver.free(memory)?;
            }
        }
        launch.free(driver)?;
        done?;
        assert!(has_zero_counters, "counters are left zero");
        Ok(Left {
            operands,
            results,
            read,
            fault,
        })
    }
}

pub(super) fn kernel(case: &Case) -> Result<(Kernel, Option<u64>), Failure> {
    let operands = case.operands.iter().map(|a| Sizes::new(a.dtype, a.dims));
    let results = case.results.iter().map(|r| Sizes::new(r.0, r.1));
    let request = Request {
        operands: &operands.collect::<Vec<_>>(),
        results: &results.collect::<Vec<_>>(),
        options: case.options,
        multiprocessors: 2,
    };
    let kernel = select(&case.op, &request).map_err(|e| Failure::NoKernel(e.to_string()))?;
    let size = tpc_cpu::host::size_of(&case.op).and_then(Dim::as_const);
    Ok((kernel, size))
}

/// Adds the rounding of the kernel to the tolerance.
pub(super) fn tolerated(case: &Case, kernel: &Kernel) -> Case {
    Case {
        tolerance: case.tolerance + kernel.rounding(),
        ..case.clone()
    }
}

impl ExecutorUnderTest for Rig {
    fn run(
        &mut self,
        case: &Case,
        operands: &mut [Stored],
        results: &mut [Stored],
        in_place: Option<(usize, usize)>,
    ) -> Result<(), Failure> {
        let (kernel, size) = kernel(case)?;
        let tensors = (operands.to_vec(), results.to_vec());
        let left = self.launch((&kernel, size), tensors, in_place);
        let left = left.map_err(|e| Failure::Other(e.to_string()))?;
        operands.clone_from_slice(&left.operands);
        results.clone_from_slice(&left.results);
        match left.fault {
            None => Ok(()),
            Some((index, bound)) => Err(Failure::Index {
                what: None,
                index,
                bound,
            }),
        }
    }

    fn operands(&self, case: &Case, random: &Random) -> Vec<Stored> {
        aligned_operands(case, random)
    }

    fn results(&self, case: &Case, operands: &[Stored], random: &Random) -> Vec<Stored> {
        aligned_results(case, operands, random)
    }

    fn tolerance(&self, case: &Case) -> f64 {
        kernel(case).map_or(case.tolerance, |(kernel, _)| {
            tolerated(case, &kernel).tolerance
        })
    }
}
