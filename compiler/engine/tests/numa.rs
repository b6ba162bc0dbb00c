//! Runs a model on made-up NUMA nodes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::{Path, PathBuf};

use tpc_core::placement::{DeviceList, MachineRequest, NumaNode, Placement, SplitMode};
use tpc_engine::devices::numa;
use tpc_engine::{AnySession, ErrorKind, ExecutorKind, ExecutorOptions, Loader, PreparedModel};
use tpc_gguf::GgufFile;
use tpc_runtime::{Batch, quant};
use tpc_synth::{Model, Spec};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn model(name: &str) -> (Folder, GgufFile) {
    let name = format!("tpc-engine-{name}-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    let quantise = |dtype, values: &[f32], out: &mut Vec<u8>| {
        quant::quantise(dtype, values, out).map_err(|e| e.to_string())
    };
    let spec = Spec::parse("llama:layers=2,embd=512,heads=8,kv_heads=4,ff=1024,type=q8_0").unwrap();
    let path = folder.0.join("model.gguf");
    let file = std::fs::File::create(&path).unwrap();
    Model::new(spec, &quantise).unwrap().write(file).unwrap();
    let file = GgufFile::open(&path).unwrap();
    (folder, file)
}

/// Two nodes with a core each; the same core if this process has only one.
fn two_nodes() -> Vec<NumaNode> {
    let cores: Vec<usize> = numa::here().into_iter().flat_map(|n| n.cores).collect();
    let ends = [cores.first(), cores.last()];
    let node = |(number, core): (u32, Option<&usize>)| NumaNode {
        number,
        memory: Some(1 << 30),
        cores: core.copied().into_iter().collect(),
        ..NumaNode::default()
    };
    (0..).zip(ends).map(node).collect()
}

fn prepared(file: &GgufFile, devices: &str, mode: SplitMode) -> PreparedModel {
    let nodes = two_nodes();
    let machine = |devices: &str| {
        let list = DeviceList::parse(devices).unwrap();
        let request = MachineRequest {
            list: Some(&list),
            nodes: &nodes,
            ..MachineRequest::default()
        };
        request.machine().unwrap()
    };
    let (devices, topology) = (machine(devices).devices, machine("cpu,cpu").topology);
    // All have the links of one memory, so that their plans are equal.
    let placement = Placement {
        storage: ExecutorKind::Cpu.target(),
        ctx_size: Some(64),
        split_mode: mode,
        topology,
        ..Placement::on(devices)
    };
    PreparedModel::of_file(file, &placement).unwrap()
}

fn loader<'a>(file: &'a GgufFile, model: &'a PreparedModel) -> Loader<'a> {
    Loader {
        name: Path::new("model"),
        file,
        model,
        ctx_size: usize::MAX,
        batch: 8,
        outputs: 8,
        sequences: 1,
        executor: ExecutorOptions {
            threads: 4,
            nodes: Some(two_nodes()),
            ..ExecutorOptions::new(ExecutorKind::Cpu, 2)
        },
    }
}

fn bits(session: &mut AnySession<'_>) -> Vec<u64> {
    let (prompt, next) = ([1_u32, 2, 3, 4, 5], [6_u32]);
    let mut out = Vec::new();
    for (tokens, at) in [(&prompt[..], 0), (&next, 5)] {
        let logits = session.decode(&Batch::sequence(tokens, at, 0)).unwrap();
        out.extend(logits.reals().unwrap().iter().map(|x| x.to_bits()));
    }
    out
}

#[test]
fn nodes_compute_the_bits_of_devices_without_cores() {
    let (_folder, file) = model("bits");
    for mode in [SplitMode::Tensor, SplitMode::Layer, SplitMode::None] {
        let (free, pinned) = (
            prepared(&file, "cpu,cpu", mode),
            prepared(&file, "numa", mode),
        );
        assert_eq!(pinned.devices, "numa:0,numa:1");
        let expected = bits(&mut loader(&file, &free).load(&()).unwrap());
        let mut session = loader(&file, &pinned).load(&()).unwrap();
        assert!(bits(&mut session) == expected, "{mode:?}");
        session.clear().unwrap();
        assert!(bits(&mut session) == expected, "{mode:?} again");
    }
}

#[test]
fn a_plan_for_a_node_that_is_absent_is_refused() {
    let (_folder, file) = model("absent");
    let model = prepared(&file, "numa:1", SplitMode::None);
    let loader = Loader {
        executor: ExecutorOptions {
            nodes: Some(two_nodes()[..1].to_vec()),
            ..ExecutorOptions::new(ExecutorKind::Cpu, 1)
        },
        ..loader(&file, &model)
    };
    let Err(e) = loader.load(&()) else {
        panic!("the node is absent");
    };
    assert_eq!(e.kind, ErrorKind::Usage);
    let [d] = e.diagnostics.as_slice() else {
        panic!("{:?}", e.diagnostics)
    };
    let message = "this machine has no NUMA node 1 that tpc may use";
    assert_eq!(
        (d.code.id, d.message.to_string().as_str()),
        ("TPC0400", message)
    );
    assert_eq!(
        d.help,
        Some("use numa:0, the only node; `cpu,cpu` makes two devices that share it".into())
    );
}
