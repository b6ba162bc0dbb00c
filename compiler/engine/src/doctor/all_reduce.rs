//! Sums over two devices (all-reduce), as the executor runs them: each device adds the operands of both.

use std::collections::{BTreeMap, BTreeSet};

use tpc_core::format::bytes;
use tpc_cuda::kernels::{Instance, Kernel, Request, Tensor, select, select_collective};
use tpc_cuda::{
    Driver, DriverError, Function, Graph, GraphSpec, Memory, Side, StandaloneLaunch, TensorView,
    Work, load_kernels,
};
use tpc_ir::DType;
use tpc_ir::op::{AllReduce, Copy};
use tpc_runtime::Options;

use super::check::Bench;
use super::measurements::shortest;
use super::memory::{allocate, at, device};
use super::peers::join;
use super::report::{CheckError, Finding, REPORT_BUG};

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// The sizes of the operands in bytes, with the names of their times in microseconds.
pub(super) const SIZES: [(usize, &str); 3] = [
    (16 << 10, "all_reduce_16_kib_us"),
    (256 << 10, "all_reduce_256_kib_us"),
    (4 << 20, "all_reduce_4_mib_us"),
];

/// Sums in a graph. Each sum doubles the numbers, so [`shortest`] must not exceed the range of f32.
const ROUNDS: usize = 20;
/// Sums in a graph of emulated devices.
const ROUNDS_EMULATED: usize = 2;

const CURE: &str = "run with one device (`--devices cuda:0`), and report this bug in tpc with the output of \
                    `tpc doctor --format json`";

/// Two devices with operands of one size.
struct Sum<'d, D: Driver> {
    driver: &'d mut D,
    elements: usize,
    /// Two buffers per device. Sums alternate between them.
    buffers: Vec<[Memory; 2]>,
    /// Copies of the operands in host memory, for devices without peer access.
    staging: Vec<Memory>,
    launches: Vec<StandaloneLaunch>,
}

fn view(memory: Memory, elements: usize) -> TensorView {
    let row = elements * 4;
    TensorView {
        address: memory.address,
        dims: [elements, 1, 1, 1],
        strides: [4, row, row, row],
    }
}

/// Returns the kernels of a device: its part of the sum, and the copy to host memory.
fn kernels(rank: usize, elements: usize, units: u32) -> Result<[Kernel; 2]> {
    let x = Tensor::new(DType::F32, [elements, 1, 1, 1]);
    let (operands, results) = ([x, x], [x]);
    let request = |operands| Request {
        operands,
        results: &results,
        options: Options::default(),
        multiprocessors: units,
    };
    let bug = |e: tpc_cuda::kernels::Unsupported| CheckError::new(e.to_string(), REPORT_BUG);
    let sum = select_collective(&AllReduce.into(), rank, &request(&operands)).map_err(bug)?;
    let copy = select(&Copy.into(), &request(&operands[..1])).map_err(bug)?;
    Ok([sum, copy])
}

/// Returns the numbers of a device, small integers.
fn numbers(rank: usize, elements: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7 + rank * 3) % 15) as f32 - 6.0;
    (0..elements).map(number).collect()
}

