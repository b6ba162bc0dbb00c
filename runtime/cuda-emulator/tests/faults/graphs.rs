use tpc_cuda::{Args, CopyNode, EdgeKind, FaultKind, GraphSpec, SetNode, Work};

use crate::support::{Rig, at};
use crate::{checked, run};

const KERNELS: &str = r"
KERNEL(add, const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] + 1.0f; }
KERNEL(half, const u16 *x, u16 *y) { y[2 * threadIdx.x] = x[2 * threadIdx.x]; }
KERNEL(early, const float *x, float *y) {
    launch_dependents();
    y[threadIdx.x] = x[threadIdx.x] + 1.0f; // after the trigger
}
KERNEL(waits, const float *x, float *y) {
    wait_dependencies();
    y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}
KERNEL(late, const float *x, float *y) {
    float v = x[threadIdx.x]; // before the wait
    wait_dependencies();
    y[threadIdx.x] = v + 1.0f;
}
";

/// Checks that the graph is correct in every order, and that the wrong variant has a fault in every order.
fn edges(graph: &dyn Fn(&mut Rig, bool) -> GraphSpec, line: &str, labels: [&str; 2]) {
    for seed in 0..12 {
        match run(KERNELS, checked(1, seed), &|rig| graph(rig, false)) {
            None => return,
            Some(right) => right.unwrap_or_else(|f| panic!("seed {seed}, without a fault: {f}")),
        }
        let wrong = run(KERNELS, checked(1, seed), &|rig| graph(rig, true));
        let fault = wrong.expect("a compiler").expect_err("a race");
        let told = fault.to_string();
        assert_eq!(fault.kind, FaultKind::Race, "seed {seed}: {told}");
        let number = KERNELS
            .lines()
            .position(|l| l.contains(line))
            .expect("the line")
            + 1;
        assert!(
            told.contains(&format!("test.cu:{number}")),
            "seed {seed}: {told}"
        );
        assert!(
            labels.iter().all(|l| told.contains(l)),
            "seed {seed}: {told}"
        );
    }
}

#[test]
fn missing_edge() {
    let graph = |rig: &mut Rig, wrong: bool| {
        let [x, y, z] = [1.0, 2.0, 3.0].map(|v| rig.floats(0, &[v; 32]));
        let args =
            |a: tpc_cuda::Memory, b: tpc_cuda::Memory| Args::new().u64(a.address).u64(b.address);
        let (first, second) = (
            rig.kernel(0, "add", 1, 32, args(x, y)),
            rig.kernel(0, "add", 1, 32, args(y, z)),
        );
        let mut spec = GraphSpec::default();
        let a = spec.push("l7 add", first, &[]);
        let join = spec.push("join", Work::Join, &[a]);
        spec.push(
            "l8 add",
            second,
            if wrong {
                &[]
            } else {
                std::slice::from_ref(&join)
            },
        );
        spec
    };
    edges(&graph, "KERNEL(add", ["l7 add", "l8 add"]);
}

#[test]
fn missing_edge_to_what_reads() {
    // The second launch overwrites data that the first launch still reads.
    let graph = |rig: &mut Rig, wrong: bool| {
        let [x, y, z] = [1.0, 2.0, 3.0].map(|v| rig.floats(0, &[v; 32]));
        let args =
            |a: tpc_cuda::Memory, b: tpc_cuda::Memory| Args::new().u64(a.address).u64(b.address);
        let (first, second) = (
            rig.kernel(0, "add", 1, 32, args(x, y)),
            rig.kernel(0, "add", 1, 32, args(z, x)),
        );
        let mut spec = GraphSpec::default();
        let a = spec.push("reader", first, &[]);
        spec.push(
            "writer",
            second,
            if wrong { &[] } else { std::slice::from_ref(&a) },
        );
        spec
    };
    edges(&graph, "KERNEL(add", ["reader", "writer"]);
}

