use tpc_cuda::{
    Args, CopyNode, Driver, DriverError, Endpoint, FaultKind, GraphSpec, Memory, SetNode, Work,
};
use tpc_cuda_emulator::{Build, EmulatedOptions};

use crate::support::{Rig, at, rig};

const KERNELS: &str = r"
DEVICE float block_sum(float v) {
    SHARED(float, part, 32);
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : 0.0f;
    return warp_sum(v);
}
KERNEL(sums, const float *x, float *y, u32 n) {
    float s = 0;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
    s = block_sum(threadIdx.x < n ? s : 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
KERNEL(add, float *x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] += by; }
KERNEL(scale, float *x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
KERNEL(scan, const float *x, float *y) {
    float v = x[threadIdx.x];
    for (u32 o = 1; o < 32; o *= 2) {
        float w = __shfl_up_sync(0xffffffffu, v, o);
        if (threadIdx.x >= o) v += w;
    }
    y[threadIdx.x] = v;
}
KERNEL(reduce, float *const *from, u32 *const *flags, float *to, u32 rank, u32 ranks, u32 n) {
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 r = 0; r < ranks; r++) store_release(flags[r] + rank, 1u);
        for (u32 r = 0; r < ranks; r++) while (load_acquire(flags[rank] + r) == 0) {}
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float s = 0;
        for (u32 r = 0; r < ranks; r++) s += from[r][i];
        to[i] = s;
    }
}
KERNEL(forever, const u32 *flag) { while (load_acquire(flag) == 0) {} }
";

fn seeded(seed: u64, build: Build) -> EmulatedOptions {
    EmulatedOptions {
        seed,
        build,
        ..EmulatedOptions::default()
    }
}

fn read(rig: &mut Rig, memory: Memory) -> Vec<f32> {
    let mut bytes = vec![0; memory.bytes as usize];
    rig.driver.read(at(memory), &mut bytes).expect("room");
    let words = bytes.chunks_exact(4);
    let words = words.map(|w| f32::from_le_bytes(w.try_into().expect("four bytes")));
    words.collect()
}

#[test]
fn blocks_sum_through_shared_memory() {
    for seed in 0..4 {
        for build in [Build::Plain, Build::Checked] {
            let Some(mut rig) = rig(KERNELS, seeded(seed, build)) else {
                return;
            };
            let x: Vec<f32> = (0..600_u16).map(f32::from).collect();
            let x_at = rig.floats(0, &x);
            let y_at = rig.floats(0, &[0.0; 3]);
            let args = Args::new().u64(x_at.address).u64(y_at.address).u32(200);
            let mut spec = GraphSpec::default();
            let sums = rig.kernel(0, "sums", 3, 96, args);
            spec.push("sums", sums, &[]);
            rig.run(spec).expect("a graph that runs");
            let sums: Vec<f32> = x.chunks(200).map(|c| c.iter().sum()).collect();
            assert_eq!(read(&mut rig, y_at), sums);
        }
    }
}

#[test]
fn lanes_read_lanes() {
    let Some(mut rig) = rig(KERNELS, seeded(1, Build::Plain)) else {
        return;
    };
    let x_at = rig.floats(0, &[1.0; 32]);
    let y_at = rig.floats(0, &[0.0; 32]);
    let args = Args::new().u64(x_at.address).u64(y_at.address);
    let mut spec = GraphSpec::default();
    let scan = rig.kernel(0, "scan", 1, 32, args);
    spec.push("scan", scan, &[]);
    rig.run(spec).expect("a graph that runs");
    let counted: Vec<f32> = (1..=32_u8).map(f32::from).collect();
    assert_eq!(read(&mut rig, y_at), counted);
}

