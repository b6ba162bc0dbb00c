use tpc_cuda::{Args, FaultKind, GraphSpec};

use crate::support::Rig;
use crate::{ORDERS, Planted, found};

fn launch(threads: u32) -> impl Fn(&mut Rig) -> GraphSpec {
    move |rig| {
        let values: Vec<f32> = (0..256_u16).map(f32::from).collect();
        let x = rig.floats(0, &values);
        let y = rig.floats(0, &values);
        let mut spec = GraphSpec::default();
        let args = Args::new().u64(x.address).u64(y.address);
        let work = rig.kernel(0, "k", 2, threads, args);
        spec.push("a launch", work, &[]);
        spec
    }
}

#[test]
fn missing_barrier() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 128);
    part[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 128 + threadIdx.x] = part[127 - threadIdx.x];
}
",
        change: ("    __syncthreads();\n", ""),
        line: "part[127 - threadIdx.x]",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(128));
}

#[test]
fn missing_barrier_before_the_next_round() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 64);
    float sum = 0;
    for (u32 i = 0; i < 2; i++) {
        part[threadIdx.x] = x[i * 64 + threadIdx.x];
        __syncthreads();
        sum += part[63 - threadIdx.x];
        __syncthreads(); // the round ends
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}
",
        change: ("        __syncthreads(); // the round ends\n", ""),
        line: "part[threadIdx.x] = ",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(64));
}

#[test]
fn missing_warp_sync() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 64);
    u32 warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
    part[warp + lane] = x[threadIdx.x];
    __syncwarp();
    y[blockIdx.x * 64 + threadIdx.x] = part[warp + (lane + 1) % 32];
}
",
        change: ("    __syncwarp();\n", ""),
        line: "part[warp + ",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(64));
}

#[test]
fn a_shuffle_orders_no_memory() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 32);
    part[threadIdx.x] = x[threadIdx.x];
    float all = warp_sum(x[threadIdx.x]);
    __syncwarp();
    y[blockIdx.x * 32 + threadIdx.x] = part[31 - threadIdx.x] + all;
}
",
        change: ("    __syncwarp();\n", ""),
        line: "part[31 - threadIdx.x]",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(32));
}

#[test]
fn a_sync_of_half_a_warp_orders_that_half() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 32);
    u32 half = threadIdx.x / 16 * 16, lane = threadIdx.x % 16;
    part[threadIdx.x] = x[threadIdx.x];
    __syncwarp(0xffffu << half);
    y[blockIdx.x * 32 + threadIdx.x] = part[half + 15 - lane];
}
",
        change: ("part[half + 15 - lane]", "part[31 - threadIdx.x]"),
        line: "part[31 - threadIdx.x]",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(32));
}

#[test]
fn divergent_barrier() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    float v = x[threadIdx.x];
    __syncthreads();
    v = warp_sum(v); // all lanes
    y[blockIdx.x * 64 + threadIdx.x] = v;
}
",
        change: (
            "    __syncthreads();\n",
            "    if (threadIdx.x < 40) __syncthreads();\n",
        ),
        line: "if (threadIdx.x < 40)",
        kinds: &[FaultKind::Divergence],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(64));
}

#[test]
fn barriers_at_two_places() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    if (threadIdx.x < 32) y[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x >= 32) y[blockIdx.x * 64 + threadIdx.x] = 0.0f;
}
",
        change: (
            "    __syncthreads();\n",
            "    if (threadIdx.x < 32) { __syncthreads(); }\n    else { __syncthreads(); }\n",
        ),
        line: "if (threadIdx.x < 32) { __syncthreads(); }",
        kinds: &[FaultKind::Divergence],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(64));
}

#[test]
fn blocks_that_write_the_same_word() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    if (threadIdx.x == 0) atomicAdd(y, x[blockIdx.x]); // a sum
}
",
        change: ("atomicAdd(y, x[blockIdx.x]);", "*y += x[blockIdx.x];"),
        line: "// a sum",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(32));
}

#[test]
fn the_last_block_without_the_acquire() {
    let planted = Planted {
        right: r"
KERNEL(k, u32 *x, float *y) {
    SHARED(u32, last, 1);
    y[1 + blockIdx.x * 32 + threadIdx.x] = 1.0f;
    if (blockIdx.x == 0 && threadIdx.x == 0) x[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0) *last = add_acq_rel(x + 1, 1u) + 1;
    __syncthreads();
    u32 begun = 0;
    if (*last == begun + gridDim.x + 0x3f800000u) y[0] += y[1] + y[33]; // all blocks
}
",
        change: ("add_acq_rel(x + 1, 1u)", "atomicAdd(x + 1, 1u)"),
        line: "// all blocks",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    // The counter starts at the bit pattern of 1.0. Thread 0 of the last block computes all sums.
    let graph = |rig: &mut Rig| {
        let mut spec = launch(32)(rig);
        spec.nodes[0].label = "counts".into();
        spec
    };
    found(
        &Planted {
            right: planted
                .right
                .replace("if (*last ==", "if (threadIdx.x == 0 && *last ==")
                .leak(),
            ..planted
        },
        1,
        &graph,
    );
}

#[test]
fn a_copy_that_is_not_waited_for() {
    let planted = Planted {
        right: r"
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 128);
    cp_async16(part + threadIdx.x * 4, x + threadIdx.x * 4);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = part[127 - threadIdx.x]; // elsewhere
}
",
        change: (
            "    cp_async_wait<0>();\n    __syncthreads();\n",
            "    __syncthreads();\n    cp_async_wait<0>();\n",
        ),
        line: "// elsewhere",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 1, &launch(32));
}
