//! Runs cases on a device.

use std::collections::{BTreeMap, BTreeSet};

use tpc_cuda::kernels::{Instance, Kernel, Terms};
use tpc_cuda::{
    Device, Driver, DriverError, Function, GraphSpec, Memory, StandaloneLaunch, TensorView, Work,
    load_kernels,
};
use tpc_op_cases::Stored;

use super::super::check::Bench;
use super::super::memory::{at, device};
use super::super::report::{CheckError, Finding};
use super::case::KernelCase;

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// Returns the number of multiprocessors of a device.
pub(super) fn multiprocessors<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result<u32> {
    let info = bench.driver()?.devices().get(on[0]);
    Ok(info.map_or(1, |i| i.multiprocessors))
}

/// The memory of a case, and its launches in order.
struct Prepared {
    operands: Vec<Memory>,
    results: Vec<Memory>,
    more: Vec<Memory>,
    launches: Vec<(StandaloneLaunch, Kernel)>,
}

struct Runner<'d, D: Driver> {
    driver: &'d mut D,
    device: Device,
    functions: BTreeMap<Instance, Function>,
}

fn view(stored: &Stored, memory: Memory) -> TensorView {
    TensorView {
        address: memory.address + stored.offset() as u64,
        dims: stored.dims(),
        strides: stored.strides(),
    }
}

impl<D: Driver> Runner<'_, D> {
    fn memory(&mut self, bytes: &[u8]) -> std::result::Result<Memory, DriverError> {
        let memory = self
            .driver
            .allocate(self.device, bytes.len().max(1) as u64)?;
        self.driver.write(at(memory), bytes)?;
        Ok(memory)
    }

    fn launch(
        &mut self,
        kernel: &Kernel,
        views: &[TensorView],
        size: Option<u64>,
    ) -> std::result::Result<(StandaloneLaunch, Kernel), DriverError> {
        let function = self.functions[&kernel.instance];
        let on = (self.device, function);
        let launch = StandaloneLaunch::new(self.driver, on, kernel, views, size)?;
        Ok((launch, kernel.clone()))
    }

    /// Writes the operands to the device, and prepares the launches.
    fn prepare(&mut self, case: &KernelCase) -> std::result::Result<Prepared, DriverError> {
        let mut out = Prepared {
            operands: Vec::new(),
            results: Vec::new(),
            more: Vec::new(),
            launches: Vec::new(),
        };
        for stored in &case.operands {
            out.operands.push(self.memory(stored.bytes())?);
        }
        for stored in &case.results {
            out.results.push(self.memory(stored.bytes())?);
        }
        let operands = case.operands.iter().zip(&out.operands);
        let mut views: Vec<TensorView> = operands.map(|(s, m)| view(s, *m)).collect();
        if let Some(planes) = &case.planes {
            let weight = self.memory(&planes.weight)?;
            out.more.push(weight);
            views[0] = TensorView {
                address: weight.address,
                strides: [0; 4],
                ..views[0]
            };
            if let Some(kernel) = &planes.terms {
                let [k, n1, n2, n3] = views[1].dims;
                let column = Terms::of(k).column;
                let bytes = (column * n1 * n2 * n3) as u64;
                let terms = self.driver.allocate(self.device, bytes)?;
                out.more.push(terms);
                let split = TensorView {
                    address: terms.address,
                    strides: [4, column, column * n1, column * n1 * n2],
                    ..views[1]
                };
                let launch = self.launch(kernel, &[views[1], split], None)?;
                out.launches.push(launch);
                views[1] = split;
            }
        }
        let results = case.results.iter().zip(&out.results);
        views.extend(results.map(|(s, m)| view(s, *m)));
        let launch = self.launch(&case.kernel, &views, case.size)?;
        out.launches.push(launch);
        Ok(out)
    }

    fn start(
        &mut self,
        launches: &[(StandaloneLaunch, Kernel)],
    ) -> std::result::Result<(), DriverError> {
        let mut spec = GraphSpec::default();
        let mut last: Vec<usize> = Vec::new();
        for (launch, kernel) in launches {
            let work = Work::Kernel(launch.node());
            last = vec![spec.push(kernel.instance.name(), work, &last)];
        }
        let graph = self.driver.instantiate(spec)?;
        self.driver.launch(graph)?;
        let done = self.driver.synchronize();
        self.driver.discard(graph)?;
        done
    }

    fn read(
        &mut self,
        memories: &[Memory],
        stored: &[Stored],
    ) -> std::result::Result<Vec<Stored>, DriverError> {
        let mut out = stored.to_vec();
        for (memory, stored) in memories.iter().zip(&mut out) {
            self.driver.read(at(*memory), stored.bytes_mut())?;
        }
        Ok(out)
    }

    /// Runs a case. Returns the difference from the reference.
    fn run(&mut self, case: &KernelCase) -> std::result::Result<Option<String>, DriverError> {
        let prepared = self.prepare(case)?;
        self.start(&prepared.launches)?;
        let operands = self.read(&prepared.operands, &case.operands)?;
        let results = self.read(&prepared.results, &case.results)?;
        let mut wrong = case.wrong(&operands, &results);
        for (launch, kernel) in prepared.launches {
            if let Some((index, bound)) = launch.fault(self.driver)? {
                wrong = Some(format!("the kernel found index {index} of {bound}"));
            }
            if !launch.has_zero_counters(self.driver, &kernel)? {
                wrong = wrong.or(Some("the kernel left a counter".to_owned()));
            }
            launch.free(self.driver)?;
        }
        let Prepared {
            operands,
            results,
            more,
            ..
        } = prepared;
        for memory in operands.into_iter().chain(results).chain(more) {
            self.driver.free(memory)?;
        }
        Ok(wrong)
    }
}

fn instances(cases: &[KernelCase]) -> BTreeSet<Instance> {
    let kernels = cases.iter().flat_map(|c| {
        let terms = c.planes.as_ref().and_then(|p| p.terms.as_ref());
        terms.into_iter().chain([&c.kernel])
    });
    kernels.map(|k| k.instance.clone()).collect()
}

/// Compiles the kernels of all cases together, and runs the cases. `about` counts the ops or types.
pub(super) fn run_cases<D: Driver>(
    bench: &mut Bench<D>,
    on: &[usize],
    cases: &[KernelCase],
    about: &str,
) -> Result {
    if cases.is_empty() {
        return Ok(Finding::skipped("no random case has such a kernel"));
    }
    let device = device(on[0]);
    let instances = instances(cases);
    let driver = bench.driver()?;
    let functions = load_kernels(driver, device, &instances)?;
    let mut runner = Runner {
        driver,
        device,
        functions,
    };
    let (mut count, mut first) = (0, None);
    for case in cases {
        let wrong = runner.run(case);
        let wrong = wrong.map_err(|e| CheckError::from(e).at(&case.name()))?;
        if let Some(wrong) = wrong {
            count += 1;
            first.get_or_insert((case, wrong));
        }
    }
    let n = cases.len();
    Ok(match first {
        None => {
            let text = format!("{n} cases of {about} agree with the CPU");
            Finding::ok(text)
                .with("cases", n as f64)
                .with("kernels", instances.len() as f64)
        }
        Some((case, wrong)) => {
            let text = format!(
                "{count} of {n} cases differ from the CPU; {}: {wrong}",
                case.name()
            );
            let seed = case.seed;
            let cure = format!(
                "`tpc doctor --seed {seed}` begins with this case; check the card with other programs, update the driver \
                 and NVRTC, and report the failure if it stays"
            );
            Finding::failed(text, cure).with("wrong_cases", count as f64)
        }
    })
}