#[test]
fn edges_order_and_nothing_else_does() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..16 {
        let Some(mut rig) = rig(KERNELS, seeded(seed, Build::Plain)) else {
            return;
        };
        let x_at = rig.floats(0, &[1.0; 64]);
        let args = |by| Args::new().u64(x_at.address).f32(by);
        let (add, scale) = (
            rig.kernel(0, "add", 2, 32, args(1.0)),
            rig.kernel(0, "scale", 2, 32, args(3.0)),
        );
        let mut spec = GraphSpec::default();
        let first = spec.push("add", add, &[]);
        spec.push("scale", scale, &[first]);
        rig.run(spec).expect("a graph that runs");
        assert_eq!(read(&mut rig, x_at), [6.0; 64]);
        let (add, scale) = (
            rig.kernel(0, "add", 1, 1, args(1.0)),
            rig.kernel(0, "scale", 1, 1, args(3.0)),
        );
        let mut spec = GraphSpec::default();
        spec.push("add", add, &[]);
        spec.push("scale", scale, &[]);
        rig.run(spec).expect("a graph that runs");
        seen.insert(read(&mut rig, x_at)[0].to_bits());
    }
    assert_eq!(seen.len(), 2, "both orders occur");
}

#[test]
fn nodes_are_timed_one_after_another() {
    let Some(mut rig) = rig(KERNELS, seeded(1, Build::Checked)) else {
        return;
    };
    let x_at = rig.floats(0, &[1.0; 64]);
    let args = |by| Args::new().u64(x_at.address).f32(by);
    let (add, scale) = (
        rig.kernel(0, "add", 2, 32, args(1.0)),
        rig.kernel(0, "scale", 2, 32, args(3.0)),
    );
    let mut spec = GraphSpec::default();
    // Without an edge, these nodes would race.
    spec.push("add", add, &[]);
    spec.push("scale", scale, &[]);
    let graph = rig.driver.instantiate_timed(spec).expect("a graph");
    for _ in 0..2 {
        rig.driver.launch(graph).expect("a launch");
        let times = rig.driver.node_times(graph).expect("times");
        assert!(times.len() == 2 && times.iter().all(|t| !t.is_zero()));
    }
    assert_eq!(read(&mut rig, x_at), [21.0; 64]);
    let plain = rig
        .driver
        .instantiate(GraphSpec::default())
        .expect("a graph");
    assert!(rig.driver.node_times(plain).is_err());
}

