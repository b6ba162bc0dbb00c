//! Compares the bytes of caches and states with formulas.

use tpc_core::placement::{Placement, parse_cache_type, parse_devices};
use tpc_lint::plan_report;
use tpc_tests::headers;

use super::support::plan;

struct Model {
    header: &'static str,
    /// The numbers of layers with full attention, and with a window.
    layers: [u64; 2],
    window: u64,
    heads: u64,
    head: u64,
}

const MODELS: [Model; 3] = [
    Model {
        header: "qwen3-0.6b",
        layers: [28, 0],
        window: 0,
        heads: 8,
        head: 128,
    },
    Model {
        header: "gpt-oss-120b",
        layers: [18, 18],
        window: 128,
        heads: 8,
        head: 64,
    },
    Model {
        header: "gemma-3-27b",
        layers: [10, 52],
        window: 1024,
        heads: 16,
        head: 128,
    },
];

fn path(header: &str) -> Option<std::path::PathBuf> {
    headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(header))
}

/// Bytes per 32 elements: 34 in q8_0, 18 in q4_0 and iq4_nl, 64 in f16.
#[test]
fn caches_take_the_bytes_of_their_types_contexts_and_windows() {
    const UBATCH: u64 = 512;
    for m in MODELS {
        let path = path(m.header).unwrap_or_else(|| panic!("no header of {}", m.header));
        for (k, k_block, v, v_block) in [
            ("f16", 64, "f16", 64),
            ("q8_0", 34, "q4_0", 18),
            ("iq4_nl", 18, "f16", 64),
        ] {
            for (n_ctx, parallel) in [(4096, 1), (8192, 3), (1000, 1)] {
                for on_host in [false, true] {
                    let placement = Placement {
                        cache_type_k: parse_cache_type("-ctk", k).expect("a type"),
                        cache_type_v: parse_cache_type("-ctv", v).expect("a type"),
                        ctx_size: Some(n_ctx),
                        parallel,
                        kv_on_host: on_host,
                        ..Placement::on(parse_devices("2").expect("a count"))
                    };
                    let (_, compiled) = plan(&path, &placement).expect("a known architecture");
                    let r = plan_report("x", &placement, &compiled);
                    // Concurrent sequences have whole blocks of 64 cells.
                    let each = n_ctx / parallel;
                    let windowed = (m.window + UBATCH).next_multiple_of(256).min(each);
                    let [all, windowed] = [each, windowed].map(|cells| match parallel {
                        1 => cells,
                        n => cells.next_multiple_of(64) * n,
                    });
                    let cells = m.layers[0] * all + m.layers[1] * windowed;
                    let expected = cells * m.heads * m.head / 32 * (k_block + v_block);
                    let devices: u64 = r.devices.iter().map(|d| d.kv_bytes).sum();
                    let what = format!("{} {k} {v} {n_ctx} × {parallel}", m.header);
                    if on_host {
                        assert_eq!((devices, r.host.kv_bytes), (0, expected), "{what}");
                    } else {
                        assert_eq!((devices, r.host.kv_bytes), (expected, 0), "{what}");
                    }
                }
            }
        }
    }
}

/// Qwen 3.5 35B-A3B: 40 layers, three of four recurrent. A layer's state has 32 heads of 128 × 128. Its convolution has
/// 3 rows of 16 · 128 · 2 + 32 · 128 channels. All are f32, per sequence.
#[test]
fn recurrent_states_take_the_bytes_of_their_sequences() {
    let Some(path) = path("qwen3.5-35b-a3b") else {
        return;
    };
    for (devices, parallel) in [("1", 1), ("2", 1), ("2", 4)] {
        let placement = Placement {
            ctx_size: Some(4096),
            parallel,
            ..Placement::on(parse_devices(devices).expect("a count"))
        };
        let (_, compiled) = plan(&path, &placement).expect("a known architecture");
        let r = plan_report("x", &placement, &compiled);
        let state: u64 = r.devices.iter().map(|d| d.state_bytes).sum();
        let per_layer = 32 * 128 * 128 + 3 * (2 * 16 * 128 + 32 * 128);
        assert_eq!(state, 30 * parallel * 4 * per_layer, "{devices} {parallel}");
    }
}
