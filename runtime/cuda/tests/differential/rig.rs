use std::collections::HashMap;

use tpc_cuda::kernels::{Kernel, Request, Tensor as Sizes, select};
use tpc_cuda::{
    Device, Driver, DriverError, Endpoint, Function, GraphSpec, Memory, Module, Work, kernel_node,
};
use tpc_cuda_emulator::{Build, EmulatedOptions};
use tpc_ir::Dim;
use tpc_op_cases::suite::{ExecutorUnderTest, Failure};
use tpc_op_cases::{Case, Random, Stored, operands};
use tpc_test_devices::TestDriver;

pub(super) struct Rig {
    pub(super) driver: TestDriver,
    pub(super) functions: HashMap<String, Function>,
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
        functions: HashMap::new(),
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
        let name = kernel.instance.entry();
        if let Some(known) = self.functions.get(&name) {
            return Ok(*known);
        }
        let source = kernel.instance.single_kernel_source();
        let module = Module::new(source.name, source.text);
        let module = self.driver.load(Device(0), &module)?;
        let function = self.driver.function(module, &name)?;
        self.functions.insert(name, function);
        Ok(function)
    }

    /// Runs a kernel on copies of tensors. `in_place` names an operand and the result that shares its memory.
    pub(super) fn launch(
        &mut self,
        (kernel, size): (&Kernel, Option<u64>),
        (mut operands, mut results): (Vec<Stored>, Vec<Stored>),
        in_place: Option<(usize, usize)>,
    ) -> Result<Left, DriverError> {
        let function = self.function(kernel)?;
        let mut frame = Vec::new();
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
            frame.extend((memory.address + stored.offset() as u64).to_ne_bytes());
            let sizes = stored.dims().map(|n| (n as u32).to_ne_bytes());
            frame.extend(sizes.as_flattened());
            let strides = stored.strides().map(|n| (n as u64).to_ne_bytes());
            frame.extend(strides.as_flattened());
        }
        if let Some(size) = size {
            frame.extend([0; 8]);
            frame.extend((size as u32).to_ne_bytes());
            frame.extend([0; 44]);
        }
        let counters = self.memory(&vec![0; kernel.scratch.counters as usize]);
        let parts = self
            .driver
            .allocate(Device(0), kernel.scratch.parts.max(1))?;
        if !kernel.scratch.is_none() {
            for memory in [counters, parts] {
                frame.extend(memory.address.to_ne_bytes());
                frame.extend([0; 48]);
            }
        }
        let frame = self.memory(&frame);
        let params = self.memory(&kernel.params);
        let fault = self.memory(&[0; 24]);
        let mut spec = GraphSpec::default();
        let addresses = [frame.address, params.address, fault.address];
        let node = kernel_node(kernel, function, addresses, 0);
        spec.push(kernel.instance.name(), Work::Kernel(node), &[]);
        let graph = self.driver.instantiate(spec)?;
        self.driver.launch(graph)?;
        let done = self.driver.synchronize();
        self.driver.discard(graph)?;
        let mut told = [0; 24];
        self.driver.read(at(&fault), &mut told)?;
        let mut counted = vec![1; kernel.scratch.counters as usize];
        self.driver.read(at(&counters), &mut counted)?;
        let read = memories.iter().map(|m| self.driver.bytes_read(*m));
        let read = read.collect();
        let count = operands.len();
        for (memory, stored) in memories.iter().zip(operands.iter_mut()) {
            self.driver.read(at(memory), stored.bytes_mut())?;
        }
        if in_place.is_none() {
            for (memory, stored) in memories[count..].iter().zip(results.iter_mut()) {
                self.driver.read(at(memory), stored.bytes_mut())?;
            }
        }
        let shared = |i: usize| in_place.is_some_and(|(_, result)| i == count + result);
        for (i, memory) in memories.into_iter().enumerate() {
            if !shared(i) {
                self.driver.free(memory)?;
            }
        }
        for memory in [frame, params, fault, counters, parts] {
            self.driver.free(memory)?;
        }
        done?;
        assert!(counted.iter().all(|b| *b == 0), "counters are left zero");
        let (words, _) = told.as_chunks::<8>();
        let [head, index, bound] = [0, 1, 2].map(|i| i64::from_ne_bytes(words[i]));
        Ok(Left {
            operands,
            results,
            read,
            fault: (head as u32 != 0).then_some((index, bound)),
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

/// Returns result memory with a pattern, or a copy of an updated tensor.
pub(super) fn results(case: &Case, operands: &[Stored], random: &Random) -> Vec<Stored> {
    let shapes = case.shapes().into_iter();
    match case.op.is_update() {
        true => vec![operands[0].clone()],
        false => shapes
            .map(|s| Stored::poison(s, random).aligned())
            .collect(),
    }
}

/// Adds the tolerance of the kernel: attention weights of prompts, and decoded values, have the 11 bits of f16.
pub(super) fn tolerated(case: &Case, kernel: &Kernel) -> Case {
    let more = match kernel.instance.name().starts_with("flash_prefill") {
        true => 6e-4,
        false => 0.0,
    };
    Case {
        tolerance: case.tolerance + more,
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
        let stored = operands(case, random).into_iter();
        stored.map(Stored::aligned).collect()
    }

    fn results(&self, case: &Case, operands: &[Stored], random: &Random) -> Vec<Stored> {
        results(case, operands, random)
    }

    fn tolerance(&self, case: &Case) -> f64 {
        kernel(case).map_or(case.tolerance, |(kernel, _)| {
            tolerated(case, &kernel).tolerance
        })
    }
}
