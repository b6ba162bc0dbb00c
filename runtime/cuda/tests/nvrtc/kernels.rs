//! The kernels of every op are compiled by NVRTC: what a C++ compiler takes is CUDA, too, and no kernel spills.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tpc_cuda::kernels::{ENTRY, Request, Tensor, select};
use tpc_cuda::nvrtc::{Nvrtc, TARGETS, whole};
use tpc_ir::op::Op;
use tpc_op_cases::{Case, Random, generator};

use crate::nvrtc;

/// Cases per op.
const CASES: u64 = 3;

/// The source of the kernel of a case, by its name.
fn source(case: &Case) -> Option<(String, String)> {
    let operands = case.operands.iter().map(|a| Tensor {
        dtype: a.dtype,
        most: a.dims,
    });
    let results = case.results.iter().map(|r| Tensor {
        dtype: r.0,
        most: r.1,
    });
    let request = Request {
        operands: &operands.collect::<Vec<_>>(),
        results: &results.collect::<Vec<_>>(),
        options: case.options,
        multiprocessors: 132,
    };
    let kernel = select(&case.op, &request).ok()?;
    Some((kernel.source.to_string(), kernel.name))
}

/// What is wrong with a kernel on a target, in words.
fn compile(nvrtc: &Nvrtc, name: &str, text: &str, target: &str) -> Option<String> {
    match nvrtc.compile(name, &whole(text), target) {
        Err(e) => Some(format!("{name}: {e}")),
        Ok(compiled) => {
            let names: Vec<&str> = compiled.kernels.iter().map(|k| k.kernel.as_str()).collect();
            (names != [ENTRY]).then(|| format!("{name} on {target}: {names:?}"))
        }
    }
}

#[test]
fn kernels_of_every_op_compile_for_cards() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut sources = BTreeMap::new();
    for name in Op::NAMES.iter().flat_map(|names| names.iter().copied()) {
        let Some(generate) = generator(name) else {
            continue;
        };
        let cases = (0..CASES).map(|seed| generate(name, &Random::new(name, seed)));
        sources.extend(cases.filter_map(|case| source(&case)));
    }
    assert!(sources.len() > 50, "{} kernels", sources.len());
    // Each for one target: all targets are met many times.
    let work = sources.iter().zip(TARGETS.iter().cycle());
    let (work, wrong) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic").next();
                    let Some(((text, name), target)) = next else {
                        return;
                    };
                    let found = compile(&nvrtc, name, text, target);
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
