use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use tpc_cuda::kernels::{
    Halves, Instance, Kernel, Request, Scratch, Tensor, Terms, WideForm, modules, reads_halves,
    select, select_halves, select_terms,
};
use tpc_cuda::{Device, Driver, Endpoint, Function, GraphSpec, Memory, Module, Work, kernel_node};
use tpc_cuda_emulator::{Build, EmulatedOptions};
use tpc_ir::DType;
use tpc_ir::op::{GetRows, MulMat, MulMatId, Op};
use tpc_runtime::Options;
use tpc_test_devices::TestDriver;

use crate::Weight;
use tpc_cuda::planes::Planes;

pub(crate) struct Rig {
    driver: TestDriver,
    functions: HashMap<String, Function>,
}

#[derive(Clone, Copy)]
pub(crate) struct Seen {
    tensor: Tensor,
    at: Memory,
    strides: [usize; 4],
}

impl Seen {
    pub(crate) fn rows(&self) -> [usize; 2] {
        [self.tensor.max_dims[0], self.tensor.max_dims[1]]
    }

    /// Returns a view with one column per batch.
    pub(crate) fn as_batches(self) -> Seen {
        let [k, n, ..] = self.tensor.max_dims;
        let [element, column, ..] = self.strides;
        Seen {
            tensor: Tensor {
                max_dims: [k, 1, n, 1],
                ..self.tensor
            },
            strides: [element, column, column, column * n],
            ..self
        }
    }

    /// Returns a contiguous view of the same memory with other sizes.
    pub(crate) fn shown(self, dims: [usize; 4]) -> Seen {
        let size = self.tensor.dtype.block_bytes() as usize;
        let row = size * dims[0] / self.tensor.dtype.block_len() as usize;
        Seen {
            tensor: Tensor {
                max_dims: dims,
                ..self.tensor
            },
            strides: [size, row, row * dims[1], row * dims[1] * dims[2]],
            ..self
        }
    }
}

