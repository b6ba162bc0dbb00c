//! Every kernel against the reference: random sizes, layouts in memory, element types and attributes, on emulated devices that
//! check each access, in random orders. Bytes between the elements of a result stay as they were.
//!
//! An op without a case fails [`every_op_has_a_case_or_no_kernel`]. Where there is no C++ compiler, the tests say so and pass.

mod attention;
mod prompt;

use std::collections::HashMap;

use tpc_cuda::kernels::{Kernel, Request, Tensor as Sizes, select};
use tpc_cuda::{
    Device, Driver, DriverError, Endpoint, Function, GraphSpec, Memory, Module, Work, kernel_node,
};
use tpc_cuda_emulator::{Build, EmulatedDriver, EmulatedOptions};
use tpc_ir::op::Op;
use tpc_ir::{DType, Dim};
use tpc_op_cases::{
    Case, Random, Stored, difference, expected, generator, operands, out_of_range, refused,
};
use tpc_runtime::{Data, Shape};

/// Cases per op.
const CASES: u64 = 4;

/// A device with the kernels that it has loaded.
struct Rig {
    driver: EmulatedDriver,
    functions: HashMap<String, Function>,
}

/// What a kernel left: its results, and the index out of range that it told of.
struct Left {
    operands: Vec<Stored>,
    results: Vec<Stored>,
    /// The bytes of each that were read, as often as they were; of the checked build.
    read: Vec<u64>,
    fault: Option<(i64, i64)>,
}

fn rig(seed: u64, build: Build) -> Option<Rig> {
    let options = EmulatedOptions {
        seed,
        build,
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..EmulatedOptions::default()
    };
    match EmulatedDriver::new(options) {
        Err(e @ DriverError::NoCompiler { .. }) => {
            tpc_op_cases::skip(e);
            None
        }
        driver => Some(Rig {
            driver: driver.expect("a device"),
            functions: HashMap::new(),
        }),
    }
}

