//! Lints of configurations, on headers of real models.

use tpc_core::placement::{HostExperts, Placement, SplitMode};
use tpc_diag::Diagnostic;
use tpc_ir::DType;
use tpc_models::Stretch;
use tpc_passes::machine::{DeviceProfile, Link, Topology};

use super::Case;
use super::plans::{findings, memory, override_with};

const SMALL: &str = "qwen3-0.6b";
const LLAMA: &str = "llama-3.1-8b";

/// The lint fires on the first configuration, not on the second.
fn pair(
    code: &'static str,
    header: &'static str,
    devices: &'static str,
    fires: fn(&mut Placement),
    silent: fn(&mut Placement),
) -> Case {
    let of = move |set: fn(&mut Placement)| move || findings(header, devices, set);
    Case::new(code, of(fires), of(silent))
}

fn overrides(code: &'static str, fires: &'static str, silent: &'static str) -> Case {
    let of = |text: &'static str| {
        move || -> Vec<Diagnostic> { findings(LLAMA, "2", override_with(text)) }
    };
    Case::new(code, of(fires), of(silent))
}

fn profiles(n: usize) -> Topology {
    let one = |i: usize| DeviceProfile {
        name: format!("d{i}"),
        memory: None,
        reserve: 0.0,
        beside: 0.0,
        pool: None,
        bandwidth: 1e12,
        flops: 2e14,
        processor: None,
        class: tpc_passes::machine::CardClass::Unknown,
    };
    Topology {
        devices: (0..n).map(one).collect(),
        ..Topology::default()
    }
}

fn slow(p: &mut Placement) {
    p.topology.link = Link::new(1e9, 100.0);
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        pair(
            "TPC0307",
            SMALL,
            "2",
            |p| {
                p.tensor_split = Some(vec![28.05, 0.95]);
                p.split_mode = SplitMode::Layer;
            },
            |p| p.tensor_split = Some(vec![3.0, 1.0]),
        ),
        overrides("TPC0311", "ffn_dwn=CPU", "ffn_down=CPU"),
        pair(
            "TPC0312",
            SMALL,
            "1",
            |p| p.ctx_size = Some(1 << 20),
            |p| p.ctx_size = Some(1 << 10),
        ),
        // RoPE scaling counts.
        pair(
            "TPC0312",
            SMALL,
            "1",
            |p| p.ctx_size = Some(131_072),
            |p| {
                p.ctx_size = Some(131_072);
                p.stretch = Some(Stretch {
                    original: 32768,
                    factor: 4.0,
                });
            },
        ),
        pair(
            "TPC0800",
            SMALL,
            "2",
            |p| p.tensor_split = Some(vec![1.0, 0.0]),
            |p| p.tensor_split = Some(vec![1.0, 1.0]),
        ),
        pair(
            "TPC0801",
            SMALL,
            "2",
            |p| {
                p.tensor_split = Some(vec![1.0, 1.0]);
                p.split_mode = SplitMode::None;
            },
            |p| p.tensor_split = Some(vec![1.0, 1.0]),
        ),
        overrides("TPC0802", "ffn=dev0", "ffn_down=mirrored"),
        pair(
            "TPC0803",
            SMALL,
            "2",
            |p| p.cache_type_v = DType::F32,
            |_| (),
        ),
        pair(
            "TPC0804",
            SMALL,
            "2",
            |p| {
                p.ctx_size = Some(1024);
                p.ubatch_size = 2048;
            },
            |p| p.ubatch_size = 2048,
        ),
        pair(
            "TPC0805",
            SMALL,
            "2",
            |p| p.ubatch_size = 8,
            |p| p.ubatch_size = 256,
        ),
        pair(
            "TPC0806",
            SMALL,
            "2",
            |p| {
                p.ctx_size = Some(4096);
                p.parallel = 16;
            },
            |p| {
                p.ctx_size = Some(65_536);
                p.parallel = 16;
            },
        ),
        pair(
            "TPC0807",
            SMALL,
            "2",
            |p| {
                p.kv_on_host = true;
                p.topology = memory(80e9);
            },
            |p| {
                p.kv_on_host = true;
                p.topology = memory(1e9);
            },
        ),
        pair(
            "TPC0808",
            "qwen3-30b",
            "2",
            |p| p.host_experts = HostExperts::First(99),
            |p| p.host_experts = HostExperts::All,
        ),
        pair(
            "TPC0809",
            SMALL,
            "4",
            |p| p.topology = profiles(2),
            |p| p.topology = profiles(4),
        ),
        Case::new(
            "TPC0810",
            || findings(SMALL, "cuda:0,cuda:0", |_| ()),
            || findings(SMALL, "cuda:0,cuda:1", |_| ()),
        ),
        pair("TPC0811", LLAMA, "2", slow, |_| ()),
        pair("TPC0812", LLAMA, "2", |_| (), |p| p.ctx_size = Some(8192)),
        overrides(
            "TPC0813",
            "ffn=CPU,blk\\.0\\.=dev0",
            "ffn_down=dev0,blk\\.0\\.=dev0",
        ),
        overrides(
            "TPC0813",
            "ffn=CPU,ffn_down|attn_q=dev0",
            "blk\\.(3|4)\\.ffn_.*=dev0,ffn_(up|down)=CPU",
        ),
        overrides("TPC0814", "blk\\.1=CPU", "blk\\.1\\.=CPU"),
    ]
}
