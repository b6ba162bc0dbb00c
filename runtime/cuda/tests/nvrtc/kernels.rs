//! NVRTC compiles the kernels of every op. No kernel spills.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tpc_cuda::kernels::{Instance, Request, Tensor, select};
use tpc_cuda::nvrtc::{Nvrtc, TARGETS, with_prelude};
use tpc_ir::op::Op;
use tpc_op_cases::{Case, Random, generator};

use crate::nvrtc;

const CASES: u64 = 3;

fn instance(case: &Case) -> Option<Instance> {
    let operands = case.operands.iter().map(|a| Tensor::new(a.dtype, a.dims));
    let results = case.results.iter().map(|r| Tensor::new(r.0, r.1));
    let request = Request {
        operands: &operands.collect::<Vec<_>>(),
        results: &results.collect::<Vec<_>>(),
        options: case.options,
        multiprocessors: 132,
    };
    let kernel = select(&case.op, &request).ok()?;
    Some(kernel.instance)
}

fn compile(nvrtc: &Nvrtc, instance: &Instance, target: &str) -> Option<String> {
    let (name, module) = (instance.name(), instance.single_kernel_source());
    match nvrtc.compile(name, &with_prelude(&module.text), target) {
        Err(e) => Some(format!("{name}: {e}")),
        Ok(compiled) => {
            let sized = compiled
                .sizes()
                .get(&instance.entry())
                .is_some_and(|n| *n > 0);
            let names: Vec<&str> = compiled.kernels.iter().map(|k| k.kernel.as_str()).collect();
            (names != [instance.entry()] || !sized)
                .then(|| format!("{name} on {target}: {names:?}"))
        }
    }
}

#[test]
fn kernels_of_every_op_compile_for_cards() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut sources = BTreeSet::new();
    for name in Op::NAMES.iter().flat_map(|names| names.iter().copied()) {
        let Some(generate) = generator(name) else {
            continue;
        };
        let cases = (0..CASES).map(|seed| generate(name, &Random::new(name, seed)));
        sources.extend(cases.filter_map(|case| instance(&case)));
    }
    assert!(sources.len() > 50, "{} kernels", sources.len());
    let names: BTreeSet<String> = sources.iter().map(Instance::entry).collect();
    assert_eq!(names.len(), sources.len(), "names are unique");
    let work = sources.iter().zip(TARGETS.iter().cycle());
    let (work, wrong) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic").next();
                    let Some((instance, target)) = next else {
                        return;
                    };
                    let found = compile(&nvrtc, instance, target);
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
