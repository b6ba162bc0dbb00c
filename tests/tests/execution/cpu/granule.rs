//! Widths of a few quantisation blocks: the CPU can divide blocks, so devices have even shares.

use std::path::Path;

use tpc_core::golden::distance;
use tpc_ir::{DType, Op, Place};
use tpc_passes::bits::find_differing_sums;
use tpc_tests::Sweep;

use super::{BY_SIZE, Subject};
use crate::support::{Written, company, placement};

/// Models with feed-forward widths of 768 and 512, three and two blocks of 256, dense and with experts. Heads have 64
/// or 128 elements, a quarter or half of a block; in the last model 80, which end inside 32 elements.
const MODELS: [&str; 4] = [
    "llama:layers=2,embd=256,heads=8,kv_heads=8,head_dim=64,ff=768",
    "qwen3moe:layers=2,embd=256,heads=8,kv_heads=8,head_dim=128,ff=768,experts=3,experts_used=2",
    "qwen3moe:layers=2,embd=256,heads=8,kv_heads=2,head_dim=64,ff=512,experts=3,experts_used=2",
    "llama:layers=2,embd=256,heads=16,kv_heads=16,head_dim=80,ff=512",
];

/// Types that tpc can write: blocks of 256 and 128 elements, a mixture of types as in real files, and blocks of 64
/// elements, which are never cut.
const TYPES: [&str; 12] = [
    "q4_k", "mixed", "q1_0", "q6_k", "q2_k", "q3_k", "q5_k", "iq4_xs", "tq1_0", "tq2_0", "nvfp4",
    "q2_0",
];

/// The maximum NMSE if only the order of sums differs.
const EXACT: f64 = 1e-20;
/// The maximum NMSE is the first number, or the second times one device's error if that is larger: routers and 1-bit
/// weights amplify errors. A value between two codes may be rounded to either.
const EDGES: (f64, f64) = (1e-4, 2.0);

fn subject(path: &Path, devices: usize) -> Subject {
    let tokens: Vec<u32> = (0..9).map(|i| (i * 7 + 3) % 64).collect();
    let subject = Subject::new(path, &placement(devices, DType::F16), &tokens);
    subject.expect("it has a plan")
}

/// Returns each device's axis-0 elements per matrix after this width. The flag is true if a share begins or ends inside
/// a block.
fn shares(subject: &Subject, width: u64) -> (Vec<Vec<u64>>, bool) {
    let graph = &subject.program.graph;
    let mut held = vec![Vec::new(); graph.devices.len()];
    let mut inside = false;
    for (value, data) in graph.values() {
        let (Op::Weight(op), Place::Device(device)) = (graph.def_op(value), data.place) else {
            continue;
        };
        let down = op.tensor.contains("ffn_down");
        let rows = op.parts.as_ref().and_then(|parts| parts.first());
        let Some(rows) = rows.filter(|_| down) else {
            continue;
        };
        let len = rows.iter().map(|r| r.len).sum::<u64>();
        assert!(len <= width);
        held[device.index()].push(len);
        inside |= graph.cuts_blocks(value);
    }
    (held, inside)
}

fn bits(logits: &[f64]) -> Vec<u64> {
    logits.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn widths_of_few_blocks_are_shared_evenly_and_exactly() {
    let types = Sweep::asked().pick(&TYPES[..3], &TYPES[..]);
    let (mut same, mut cut) = (0, 0);
    for (model, dtype) in MODELS
        .iter()
        .flat_map(|m| types.iter().map(move |t| (m, t)))
    {
        let spec = format!("{model},vocab=64,ctx=64,type={dtype}");
        let width = if model.contains("ff=768") { 768 } else { 512 };
        let of_width = DType::from_name(dtype).unwrap_or(DType::Q4K);
        let (block, granule) = (of_width.block_len(), of_width.granule());
        let written = Written::new(&spec);
        let one = subject(&written.0, 1);
        let exact = one.reference([].into());
        let terms = [0, BY_SIZE];
        let whole = terms.map(|t| {
            let found = one.logits(t).expect("it runs");
            let most = EDGES.0.max(EDGES.1 * one.left_from_rounded(&found, t));
            (found, most)
        });
        for devices in [2, 3, 4, 8] {
            let what = format!("{spec} on {devices}");
            let split = subject(&written.0, devices);
            let (held, inside) = shares(&split, width);
            if width.is_multiple_of(devices as u64 * granule) {
                let each = width / devices as u64;
                assert!(
                    held.iter().flatten().all(|&n| n == each),
                    "{what}: {held:?}"
                );
                assert!(held.iter().all(|h| h.len() == 2), "{what}: {held:?}");
                assert_eq!(inside, !each.is_multiple_of(block), "{what}");
            }
            cut += usize::from(inside);
            let found = split.reference([].into());
            let far = distance(exact.iter().copied(), found.iter().copied()).nmse;
            assert!(
                far <= EXACT,
                "{what}: the reference is {far:e} from one device"
            );
            for (terms, (whole, most)) in terms.into_iter().zip(&whole) {
                let found = split.logits(terms).expect("it runs");
                let rounded = split.left_from_rounded(&found, terms);
                assert!(
                    rounded <= *most,
                    "{what}: {rounded:e} from the rounded reference, {most:e} allowed"
                );
                let promised = find_differing_sums(&split.program.graph, company(terms)).is_empty();
                let equal = bits(&found) == bits(whole);
                println!(
                    "{what}, two terms to {terms}: same {equal}, promised {promised}, {rounded:.1e}"
                );
                assert!(equal || !promised, "{what}");
                same += usize::from(equal && promised);
            }
        }
    }
    println!("{same} have the bits of one device, {cut} cut blocks");
    assert!(cut >= 4 * types.len() && same >= 4 * types.len());
}
