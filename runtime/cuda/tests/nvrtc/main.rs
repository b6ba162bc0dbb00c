//! Compiles kernels for every target. Skipped without NVRTC.

mod attention;
mod attention_path;
mod formats;
mod fused;
mod kernels;
mod planes;
mod resources;
mod step_model;

use tpc_cuda::nvrtc::{Cache, Nvrtc, NvrtcError, TARGETS, with_prelude};

fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::find() {
        Ok(found) => Some(found),
        Err(e) if e.is_absent() => {
            tpc_op_cases::skip(e);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// A kernel that uses every name of the prelude.
const ALL: &str = r"
CONSTANT int table[4] = {1, 2, 3, 4};
KERNEL_BOUNDED(128, everything, u32 *flags, u64 *wide, float *x, const uint4 *y, u16 *halves) {
    SHARED(uint4, part, 32);
    DYN_SHARED(float, more);
    u32 lane = threadIdx.x % 32;
    wait_dependencies();
    prefetch_l2(y);
    cp_async16(part + lane, y + lane);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    uint4 v = load_once(y + lane);
    u32 a[4] = {v.x, v.y, part[lane].x, part[lane].y}, b[2] = {v.z, v.w};
    float c[4] = {0, 0, 0, 0};
    i32 d[4] = {0, 0, 0, 0};
    mma_m16n8k16_f16(c, a, b);
    mma_m16n8k16_bf16(c, a, b);
    mma_m16n8k32_s8(d, a, b);
    more[lane] = h2f(halves[0]) + bf2f(halves[1]) + u2f(f2u(c[0]) ^ 1) + table[lane & 3];
    halves[2] = f2h(c[1]);
    halves[3] = f2bf(c[2]);
    launch_dependents();
    __syncwarp();
    x[lane] = warp_sum(more[lane]) + warp_max(c[3]) + (float)warp_sum(d[0]) + (float)__dp4a(d[1], d[2], d[3]);
    if (lane == 0) {
        add_release(flags, 1u);
        store_release(flags + 1, add_acq_rel(flags + 2, 1u));
        store_release(wide, 1ull);
        while (load_acquire(flags) + load_acquire(wide) == 0) __nanosleep(20);
        atomicAdd(x, 1.0f);
        __threadfence_system();
    }
}
";

#[test]
fn every_target_has_the_same_code_every_time() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = with_prelude(ALL);
    for target in TARGETS {
        let first = nvrtc
            .compile("all", &text, target)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(&first.cubin[..4], b"\x7fELF");
        let names: Vec<&str> = first.kernels.iter().map(|k| k.kernel.as_str()).collect();
        assert_eq!(names, ["everything"], "{target}");
        assert!(
            first.kernels[0].registers > 0 && first.kernels[0].shared >= 512,
            "{first:?}"
        );
        let again = nvrtc
            .compile("other name", &text, target)
            .expect("the source compiles again");
        assert!(first.cubin == again.cubin, "{target}: other bytes");
    }
}

#[test]
fn what_is_wrong_is_told() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = with_prelude("#line 1 \"family.cu\"\nKERNEL(k, int *x) {\n    x[0] = y;\n}\n");
    match nvrtc.compile("broken", &text, "sm_80") {
        Err(NvrtcError::Compile { log, .. }) => assert!(log.contains("family.cu(2)"), "{log}"),
        other => panic!("{other:?}"),
    }
    let target = nvrtc.compile("m", &with_prelude("KERNEL(k) {}"), "sm_12");
    assert!(
        matches!(target, Err(NvrtcError::Target { .. })),
        "{target:?}"
    );
}

#[test]
fn spills_are_errors() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = r"
KERNEL_BOUNDED(1024, k, float *x) {
    float v[160];
    for (int i = 0; i < 160; i++) v[i] = x[i * 1024 + threadIdx.x];
    for (int i = 0; i < 160; i++) x[(i * 7 % 160) * 1024 + threadIdx.x] = v[i] * v[(i + 1) % 160] + v[(i + 80) % 160];
}
";
    match nvrtc.compile("heavy", &with_prelude(source), "sm_80") {
        Err(NvrtcError::Spills { kernel, bytes, .. }) => assert!(kernel == "k" && bytes > 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn code_is_kept() {
    let Some(nvrtc) = nvrtc() else { return };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cubins");
    let _ = std::fs::remove_dir_all(&folder);
    let cache = Cache::new(&folder);
    let text = with_prelude(ALL);
    let first = cache
        .compile(&nvrtc, "all", &text, "sm_90a")
        .expect("the source compiles");
    let files = || std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(files(), 1);
    assert_eq!(
        cache
            .compile(&nvrtc, "all", &text, "sm_90a")
            .expect("the code is cached"),
        first
    );
    cache
        .compile(&nvrtc, "all", &text, "sm_80")
        .expect("the source compiles");
    assert_eq!(files(), 2);
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnvrtc.so.13");
    std::fs::write(&path, "no library").expect("a file");
    let error = Nvrtc::open(&path).err().expect("loading fails");
    assert!(matches!(error, NvrtcError::Unusable { .. }), "{error}");
    let none = Nvrtc::open(std::path::Path::new("/nowhere/libnvrtc.so")).err();
    assert!(none.is_some());
}