impl<D: Driver> Sum<'_, D> {
    fn allocate(&mut self, joined: bool) -> std::result::Result<(), DriverError> {
        let n = self.elements * 4;
        for rank in 0..2 {
            let side = Side::Device(device(rank));
            let pair = [
                allocate(self.driver, side, n)?,
                allocate(self.driver, side, n)?,
            ];
            self.buffers.push(pair);
            let values = numbers(rank, self.elements);
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
            self.driver.write(at(pair[0]), &bytes)?;
            if !joined {
                self.staging.push(allocate(self.driver, Side::Host, n)?);
            }
        }
        Ok(())
    }

    /// Adds a launch on a device to a graph. Returns its node.
    fn push(
        &mut self,
        (rank, kernel, functions): (usize, &Kernel, &Functions),
        views: &[Memory],
        (spec, after): (&mut GraphSpec, &[usize]),
    ) -> std::result::Result<usize, DriverError> {
        let on = (device(rank), functions[rank][&kernel.instance]);
        let views: Vec<TensorView> = views.iter().map(|m| view(*m, self.elements)).collect();
        let launch = StandaloneLaunch::new(self.driver, on, kernel, &views, None)?;
        let work = Work::Kernel(launch.node());
        self.launches.push(launch);
        Ok(spec.push(kernel.instance.name(), work, after))
    }

    /// Creates a graph of sums. A device starts a sum after both devices have ended the previous one.
    fn graph(
        &mut self,
        rounds: usize,
        kernels: &[[Kernel; 2]],
        functions: &Functions,
    ) -> std::result::Result<Graph, DriverError> {
        let mut spec = GraphSpec::default();
        let mut last: Vec<usize> = Vec::new();
        for round in 0..rounds {
            let (from, to) = (round % 2, 1 - round % 2);
            let mut operands: Vec<Memory> = self.buffers.iter().map(|b| b[from]).collect();
            if !self.staging.is_empty() {
                let mut copied = Vec::new();
                for (rank, [_, copy]) in kernels.iter().enumerate() {
                    let what = (rank, copy, functions);
                    let hop = [operands[rank], self.staging[rank]];
                    copied.push(self.push(what, &hop, (&mut spec, &last))?);
                }
                operands.clone_from(&self.staging);
                last = copied;
            }
            let mut summed = Vec::new();
            for (rank, [sum, _]) in kernels.iter().enumerate() {
                let what = (rank, sum, functions);
                let views = [operands[0], operands[1], self.buffers[rank][to]];
                summed.push(self.push(what, &views, (&mut spec, &last))?);
            }
            last = summed;
        }
        self.driver.instantiate(spec)
    }

    /// Describes the first wrong number after `rounds` sums.
    fn wrong(&mut self, rounds: usize) -> std::result::Result<Option<String>, DriverError> {
        let [first, second] = [0, 1].map(|rank| numbers(rank, self.elements));
        let scale = (2.0_f32).powi(rounds as i32 - 1);
        for (rank, buffers) in self.buffers.iter().enumerate() {
            let mut found = vec![0; self.elements * 4];
            self.driver.read(at(buffers[rounds % 2]), &mut found)?;
            let (words, _) = found.as_chunks::<4>();
            let found = words.iter().map(|w| f32::from_ne_bytes(*w));
            let expected = first.iter().zip(&second).map(|(a, b)| (a + b) * scale);
            let pair = found.zip(expected).enumerate().find(|(_, (f, e))| f != e);
            if let Some((i, (found, expected))) = pair {
                let place = format!("element {i} of device {rank}");
                return Ok(Some(format!("{place} is {found} instead of {expected}")));
            }
        }
        Ok(None)
    }

    fn free(self) -> std::result::Result<(), DriverError> {
        for launch in self.launches {
            launch.free(self.driver)?;
        }
        let buffers = self.buffers.into_iter().flatten();
        buffers
            .chain(self.staging)
            .try_for_each(|m| self.driver.free(m))
    }
}

/// The loaded kernels of each device.
type Functions = Vec<BTreeMap<Instance, Function>>;

/// Measures sums of each size. All sums are compared with the right numbers.
pub(super) fn all_reduce<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    // A device may occur twice, so the devices are opened for this check.
    bench.close();
    let cards: Vec<u32> = on.iter().map(|i| bench.setup.cards[*i]).collect();
    let mut driver = (bench.setup.open)(&cards)?;
    let rounds = match bench.setup.emulated {
        true => ROUNDS_EMULATED,
        false => ROUNDS,
    };
    let joined = join(&mut driver, &[0, 1])?;
    let units: Vec<u32> = driver.devices().iter().map(|i| i.multiprocessors).collect();
    let mut functions = Functions::new();
    for (rank, units) in units.iter().enumerate() {
        let [sum, copy] = kernels(rank, 1, *units)?;
        let mut needed = BTreeSet::from([sum.instance]);
        needed.extend((!joined).then_some(copy.instance));
        functions.push(load_kernels(&mut driver, device(rank), &needed)?);
    }
    let mut finding = Finding::ok("");
    let mut texts = Vec::new();
    for (n, figure) in SIZES {
        let mut sum = Sum {
            driver: &mut driver,
            elements: n / 4,
            buffers: Vec::new(),
            staging: Vec::new(),
            launches: Vec::new(),
        };
        sum.allocate(joined)?;
        let kernels = [0, 1].map(|rank| kernels(rank, n / 4, units[rank]));
        let kernels: Result<Vec<[Kernel; 2]>> = kernels.into_iter().collect();
        let graph = sum.graph(rounds, &kernels?, &functions)?;
        sum.driver.launch(graph)?;
        sum.driver.synchronize()?;
        let size = bytes(n as u64);
        if let Some(wrong) = sum.wrong(rounds)? {
            let text = format!("{rounds} sums of {size}: {wrong}");
            return Ok(Finding::failed(text, CURE));
        }
        let time = shortest(sum.driver, graph)? / rounds as f64 * 1e6;
        sum.driver.discard(graph)?;
        sum.free()?;
        texts.push(format!("{size} in {time:.1} µs"));
        finding = finding.with(figure, time);
    }
    finding.text = texts.join(", ");
    if !joined {
        finding.text.push_str(", through the host's memory");
    }
    Ok(finding)
}