#[test]
fn devices_sum_by_flags() {
    for seed in 0..8 {
        let options = EmulatedOptions {
            devices: 4,
            seed,
            ..EmulatedOptions::default()
        };
        let Some(mut rig) = rig(KERNELS, options) else {
            return;
        };
        let n = 100;
        let parts: Vec<_> = (0..4_u8)
            .map(|d| rig.floats(d.into(), &[f32::from(d) + 1.0; 100]))
            .collect();
        let flags: Vec<_> = (0..4).map(|d| rig.bytes(d, &[0; 16])).collect();
        let addresses = |m: &[tpc_cuda::Memory]| {
            m.iter()
                .flat_map(|m| m.address.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let mut spec = GraphSpec::default();
        let mut results = Vec::new();
        for d in 0..4 {
            for o in 0..4 {
                rig.driver
                    .grant(tpc_cuda::Device(d), tpc_cuda::Device(o))
                    .expect("peers");
            }
            let from = rig.bytes(d, &addresses(&parts));
            let flag = rig.bytes(d, &addresses(&flags));
            let to = rig.floats(d, &[0.0; 100]);
            let args = Args::new()
                .u64(from.address)
                .u64(flag.address)
                .u64(to.address)
                .u32(d)
                .u32(4)
                .u32(n);
            let work = rig.kernel(d, "reduce", 1, 64, args);
            spec.push(format!("reduce on {d}"), work, &[]);
            results.push(to);
        }
        rig.run(spec).expect("a graph that runs");
        for to in results {
            assert_eq!(read(&mut rig, to), [10.0; 100]);
        }
    }
}

#[test]
fn copies_fills_and_the_host_take_part() {
    let options = EmulatedOptions {
        devices: 2,
        ..EmulatedOptions::default()
    };
    let Some(mut rig) = rig(KERNELS, options) else {
        return;
    };
    let x_at = rig.floats(0, &[1.0; 8]);
    let y_at = rig.floats(1, &[7.0; 8]);
    let host = rig.driver.allocate_host(32).expect("memory");
    let pointer = host.address;
    let mut spec = GraphSpec::default();
    let value = SetNode {
        to: Endpoint {
            side: x_at.side,
            address: x_at.address + 16,
        },
        value: 0,
        bytes: 16,
    };
    let set = spec.push("fill", Work::Set(value), &[]);
    let copy = CopyNode {
        from: at(x_at),
        to: at(host),
        bytes: 32,
    };
    let down = spec.push("down", Work::Copy(copy), &[set]);
    let double = move || {
        #[expect(unsafe_code, reason = "memory that the driver shares")]
        // SAFETY: the driver owns this host memory until it is dropped, and edges order the copies before and after.
        let floats = unsafe { std::slice::from_raw_parts_mut(pointer as *mut f32, 8) };
        floats.iter_mut().for_each(|v| *v = *v * 2.0 + 1.0);
        Ok(())
    };
    let work = spec.push("double", Work::Host(Box::new(double)), &[down]);
    let copy = CopyNode {
        from: at(host),
        to: at(y_at),
        bytes: 32,
    };
    spec.push("up", Work::Copy(copy), &[work]);
    rig.run(spec).expect("a graph that runs");
    assert_eq!(
        read(&mut rig, y_at),
        [3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    );

    let mut spec = GraphSpec::default();
    let fails = Work::Host(Box::new(|| Err("no such row".into())));
    let fails = spec.push("look up", fails, &[]);
    spec.push("after", Work::Host(Box::new(|| panic!("it ran"))), &[fails]);
    let error = rig.run(spec).expect_err("the host fails");
    assert_eq!(error.to_string(), "look up: no such row");
}

#[test]
fn what_is_never_set_is_waited_for_in_vain() {
    let Some(mut rig) = rig(KERNELS, seeded(3, Build::Plain)) else {
        return;
    };
    let flag = rig.bytes(0, &[0; 4]);
    let args = Args::new().u64(flag.address);
    let mut spec = GraphSpec::default();
    let work = rig.kernel(0, "forever", 2, 32, args);
    spec.push("waits", work, &[]);
    match rig.run(spec) {
        Err(DriverError::Fault(f)) => {
            assert_eq!(
                (f.kind, f.kernel.as_str()),
                (FaultKind::Deadlock, "forever"),
                "{f}"
            );
            assert!(f.at.starts_with("test.cu:"), "{f}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let Some(mut rig) = rig(KERNELS, seeded(0, Build::Plain)) else {
        return;
    };
    let mut refused = |grid, block, args| {
        let mut spec = GraphSpec::default();
        let work = rig.kernel(0, "add", grid, block, args);
        spec.push("bad", work, &[]);
        rig.run(spec)
            .expect_err("the launch exceeds a limit")
            .to_string()
    };
    let args = || Args::new().u64(0).f32(1.0);
    assert!(refused(0, 32, args()).contains("0 blocks"));
    assert!(refused(1, 1025, args()).contains("1025 threads"));
    assert!(refused(1, 32, Args::new().u64(0)).contains("takes arguments of [8, 4] bytes"));
}

#[test]
fn what_does_not_compile_is_told_with_its_line() {
    let Some(mut rig) = rig(KERNELS, seeded(0, Build::Plain)) else {
        return;
    };
    let module = tpc_cuda::Module::new("broken", "KERNEL(k, int *x) {\n    x[0] = y;\n}\n");
    let error = rig
        .driver
        .load(tpc_cuda::Device(0), &module)
        .expect_err("y is not declared");
    assert!(error.to_string().contains("broken.cu:2"), "{error}");
    assert!(matches!(error, DriverError::Compile { .. }));
}
