//! Configurations that tpc once refused although their plans were right.

use std::path::PathBuf;

use tpc_core::pipeline::{CompiledModel, compile, compile_capture};
use tpc_core::placement::{
    HostExperts, Placement, SplitMode, parse_devices, parse_overrides, parse_tensor_split,
};
use tpc_ggml::capture;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_passes::machine::{DeviceProfile, Topology};
use tpc_tests::{goldens, headers};

use crate::synthetic::make;

/// Returns devices with these bandwidths in bytes per second, and their links.
fn machine(devices: &[f64], bandwidth: f64, latency_us: f64) -> Topology {
    let mut topology = Topology::default();
    let profile = topology.devices[0].clone();
    let with = |&bandwidth: &f64| DeviceProfile {
        bandwidth,
        memory: None,
        ..profile.clone()
    };
    topology.devices = devices.iter().map(with).collect();
    topology.link.bandwidth = bandwidth;
    topology.link.latency_us = latency_us;
    topology
}

fn free() -> Topology {
    let mut free = machine(&[1e9], 1e18, 0.0);
    (free.host_link.bandwidth, free.host_link.latency_us) = (25e12, 0.0);
    free
}

fn on(devices: usize, topology: Topology) -> Placement {
    Placement {
        topology,
        ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
    }
}

fn shares(devices: usize, shares: &str, topology: Topology) -> Placement {
    Placement {
        tensor_split: parse_tensor_split(shares, devices).ok(),
        ..on(devices, topology)
    }
}

fn proved(what: &str, compiled: Result<CompiledModel, Vec<tpc_diag::Diagnostic>>) {
    let compiled = compiled.unwrap_or_else(|d| panic!("{what}: {} {}", d[0].code, d[0]));
    if let Err(r) = compiled.proof {
        panic!("{what}: {r}\n{:?}\n{:?}", r.found, r.expected);
    }
}

fn named(files: Vec<PathBuf>, name: &str) -> Option<GgufFile> {
    let is = |p: &PathBuf| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(name))
    };
    let path = files.into_iter().find(is)?;
    Some(GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}")))
}

/// A device without a share of some layers holds whole summands: the residual, a shared expert, biases.
#[test]
fn whole_summands_of_devices_without_a_share_cross_layers() {
    let auto = |p: Placement| Placement {
        split_mode: SplitMode::Auto,
        ubatch_size: 1,
        ..p
    };
    let slow = |n: f64| machine(&[3e12, n, 3e12], 1e9, 0.1);
    let cases = [
        (
            "glm-4.5-air-106b-a12b-iq4_xs.header",
            Placement {
                ctx_size: Some(4096),
                ..auto(on(4, machine(&[1e10, 1e10, 5e11, 5e11], 1e12, 0.1)))
            },
        ),
        (
            "glm-4.5-air-106b-a12b-iq4_xs.header",
            auto(shares(3, "0,1,1", free())),
        ),
        (
            "gpt-oss-120b",
            shares(3, "0,1,1", machine(&[3e12, 5e11, 5e11], 1e9, 0.0)),
        ),
        (
            "deepseek-v3.1",
            Placement {
                host_experts: HostExperts::All,
                ..shares(3, "0,1,1", slow(1e11))
            },
        ),
    ];
    for (name, placement) in cases {
        if let Some(file) = named(headers(), name) {
            proved(name, compile(&file, &placement));
        }
    }
    for name in ["glm4moe-moe", "gpt-oss-moe", "granite-dense"] {
        if let Some(file) = named(goldens(), name) {
            proved(name, compile(&file, &auto(shares(3, "0,1,1", free()))));
            proved(name, compile(&file, &shares(3, "0,1,1", free())));
        }
    }
}

/// The proof once mistook the device's zeros and bias for parts of larger values.
#[test]
fn a_bias_alone_is_a_summand() {
    let file = make("falcon-h1-tiny:heads=2,kv_heads=1,type=mxfp4_moe,fused=1");
    let placement = Placement {
        split_mode: SplitMode::Auto,
        ..shares(3, "0,1,1", free())
    };
    proved("falcon-h1", compile(&file, &placement));
}

#[test]
fn an_op_on_copies_is_the_copies_of_the_op() {
    let Some(file) = named(goldens(), "minicpm3-dense-q8_0") else {
        return;
    };
    let placement = Placement {
        n_gpu_layers: Some(2),
        cache_type_k: DType::Q8_0,
        ..on(3, Topology::default())
    };
    proved("minicpm3", compile(&file, &placement));
}

#[test]
fn rewriting_keeps_blocks_whole() {
    let file = make("qwen2moe-tiny:ff=320,type=mxfp4_moe");
    let mut topology = machine(&[1e9], 5e10, 0.0);
    (topology.host_link.bandwidth, topology.host_link.latency_us) = (1e18, 0.0);
    for (k, v) in [(DType::Iq4Nl, DType::F32), (DType::Q8_0, DType::Q4_0)] {
        for devices in [2, 3, 5, 7] {
            let placement = Placement {
                cache_type_k: k,
                cache_type_v: v,
                ctx_size: Some(32),
                ..on(devices, topology.clone())
            };
            proved("qwen2moe", compile(&file, &placement));
        }
    }
}

#[test]
fn all_weights_on_the_host_are_proved() {
    for name in [
        "falcon-h1",
        "granitehybrid",
        "nemotron_h",
        "qwen35-dense",
        "lfm2",
    ] {
        let Some(file) = named(goldens(), name) else {
            continue;
        };
        for (devices, split_mode) in [(3, SplitMode::Tensor), (5, SplitMode::Auto)] {
            let mut placement = on(devices, machine(&[1e10, 3e12, 1e11, 1e10, 3e12], 1e12, 0.1));
            placement.split_mode = split_mode;
            let list = [".*weight=CPU".to_owned()];
            placement.overrides =
                parse_overrides(&list, &placement.devices).unwrap_or_else(|e| panic!("{e}"));
            proved(name, compile(&file, &placement));
        }
    }
}

fn captured(name: &str, text: &str) {
    let captured = capture::read(text, name).unwrap_or_else(|e| panic!("{e}"));
    for devices in [2, 3, 5] {
        proved(
            name,
            compile_capture(&captured, &on(devices, Topology::default())),
        );
    }
}

/// The indexer's scores are f32 sums; the graph adds an f16 mask.
#[test]
fn sums_of_an_indexer_are_proved() {
    let path = tpc_tests::data().join("attacks/glm-dsa-moe.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    captured("glm-dsa", &text);
}

/// A value added to itself n times is a sum of 2ⁿ terms.
#[test]
fn a_value_is_added_to_itself() {
    let node = |id: usize, op: &str, src: &str| {
        format!(
            "{{\"id\":{id},\"name\":\"v{id}\",\"op\":\"{op}\",\"type\":\"f32\",\"ne\":[64,8,1,1],\"nb\":[4,256,2048,2048],\
             \"params\":[],\"src\":[{src}],\"view\":-1,\"view_offs\":0,\"flags\":{}}}",
            usize::from(id == 0)
        )
    };
    let mut lines = vec![node(0, "NONE", "")];
    for id in 1..60 {
        let last = id - 1;
        lines.push(node(id, "ADD", &format!("{last},{last}")));
    }
    captured("add-self", &lines.join("\n"));
}