fn at(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

impl Rig {
    pub(crate) fn new(seed: u64) -> Option<Rig> {
        let options = EmulatedOptions {
            seed,
            build: Build::Checked,
            cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
            ..EmulatedOptions::default()
        };
        let mut rig = Rig {
            driver: TestDriver::new(options)?,
            functions: HashMap::new(),
        };
        rig.load();
        Some(rig)
    }

    fn memory(&mut self, bytes: &[u8]) -> Memory {
        let memory = self.driver.allocate(Device(0), bytes.len().max(1) as u64);
        let memory = memory.expect("memory");
        self.driver.write(at(memory), bytes).expect("room");
        memory
    }

    /// Allocates a contiguous tensor, uninitialised if `bytes` is `None`.
    pub(crate) fn dense(&mut self, dtype: DType, dims: [usize; 4], bytes: Option<&[u8]>) -> Seen {
        let size = dtype.block_bytes() as usize;
        let at = match bytes {
            Some(bytes) => self.memory(bytes),
            None => {
                let n = dims.iter().product::<usize>() * size;
                self.driver.allocate(Device(0), n as u64).expect("memory")
            }
        };
        Seen {
            tensor: Tensor::new(dtype, dims),
            at,
            strides: [
                size,
                size * dims[0],
                size * dims[0] * dims[1],
                size * dims[0] * dims[1] * dims[2],
            ],
        }
    }

    pub(crate) fn weight(&mut self, weight: &Weight) -> Seen {
        let at = self.memory(&weight.bytes);
        let tensor = Tensor {
            format: Planes::FORMAT,
            ..Tensor::new(weight.dtype, weight.dims)
        };
        Seen {
            tensor,
            at,
            strides: [0; 4],
        }
    }

    fn load(&mut self) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let alone = ONE_AT_A_TIME.lock();
        let instances: BTreeSet<Instance> = crate::types().flat_map(instances).collect();
        for source in modules(&instances) {
            let module = Module::new(source.name, source.text);
            let module = self.driver.load(Device(0), &module);
            let module = module.unwrap_or_else(|e| panic!("{e}"));
            for name in instances.iter().map(Instance::entry) {
                let function = self.driver.function(module, &name).expect("the kernel");
                self.functions.insert(name, function);
            }
        }
        drop(alone);
    }

    fn function(&mut self, kernel: &Kernel) -> Function {
        let name = kernel.instance.entry();
        if let Some(known) = self.functions.get(&name) {
            return *known;
        }
        let source = kernel.instance.single_kernel_source();
        let module = Module::new(source.name, source.text);
        let module = self.driver.load(Device(0), &module);
        let module = module.unwrap_or_else(|e| panic!("{e}"));
        let function = self.driver.function(module, &name).expect("the kernel");
        self.functions.insert(name, function);
        function
    }

    fn node(&mut self, kernel: &Kernel, seen: &[Seen], scratch: [Memory; 2]) -> Work {
        let mut frame = Vec::new();
        for s in seen {
            frame.extend(s.at.address.to_ne_bytes());
            let sizes = s.tensor.max_dims.map(|n| (n as u32).to_ne_bytes());
            frame.extend(sizes.as_flattened());
            frame.extend(s.strides.map(|n| (n as u64).to_ne_bytes()).as_flattened());
        }
        if !kernel.scratch.is_none() {
            for memory in scratch {
                frame.extend(memory.address.to_ne_bytes());
                frame.extend([0; 48]);
            }
        }
        let function = self.function(kernel);
        let [frame, params, fault] =
            [frame.as_slice(), &kernel.params, &[0; 24]].map(|bytes| self.memory(bytes));
        let addresses = [frame, params, fault].map(|m| m.address);
        Work::Kernel(kernel_node(kernel, function, addresses, 0, |i| {
            seen[i].at.address
        }))
    }

    pub(crate) fn bytes(&mut self, seen: Seen) -> Vec<u8> {
        let ty = seen.tensor.dtype;
        let n = seen.tensor.max_dims.iter().product::<usize>() / ty.block_len() as usize;
        let mut bytes = vec![0; n * ty.block_bytes() as usize];
        self.driver.read(at(seen.at), &mut bytes).expect("room");
        bytes
    }

    pub(crate) fn copied(&mut self, seen: Seen) -> Seen {
        let bytes = self.bytes(seen);
        Seen {
            at: self.memory(&bytes),
            ..seen
        }
    }

    pub(crate) fn floats(&mut self, seen: Seen) -> Vec<f32> {
        let n: usize = seen.tensor.max_dims.iter().product();
        let mut bytes = vec![0; n * 4];
        self.driver.read(at(seen.at), &mut bytes).expect("room");
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|w| f32::from_ne_bytes(*w)).collect()
    }

    pub(crate) fn terms(&mut self, x: Seen) -> Seen {
        self.columns(x, 4, Terms::of(x.tensor.max_dims[0]).column)
    }

    pub(crate) fn halves(&mut self, x: Seen) -> Seen {
        self.columns(x, 2, Halves::of(x.tensor.max_dims[0]).column)
    }

    fn columns(&mut self, x: Seen, element: usize, column: usize) -> Seen {
        let [_, n1, n2, n3] = x.tensor.max_dims;
        let bytes = column * n1 * n2 * n3;
        let at = self.driver.allocate(Device(0), bytes as u64);
        Seen {
            at: at.expect("memory"),
            strides: [element, column, column * n1, column * n1 * n2],
            ..x
        }
    }

    pub(crate) fn chain(&mut self, kernels: &[(Kernel, Vec<Seen>)]) {
        let mut spec = GraphSpec::default();
        let mut before = Vec::new();
        // Kernels of a launch pass results through scratch memory.
        let scratch = kernels.iter().map(|(kernel, _)| kernel.scratch);
        let scratch = scratch.fold(Scratch::default(), Scratch::max);
        let counters = self.memory(&vec![0; scratch.counters as usize]);
        let parts = self.driver.allocate(Device(0), scratch.parts.max(1));
        let scratch = [counters, parts.expect("memory")];
        for (kernel, seen) in kernels {
            let node = self.node(kernel, seen, scratch);
            before = vec![spec.push(kernel.instance.name(), node, &before)];
        }
        let graph = self.driver.instantiate(spec).expect("a graph");
        self.driver.launch(graph).expect("the graph starts");
        let done = self.driver.synchronize();
        done.unwrap_or_else(|e| panic!("{e}"));
        self.driver.discard(graph).expect("the graph has ended");
    }

    pub(crate) fn rows(&mut self, op: &Op, weight: &Weight, ids: &[usize]) -> Vec<f32> {
        let bytes: Vec<u8> = ids.iter().flat_map(|i| (*i as i32).to_ne_bytes()).collect();
        let a = self.weight(weight);
        let ids = self.dense(DType::I32, [ids.len(), 1, 1, 1], Some(&bytes));
        let y = self.dense(
            DType::F32,
            [weight.dims[0], ids.tensor.max_dims[0], 1, 1],
            None,
        );
        let kernel = chosen(op, &[a, ids], y);
        self.chain(&[(kernel, vec![a, ids, y])]);
        self.floats(y)
    }

    pub(crate) fn product(
        &mut self,
        op: &Op,
        weight: &Weight,
        (x, dims): (&[f32], [usize; 4]),
        ids: Option<(&[usize], [usize; 4])>,
    ) -> Vec<f32> {
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let a = self.weight(weight);
        let x = self.dense(DType::F32, dims, Some(&bytes));
        let q = self.terms(x);
        let mut seen = vec![a, q];
        let mut result = [weight.dims[1], dims[1], dims[2], dims[3]];
        if let Some((ids, sizes)) = ids {
            let bytes: Vec<u8> = ids.iter().flat_map(|i| (*i as i32).to_ne_bytes()).collect();
            seen.push(self.dense(DType::I32, sizes, Some(&bytes)));
            result = [weight.dims[1], sizes[0], sizes[1], 1];
        }
        let y = self.dense(DType::F32, result, None);
        let kernel = chosen(op, &seen, y);
        seen.push(y);
        let mut kernels = vec![(request(&[x], &[q], select_terms), vec![x, q])];
        if reads_halves(WideForm::Columns, &x.tensor) && matches!(op, Op::MulMat(_)) {
            let h = self.halves(x);
            seen.push(h);
            kernels.push((request(&[x], &[h], select_halves), vec![x, h]));
        }
        kernels.push((kernel, seen));
        self.chain(&kernels);
        self.floats(y)
    }
}