#[test]
fn missing_edge_of_a_copy() {
    let graph = |rig: &mut Rig, wrong: bool| {
        let [x, y, z] = [1.0, 2.0, 3.0].map(|v| rig.floats(0, &[v; 32]));
        let args = Args::new().u64(x.address).u64(y.address);
        let work = rig.kernel(0, "add", 1, 32, args);
        let mut spec = GraphSpec::default();
        let a = spec.push("l7 add", work, &[]);
        let copy = CopyNode {
            from: at(y),
            to: at(z),
            bytes: 128,
        };
        spec.push(
            "copy out",
            Work::Copy(copy),
            if wrong { &[] } else { std::slice::from_ref(&a) },
        );
        spec
    };
    edges(&graph, "KERNEL(add", ["l7 add", "copy out"]);
    let graph = |rig: &mut Rig, wrong: bool| {
        let [x, y] = [1.0, 2.0].map(|v| rig.floats(0, &[v; 32]));
        let args = Args::new().u64(x.address).u64(y.address);
        let work = rig.kernel(0, "add", 1, 32, args);
        let mut spec = GraphSpec::default();
        let set = SetNode {
            to: at(y),
            value: 0,
            bytes: 128,
        };
        let a = spec.push("clear", Work::Set(set), &[]);
        spec.push(
            "l7 add",
            work,
            if wrong { &[] } else { std::slice::from_ref(&a) },
        );
        spec
    };
    edges(&graph, "KERNEL(add", ["l7 add", "clear"]);
}

#[test]
fn halves_of_words_are_apart() {
    // Two launches without an edge may write different halves of the same words, but not the same halves.
    let graph = |rig: &mut Rig, wrong: bool| {
        let x = rig.bytes(0, &[0; 128]);
        let y = rig.bytes(0, &[0; 128]);
        let odd = if wrong { 0 } else { 2 };
        let args = |by: u64| Args::new().u64(x.address + by).u64(y.address + by);
        let (first, second) = (
            rig.kernel(0, "half", 1, 32, args(0)),
            rig.kernel(0, "half", 1, 32, args(odd)),
        );
        let mut spec = GraphSpec::default();
        spec.push("even", first, &[]);
        spec.push("odd", second, &[]);
        spec
    };
    edges(&graph, "KERNEL(half", ["even", "odd"]);
}

#[test]
fn programmatic_edges_order_after_the_wait() {
    let graph = |second: &'static str| {
        move |rig: &mut Rig, wrong: bool| {
            let [x, y, z] = [1.0, 2.0, 3.0].map(|v| rig.floats(0, &[v; 32]));
            let args = |a: tpc_cuda::Memory, b: tpc_cuda::Memory| {
                Args::new().u64(a.address).u64(b.address)
            };
            let name = if wrong { second } else { "waits" };
            let (first, second) = (
                rig.kernel(0, "early", 1, 32, args(x, y)),
                rig.kernel(0, name, 1, 32, args(y, z)),
            );
            let after = rig.kernel(0, "add", 1, 32, args(y, x));
            let mut spec = GraphSpec::default();
            let a = spec.push("first", first, &[]);
            let b = spec.push("second", second, &[a]);
            spec.edges[0].kind = EdgeKind::Programmatic;
            spec.push("third", after, &[b]);
            spec
        }
    };
    edges(&graph("late"), "// before the wait", ["first", "second"]);
}

#[test]
fn programmatic_edges_ask_for_a_wait() {
    let graph = |rig: &mut Rig| {
        let [x, y, z] = [1.0, 2.0, 3.0].map(|v| rig.floats(0, &[v; 32]));
        let args =
            |a: tpc_cuda::Memory, b: tpc_cuda::Memory| Args::new().u64(a.address).u64(b.address);
        let (first, second) = (
            rig.kernel(0, "early", 1, 32, args(x, y)),
            rig.kernel(0, "add", 1, 32, args(x, z)),
        );
        let mut spec = GraphSpec::default();
        let a = spec.push("first", first, &[]);
        spec.push("second", second, &[a]);
        spec.edges[0].kind = EdgeKind::Programmatic;
        spec
    };
    if let Some(result) = run(KERNELS, checked(1, 1), &graph) {
        let fault = result.expect_err("the kernel never waits");
        assert!(
            fault
                .to_string()
                .contains("no thread calls wait_dependencies"),
            "{fault}"
        );
    }
}