fn at(memory: &Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

impl Rig {
    fn memory(&mut self, bytes: &[u8]) -> Memory {
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

    /// Runs a kernel on copies of these tensors, of which some may be one memory.
    fn run(
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

/// The kernel of a case, and the size in its attributes that it works with.
fn kernel(case: &Case) -> (Kernel, Option<u64>) {
    let operands = case.operands.iter().map(|a| Sizes::new(a.dtype, a.dims));
    let results = case.results.iter().map(|r| Sizes::new(r.0, r.1));
    let request = Request {
        operands: &operands.collect::<Vec<_>>(),
        results: &results.collect::<Vec<_>>(),
        options: case.options,
        multiprocessors: 2,
    };
    let kernel = select(&case.op, &request).unwrap_or_else(|e| panic!("{e}: {case:?}"));
    (
        kernel,
        tpc_cpu::host::size_of(&case.op).and_then(Dim::as_const),
    )
}

/// The case's results in memory full of a pattern. An update is given what it updates.
fn results(case: &Case, operands: &[Stored], random: &Random) -> Vec<Stored> {
    let shapes = case.results.iter();
    let shapes = shapes.map(|&(dtype, dims)| Shape { dtype, dims });
    match case.op.is_update() {
        true => vec![operands[0].clone()],
        false => shapes
            .map(|s| Stored::poison(s, random).aligned())
            .collect(),
    }
}

/// A case with the tolerance of its kernel: weights of prompts, and values that are decoded, have the 11 bits of f16.
fn tolerated(case: &Case, kernel: &Kernel) -> Case {
    let more = match kernel.instance.name().starts_with("flash_prefill") {
        true => 6e-4,
        false => 0.0,
    };
    Case {
        tolerance: case.tolerance + more,
        ..case.clone()
    }
}

/// Runs a case, and again in place where it may be. What is wrong, in words.
fn check(case: &Case, rig: &mut Rig, random: &Random) -> Result<(), String> {
    let stored: Vec<Stored> = operands(case, random)
        .into_iter()
        .map(Stored::aligned)
        .collect();
    let shapes: Vec<Shape> = case
        .results
        .iter()
        .map(|&(dtype, dims)| Shape { dtype, dims })
        .collect();
    let wanted = expected(case, &stored, &shapes);
    let (kernel, size) = kernel(case);
    let case = &tolerated(case, &kernel);
    let outputs = results(case, &stored, random);
    let tensors = (stored.clone(), outputs.clone());
    let left = rig.run((&kernel, size), tensors, None);
    let left = left.map_err(|e| format!("{e}: {case:?}"))?;
    let holds = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what}: {case:?}")),
    };
    holds(left.fault.is_none(), "an index is out of range")?;
    holds(left.operands == stored, "an operand has changed")?;
    for ((found, before), wanted) in left.results.iter().zip(&outputs).zip(&wanted) {
        difference(case, found, wanted).map_or(Ok(()), Err)?;
        holds(found.same_gaps(before), "bytes beside the result")?;
    }
    if let Some((operand, result)) = case.in_place
        && case.operands[operand].dtype == case.results[result].0
    {
        let left = rig.run((&kernel, size), (stored, outputs), Some((operand, result)));
        let left = left.map_err(|e| format!("in place: {e}: {case:?}"))?;
        let difference = difference(case, &left.operands[operand], &wanted[result]);
        difference.map_or(Ok(()), |d| Err(format!("in place: {d}")))?;
    }
    Ok(())
}

fn names() -> impl Iterator<Item = &'static str> {
    Op::NAMES.iter().flat_map(|names| names.iter().copied())
}

fn check_ops(names: impl Iterator<Item = &'static str>, build: Build) {
    let Some(mut rig) = rig(7, build) else {
        return;
    };
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for name in names.filter(|n| n.contains(&only)) {
        let Some(generate) = generator(name) else {
            continue;
        };
        for seed in 0..CASES {
            let random = Random::new(name, seed);
            failed.extend(check(&generate(name, &random), &mut rig, &random).err());
        }
    }
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}

#[test]
fn kernels_of_half_the_ops_agree_with_the_reference() {
    check_ops(names().step_by(2), Build::Checked);
}

#[test]
fn kernels_of_the_other_ops_agree_with_the_reference() {
    check_ops(names().skip(1).step_by(2), Build::Checked);
}

#[test]
fn every_op_has_a_case_or_no_kernel() {
    for name in names() {
        let has = generator(name).is_some();
        assert_ne!(has, refused(name), "{name}");
    }
}

#[test]
fn indices_out_of_range_are_told() {
    let Some(mut rig) = rig(3, Build::Plain) else {
        return;
    };
    for name in ["get_rows", "set_rows", "mul_mat_id", "add_id", "ssm_scan"] {
        for value in [-1, 1 << 20] {
            let case = out_of_range(name, value);
            let random = Random::new("failure", 0);
            let stored: Vec<Stored> = operands(&case, &random)
                .into_iter()
                .map(Stored::aligned)
                .collect();
            let outputs = results(&case, &stored, &random);
            let (kernel, size) = kernel(&case);
            let left = rig.run((&kernel, size), (stored, outputs), None);
            let left = left.unwrap_or_else(|e| panic!("{name}: {e}"));
            let (index, bound) = left.fault.unwrap_or_else(|| panic!("{name} told nothing"));
            assert_eq!(index, value, "{name}");
            assert!(bound > 0 && bound < 1 << 20, "{name}: {bound}");
        }
    }
}

/// Weights of every format, also those that nothing encodes here, as products read them: against the decoder.
#[test]
fn weights_of_every_format_are_decoded() {
    let Some(mut rig) = rig(5, Build::Plain) else {
        return;
    };
    for &dtype in DType::ALL.iter().filter(|t| !t.is_integer()) {
        let n = dtype.block_len() as usize * 3;
        let random = Random::new(dtype.name(), 1);
        let bytes = dtype.block_bytes() as usize * 3;
        // Scales of one byte pattern are neither infinite nor NaN.
        let bytes: Vec<u8> = (0..bytes).map(|_| random.below(0x70) as u8).collect();
        let mut wanted = vec![0.0; n];
        tpc_runtime::quant::dequantise(dtype, &bytes, &mut wanted).expect("a decoder");
        let request = Request {
            operands: &[Sizes::new(dtype, [n, 1, 1, 1])],
            results: &[Sizes::new(DType::F32, [n, 1, 1, 1])],
            options: tpc_runtime::Options::default(),
            multiprocessors: 2,
        };
        let op = Op::Copy(tpc_ir::op::Copy);
        let kernel = select(&op, &request).unwrap_or_else(|e| panic!("{e}"));
        let zeros = Data::F64(vec![0.0; n]);
        let mut x = Stored::poison(
            Shape {
                dtype,
                dims: [n, 1, 1, 1],
            },
            &random,
        )
        .dense();
        x.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        let y = Stored::of(DType::F32, [n, 1, 1, 1], &zeros, &random).dense();
        let left = rig.run((&kernel, None), (vec![x], vec![y]), None);
        let left = left.unwrap_or_else(|e| panic!("{dtype}: {e}"));
        let found = left.results[0].tensor();
        let found = found.reals().expect("reals");
        for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
            let w = f64::from(*w);
            let near = *f == w || (f - w).abs() <= 1e-6 * w.abs().max(1e-30);
            assert!(near, "{dtype} element {i}: found {f}, expected {w}");
        }
    }
}