fn instances(dtype: DType) -> Vec<Instance> {
    let k = dtype.block_len().max(32) as usize;
    let weight = Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(dtype, [k, 4, 2, 1])
    };
    let x = |n| Tensor::new(DType::F32, [k, n, 2, 1]);
    let ids = Tensor::new(DType::I32, [2, 2, 1, 1]);
    let window = None;
    let of = |op: Op, operands: &[Tensor]| -> Instance {
        let request = Request {
            operands,
            results: &[x(1)],
            options: Options::default(),
            multiprocessors: 2,
        };
        let kernel = select(&op, &request).unwrap_or_else(|e| panic!("{e}"));
        kernel.instance
    };
    let terms = Request {
        operands: &[x(1)],
        results: &[x(1)],
        options: Options::default(),
        multiprocessors: 2,
    };
    vec![
        of(MulMat.into(), &[weight, x(1)]),
        of(MulMat.into(), &[weight, x(2)]),
        of(MulMatId { window }.into(), &[weight, x(2), ids]),
        of(GetRows { window }.into(), &[weight, ids]),
        select_terms(&terms).expect("reals").instance,
    ]
}

pub(crate) fn chosen(op: &Op, operands: &[Seen], result: Seen) -> Kernel {
    request(operands, &[result], |r| select(op, r))
}

pub(crate) fn request<E: std::fmt::Display>(
    operands: &[Seen],
    results: &[Seen],
    select: impl Fn(&Request<'_>) -> Result<Kernel, E>,
) -> Kernel {
    let tensors = |seen: &[Seen]| seen.iter().map(|s| s.tensor).collect::<Vec<Tensor>>();
    let request = Request {
        operands: &tensors(operands),
        results: &tensors(results),
        options: Options::default(),
        multiprocessors: 2,
    };
    select(&request).unwrap_or_else(|e| panic!("{e}"))
}
