//! A kernel may start before its predecessor ends. Premature reads are detected.

use std::collections::BTreeSet;

use tpc_cuda::kernels::{Instance, Kernel, Request, Tensor, Terms, modules, select, select_terms};
use tpc_cuda::planes::Planes;
use tpc_cuda::{
    DriverError, EdgeKind, Fault, FaultKind, Function, GraphSpec, Memory, Work, kernel_node,
};
use tpc_ir::DType;
use tpc_ir::op::MulMat;
use tpc_runtime::Options;

use crate::checked;
use crate::support::{Rig, rig};

/// K and rows: lanes that share rows, and warps with weights as arguments.
const VIEWED: [usize; 2] = [256, 9];
const ARGUMENTS: [usize; 2] = [2048, 9];

fn kernels([k, rows]: [usize; 2]) -> [Kernel; 2] {
    let x = Tensor::new(DType::F32, [k, 1, 1, 1]);
    let a = Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(DType::Q4_0, [k, rows, 1, 1])
    };
    let y = Tensor::new(DType::F32, [rows, 1, 1, 1]);
    let request = Request {
        operands: &[x],
        results: &[x],
        options: Options::default(),
        multiprocessors: 2,
    };
    let apart = select_terms(&request);
    let product = select(
        &MulMat.into(),
        &Request {
            operands: &[a, x],
            results: &[y],
            ..request
        },
    );
    [apart.expect("reals"), product.expect("planes")]
}

fn view(at: Memory, sizes: [usize; 2], column: usize) -> Vec<u8> {
    let mut out = at.address.to_ne_bytes().to_vec();
    let sizes = [sizes[0], sizes[1], 1, 1];
    out.extend(sizes.iter().flat_map(|n| (*n as u32).to_ne_bytes()));
    let strides = [4, column, column, column];
    out.extend(strides.iter().flat_map(|n| (*n as u64).to_ne_bytes()));
    out
}

fn graph(rig: &mut Rig, kernels: &[Kernel; 2], [k, rows]: [usize; 2]) -> GraphSpec {
    let x = rig.floats(0, &vec![1.5; k]);
    let q = rig.bytes(0, &vec![0; Terms::of(k).column]);
    let planes = Planes::new(DType::Q4_0, k).expect("a type in planes");
    let (_, bytes) = planes.offsets(rows as u64).expect("small");
    let a = rig.bytes(0, &vec![1; bytes as usize]);
    let y = rig.floats(0, &vec![0.0; rows]);
    let terms = view(q, [k, 1], Terms::of(k).column);
    let frames = [
        [view(x, [k, 1], 4 * k), terms.clone()].concat(),
        [view(a, [k, rows], 0), terms, view(y, [rows, 1], 4 * rows)].concat(),
    ];
    let mut spec = GraphSpec::default();
    let mut before = Vec::new();
    for (kernel, frame) in kernels.iter().zip(frames) {
        let [frame, params, fault] = [frame, kernel.params.clone(), vec![0; 24]]
            .map(|b| rig.bytes(0, &[b, vec![0]].concat()));
        let function: Function = rig.function(0, &kernel.instance.entry());
        let addresses = [frame, params, fault].map(|m| m.address);
        let work = Work::Kernel(kernel_node(kernel, function, addresses, 0, |_| a.address));
        before = vec![spec.push(kernel.instance.name(), work, &before)];
    }
    spec.edges[0].kind = EdgeKind::Programmatic;
    spec
}

/// Replaces a text in the kernels and runs them; returns the fault, or `None` without a compiler.
fn found(sizes: [usize; 2], change: (&str, &str), seed: u64) -> Option<Result<(), Fault>> {
    let kernels = kernels(sizes);
    let instances: BTreeSet<Instance> = kernels.iter().map(|k| k.instance.clone()).collect();
    let source = modules(&instances).swap_remove(0).text;
    assert!(source.contains(change.0), "the change applies");
    let mut rig = rig(&source.replace(change.0, change.1), checked(1, seed))?;
    let spec = graph(&mut rig, &kernels, sizes);
    Some(match rig.run(spec) {
        Ok(()) => Ok(()),
        Err(DriverError::Fault(fault)) => Err(*fault),
        Err(other) => panic!("{other}"),
    })
}

/// Each change makes a kernel read before the wait.
fn check(sizes: [usize; 2], kernel: &str, right: &str, wrong: &[(&str, &str)]) {
    for seed in 0..4 {
        match found(sizes, (right, right), seed) {
            None => return,
            Some(result) => result.unwrap_or_else(|f| panic!("seed {seed}, without a fault: {f}")),
        }
        for (from, to) in wrong {
            let fault = found(sizes, (from, to), seed).expect("a compiler");
            let fault = fault.expect_err("a premature read");
            assert_eq!(fault.kind, FaultKind::Race, "seed {seed}: {fault}");
            assert!(fault.kernel.starts_with(kernel), "seed {seed}: {fault}");
        }
    }
}

#[test]
fn products_read_results_behind_the_wait_alone() {
    let [_, product] = kernels(VIEWED);
    let call = format!("{}(views, params);", product.instance.name());
    let right = format!("    wait_dependencies();\n    {call}");
    let early = format!("    {call}\n    wait_dependencies();");
    let never = format!("    {call}");
    let prefetch = "columns_prefetch<P, R>(v[0],";
    let asks = format!("prefetch_l2(v[1].at);\n    {prefetch}");
    let wrong = [
        (right.as_str(), early.as_str()),
        (&right, &never),
        (prefetch, &asks),
    ];
    check(VIEWED, "plane_columns", &right, &wrong);
}

#[test]
fn warps_load_weights_alone_before_the_wait() {
    let right = "        wait_dependencies();\n        if (q->ne[1] == 0) return;\n        float sums[R];\n        rows.add_all(q->at, sums);";
    let never = "        float sums[R];\n        rows.add_all(q->at, sums);";
    let early = format!("{never}\n        wait_dependencies();");
    check(ARGUMENTS, "gemv", right, &[(right, never), (right, &early)]);
}
