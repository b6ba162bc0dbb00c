//! Launch times of the first device and of the host, measured on the first worker up to the barrier after each
//! launch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tpc_ir::op::Work;
use tpc_ir::program::{Program, Step};
use tpc_ir::{Bindings, Launch};
use tpc_runtime::{KernelTime, launch_work};

use crate::target::ROWS16;
use crate::worker::Worker;

const WAIT: &str = "wait";

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
    operations: AtomicU64,
}

impl Counter {
    fn count(&self, time: Duration, work: Work) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let ns = time.as_nanos() as u64;
        self.nanoseconds.fetch_add(ns, Ordering::Relaxed);
        self.bytes.fetch_add(work.bytes as u64, Ordering::Relaxed);
        self.operations
            .fetch_add(work.flops as u64, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Profile {
    launches: Vec<Counter>,
    /// The work of each launch, for the sizes of the last batch.
    work: Vec<Work>,
    waits: Counter,
}

impl Profile {
    pub(super) fn new(program: &Program) -> Profile {
        Profile {
            launches: program
                .launches
                .iter()
                .map(|_| Counter::default())
                .collect(),
            work: vec![Work::NONE; program.launches.len()],
            waits: Counter::default(),
        }
    }

    /// Computes the work of the launches for batches of these sizes.
    pub(super) fn resize(&mut self, program: &Program, sizes: &Bindings) {
        for (i, work) in self.work.iter_mut().enumerate() {
            *work = launch_work(program, Launch::new(i), sizes);
        }
    }

    /// Returns the start time of a step if the worker is timed.
    pub(super) fn begin(&self, worker: &Worker<'_>) -> Option<Instant> {
        let counted = worker.number() == 0;
        counted.then(Instant::now)
    }

    pub(super) fn end(&self, step: &Step, begun: Instant) {
        let time = begun.elapsed();
        match step {
            Step::Launch(launch) => {
                let i = launch.index();
                self.launches[i].count(time, self.work[i]);
            }
            Step::Wait { .. } => self.waits.count(time, Work::NONE),
        }
    }

    pub(super) fn take(&self, program: &Program) -> Vec<KernelTime> {
        let launches = self.launches.iter().enumerate();
        let named = launches.map(|(i, c)| (kernel(program, Launch::new(i)), c));
        let mut out = Vec::new();
        for (kernel, counter) in named.chain([(WAIT.to_owned(), &self.waits)]) {
            let calls = counter.calls.swap(0, Ordering::Relaxed);
            let ns = counter.nanoseconds.swap(0, Ordering::Relaxed);
            let bytes = counter.bytes.swap(0, Ordering::Relaxed);
            let operations = counter.operations.swap(0, Ordering::Relaxed);
            if calls > 0 {
                let time = Duration::from_nanos(ns);
                KernelTime::add(
                    &mut out,
                    vec![KernelTime {
                        kernel,
                        calls,
                        time,
                        bytes,
                        operations,
                    }],
                );
            }
        }
        out
    }
}

/// Returns a launch's kernel and packed weight type, such as `mul_mat q4_k`.
fn kernel(program: &Program, launch: Launch) -> String {
    let data = program.launch(launch);
    let first = data.covered_insts().first();
    let weight = first.and_then(|inst| program.graph.inst(*inst).operands.first());
    let packed = weight.filter(|&&v| {
        let home = program.home(v);
        home.is_some_and(|h| program.buffer(h.buffer).format == ROWS16)
    });
    match packed {
        Some(&v) => format!("{} {}", data.kernel, program.graph.value(v).ty.dtype),
        None => data.kernel.clone(),
    }
}
