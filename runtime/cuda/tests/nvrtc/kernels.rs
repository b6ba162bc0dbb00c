//! NVRTC compiles the kernels of every op. No kernel spills, and the registers of every block fit.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tpc_cuda::kernels::{Instance, Kernel, Request, Tensor, select};
use tpc_cuda::nvrtc::{Nvrtc, TARGETS, with_prelude};
use tpc_ir::op::Op;
use tpc_op_cases::{Case, Random, generator};

use crate::nvrtc;
use crate::resources::Threads;

const CASES: u64 = 3;

fn kernel(case: &Case) -> Option<Kernel> {
    let operands = case.operands.iter().map(|a| Tensor::new(a.dtype, a.dims));
    let results = case.results.iter().map(|r| Tensor::new(r.0, r.1));
    let request = Request {
        operands: &operands.collect::<Vec<_>>(),
        results: &results.collect::<Vec<_>>(),
        options: case.options,
        multiprocessors: 132,
    };
    select(&case.op, &request).ok()
}

fn compile(nvrtc: &Nvrtc, instance: &Instance, target: &str, threads: &Threads) -> Vec<String> {
    let (name, module) = (instance.name(), instance.single_kernel_source());
    match nvrtc.compile(name, &with_prelude(&module.text), target) {
        Err(e) => vec![format!("{name}: {e}")],
        Ok(compiled) => {
            let sized = compiled
                .sizes()
                .get(&instance.entry())
                .is_some_and(|n| *n > 0);
            let names: Vec<&str> = compiled.kernels.iter().map(|k| k.kernel.as_str()).collect();
            let mut faults = threads.faults(&compiled, target, nvrtc.version());
            if names != [instance.entry()] || !sized {
                faults.push(format!("{name} on {target}: {names:?}"));
            }
            faults
        }
    }
}

#[test]
fn kernels_of_every_op_compile_for_cards() {
    let Some(nvrtc) = nvrtc() else { return };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let (mut sources, mut threads) = (BTreeSet::new(), Threads::default());
    for name in Op::NAMES.iter().flat_map(|names| names.iter().copied()) {
        let Some(generate) = generator(name) else {
            continue;
        };
        let cases = (0..CASES).map(|seed| generate(name, &Random::new(name, seed)));
        for kernel in cases.filter_map(|case| kernel(&case)) {
            threads.add(&kernel);
            sources.insert(kernel.instance);
        }
    }
    assert!(sources.len() > 50, "{} kernels", sources.len());
    let names: BTreeSet<String> = sources.iter().map(Instance::entry).collect();
    assert_eq!(names.len(), sources.len(), "names are unique");
    // Each kernel for one target, or for all.
    let count = if full { TARGETS.len() } else { 1 };
    let work = sources.iter().enumerate();
    let work = work.flat_map(|(i, instance)| {
        (0..count).map(move |t| (instance, TARGETS[(i + t) % TARGETS.len()]))
    });
    let (work, wrong) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic").next();
                    let Some((instance, target)) = next else {
                        return;
                    };
                    let found = compile(&nvrtc, instance, target, &threads);
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        sources.len(),
        wrong.join("\n")
    );
}
