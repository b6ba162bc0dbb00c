//! The traffic over links per token is minimal.

use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{HostExperts, Placement, SplitMode, parse_devices};
use tpc_ir::{Bindings, Graph, InstData, Op, Place, Value};
use tpc_passes::footprint::traffic;
use tpc_tests::{goldens, headers};

use super::support::{placement, plan};

/// Returns a model's plans on two devices: with the options that `set` makes, and without.
fn plans(name: &str, set: impl Fn(&mut Placement)) -> Option<[CompiledModel; 2]> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(name))?;
    let plain = Placement {
        split_mode: SplitMode::Tensor,
        ctx_size: Some(8192),
        ..Placement::on(parse_devices("2").expect("a count"))
    };
    let mut asked = plain.clone();
    set(&mut asked);
    Some([asked, plain].map(|p| plan(&path, &p).expect("the architecture is known").1))
}

/// Returns the additional values and bytes that layers copy per token, compared with the plain plan. In the programs,
/// each device fetches or sends its own part.
fn beyond([asked, plain]: &[CompiledModel; 2]) -> (u64, u64) {
    let batch = asked.decode_batch();
    let count = |c: &CompiledModel| {
        let copies = |g: &Graph| -> Vec<Value> {
            let copy = |i: &InstData| matches!(i.op, Op::Copy(_)) && i.layer.is_some();
            let copies = g.insts().filter(|(_, i)| copy(i));
            copies.map(|(_, i)| i.operands[0]).collect()
        };
        let moved = copies(&c.programs).into_iter();
        let bytes = moved.map(|v| c.programs.value(v).ty.bytes(&batch).expect("small"));
        (copies(&c.sharded).len() as u64, bytes.sum::<u64>())
    };
    let ((a, x), (b, y)) = (count(asked), count(plain));
    assert!(traffic(&asked.programs, &batch).copies >= a);
    (a - b, x - y)
}

struct Sizes {
    layers: u64,
    n_embd: u64,
    experts: u64,
    kv: u64,
}

const MODELS: [(&str, Sizes); 3] = [
    (
        "mixtral-8x7b",
        Sizes {
            layers: 32,
            n_embd: 4096,
            experts: 8,
            kv: 1024,
        },
    ),
    (
        "qwen3-30b-a3b",
        Sizes {
            layers: 48,
            n_embd: 2048,
            experts: 128,
            kv: 512,
        },
    ),
    (
        "gpt-oss-120b",
        Sizes {
            layers: 36,
            n_embd: 2880,
            experts: 128,
            kv: 512,
        },
    ),
];

/// Experts on the host need the activations and the router's result. Both are mirrored on the devices, so one copy of
/// each suffices. The router's result is copied before it is split into selected experts and weights, which would be
/// two copies. The host computes up to the weighted sum, so one vector returns to each device. This is minimal: at
/// every other cut through the layer, more or larger values cross.
#[test]
fn experts_on_the_host_cost_two_copies_there_and_one_back() {
    let mut seen = 0;
    for (name, s) in MODELS {
        let Some(plans) = plans(name, |p| p.host_experts = HostExperts::All) else {
            continue;
        };
        let (copies, bytes) = beyond(&plans);
        let devices = 2;
        let to_host = 4 * s.n_embd + 4 * s.experts;
        let back = devices * 4 * s.n_embd;
        assert_eq!(copies, s.layers * 3, "{name}: copies");
        assert_eq!(bytes, s.layers * (to_host + back), "{name}: bytes");
        seen += 1;
    }
    assert!(seen >= 2, "{seen} headers");
}

/// With the cache on the host, each device sends its heads' new keys and values, and fetches the attended cells. Every
/// element crosses the link once per direction.
#[test]
fn a_cache_on_the_host_crosses_the_link_once() {
    let mut seen = 0;
    for (name, s) in MODELS {
        let Some(plans) = plans(name, |p| p.kv_on_host = true) else {
            continue;
        };
        let (copies, bytes) = beyond(&plans);
        let batch: Bindings = plans[0].decode_batch();
        let cells = batch.get(tpc_ir::Symbol::NKv);
        let window = batch.get(tpc_ir::Symbol::NKvSwa);
        let windowed = match plans[0].model.summary.window {
            Some(_) => s.layers / 2,
            None => 0,
        };
        let attended = (s.layers - windowed) * cells + windowed * window;
        assert_eq!(copies, s.layers * 4, "{name}: copies");
        let (new, read) = (s.layers * 2 * 4 * s.kv, attended * 2 * 2 * s.kv);
        assert_eq!(bytes, new + read, "{name}: bytes");
        let caches = plans[0]
            .sharded
            .insts()
            .filter(|(_, i)| matches!(i.op, Op::State(_)));
        for (_, i) in caches {
            assert_eq!(plans[0].sharded.value(i.results[0]).place, Place::Host);
        }
        seen += 1;
    }
    assert!(seen >= 2, "{seen} headers");
}

/// Devices fetch only the attended cells of a host cache.
#[test]
fn only_the_cells_attended_to_leave_a_cache_on_the_host() {
    let mut seen = 0;
    for path in goldens() {
        let asked = Placement {
            kv_on_host: true,
            ctx_size: Some(64),
            ..placement(2)
        };
        let Some((_, compiled)) = plan(&path, &asked) else {
            continue;
        };
        let graph = &compiled.planned.graph;
        for (_, i) in graph.insts().filter(|(_, i)| matches!(i.op, Op::Copy(_))) {
            let from = graph.value(i.operands[0]);
            let cache = from.place == Place::Host && from.ty.counts_cells();
            assert!(
                !cache,
                "{}: {} leaves the host whole",
                path.display(),
                from.name
            );
            seen += 1;
        }
    }
    assert!(seen > 0);
}
