//! Attention kernels compile for every target and cache type, without spills.

use tpc_cuda::kernels::{Kernel, Request, Tensor, select};
use tpc_cuda::nvrtc::{TARGETS, with_prelude};
use tpc_ir::DType;
use tpc_ir::op::FlashAttn;
use tpc_op_cases::CACHES;
use tpc_runtime::Options;

use crate::resources::Threads;

/// Returns the kernel of one KV head with `heads` query heads and rows of `n` elements.
pub(super) fn attention(types: [DType; 2], sizes: (usize, usize, usize)) -> Kernel {
    kernel_of(types, sizes, false)
}

/// Returns the kernel with int8 terms of its result, or with the log-sum-exp of each row.
fn kernel_of([k, v]: [DType; 2], (heads, tokens, n): (usize, usize, usize), lse: bool) -> Kernel {
    let op = FlashAttn {
        scale: 0.1,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse,
    };
    let cells = 4096;
    let cache = |dtype| Tensor::new(dtype, [n, cells, 1, 1]);
    let of = |dims| Tensor::new(DType::F32, dims);
    let operands = [
        of([n, tokens, heads, 1]),
        cache(k),
        cache(v),
        of([cells, tokens, 1, 1]),
    ];
    let y = of([n + usize::from(lse), heads, tokens, 1]);
    let results = if lse { vec![y] } else { vec![y, y] };
    let request = Request {
        operands: &operands,
        results: &results,
        options: Options::default(),
        multiprocessors: 132,
    };
    select(&op.into(), &request).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn attention_compiles_for_cards_with_every_cache() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let mut all = Vec::new();
    for (i, k) in CACHES.into_iter().enumerate() {
        let v = CACHES[(i + 4) % CACHES.len()];
        all.push(attention([k, v], ([1, 2, 4, 8][i % 4], 1, 128)));
        all.push(attention([k, v], (8, 1, 128)));
        // Many tokens, with each row width that registers can hold.
        all.push(attention([k, v], (8, 512, [64, 128, 256][i % 3])));
        all.push(attention([k, k], (8, 512, [128, 256, 64][i % 3])));
        all.push(kernel_of([k, v], (8, 1, [128, 576][i % 2]), true));
        all.push(kernel_of([k, v], (8, 512, [256, 64, 128][i % 3]), true));
    }
    all.retain(|kernel| !kernel.instance.name().starts_with("flash_attn"));
    assert!(
        all.iter()
            .any(|k| k.instance.name().starts_with("flash_prefill"))
    );
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    all.retain(|kernel| kernel.instance.name().contains(&only));
    let mut failed = Vec::new();
    for (i, kernel) in all.iter().enumerate() {
        let instance = &kernel.instance;
        let mut threads = Threads::default();
        threads.add(kernel);
        for (t, target) in TARGETS.iter().enumerate() {
            if !full && (i + i / TARGETS.len()) % TARGETS.len() != t {
                continue;
            }
            let module = instance.single_kernel_source();
            match nvrtc.compile(module.name, &with_prelude(&module.text), target) {
                Err(e) => failed.push(format!("{target}: {}: {e}", instance.name())),
                Ok(compiled) => {
                    let k = &compiled.kernels[0];
                    println!("{target}: {}: {} registers", instance.name(), k.registers);
                    failed.extend(threads.faults(&compiled, target, nvrtc.version()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
