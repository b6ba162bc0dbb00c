//! Reports on plans for several machines.

use std::path::Path;

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{DeviceList, Machine, Placement, SplitMode};
use tpc_core::report::emit::{Deployment, Emitter};
use tpc_core::report::{Detail, PlanReport, render};
use tpc_gguf::GgufFile;

fn planned(header: &str, devices: &str, mode: SplitMode) -> (Placement, CompiledModel, PlanReport) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/headers");
    let file = GgufFile::open(folder.join(header)).expect("a header");
    let list = DeviceList::parse(devices).expect("machines");
    let machine = Machine::of(&list).expect("machines");
    let mut placement = Placement::on(machine.devices);
    placement.topology = machine.topology;
    placement.split_mode = mode;
    placement.ctx_size = Some(4096);
    let compiled = compile(&file, &placement).expect("a plan");
    let report = PlanReport::new(header, &placement, &compiled);
    (placement, compiled, report)
}

const SMALL: &str = "qwen3-0.6b-q8_0.header.gguf";
const LLAMA_70B: &str = "llama-3.1-70b-instruct-q4_k_m.header.gguf";

/// Returns the text in one line.
fn text(report: &PlanReport) -> String {
    let text = render(report, 100, Detail::Brief);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn tensors_across_machines_exchange_sums() {
    let (_, _, report) = planned(SMALL, "2*2x3090@10gbe", SplitMode::Tensor);
    let cluster = report.cluster.as_ref().expect("several machines");
    assert_eq!(cluster.division, "tensors across machines");
    let pairs: Vec<_> = cluster
        .token
        .between
        .iter()
        .map(|p| (p.from, p.to))
        .collect();
    assert_eq!(pairs, [(0, 1), (1, 0)]);
    assert!(cluster.token.inside.iter().all(|&b| b > 0));
    assert!(cluster.network_limits && cluster.faster[0].network == "25gbe");
    assert!(cluster.faster[0].decode_tps > report.estimate.decode_tps);
    let text = text(&report);
    for part in [
        "on 4 × RTX 3090 in 2 machines, joined by 10gbe",
        "tensor over 4 devices (tensors across machines), as requested",
        "between machines, per token: ",
        "with a faster network: 25gbe ",
        "mpirun -np 2 --hostfile hosts --map-by ppr:1:node --bind-to none tpc run",
        "with llama.cpp: not possible; it uses devices of other machines only through RPC servers",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(
        json["machine"]["machines"],
        serde_json::json!([[0, 1], [2, 3]])
    );
    assert_eq!(json["machine"]["network"]["name"], "10gbe");
}

#[test]
fn auto_divides_layers_across_machines() {
    let (_, compiled, report) = planned(LLAMA_70B, "2*4xH100-SXM@25gbe", SplitMode::Auto);
    let names: Vec<&str> = compiled
        .candidates
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert!(
        names.contains(&"tensor") && !names.contains(&"layer of 4 × tensor of 2, cache by cells")
    );
    let chosen = compiled
        .candidates
        .iter()
        .find(|c| c.chosen)
        .expect("a choice");
    assert_eq!(chosen.name, "layer of 2 × tensor of 4", "{names:?}");
    let cluster = report.cluster.as_ref().expect("several machines");
    assert_eq!(cluster.division, "layers across machines, tensors inside");
    // Only hand-overs and logits cross.
    let tensor = planned(LLAMA_70B, "2*4xH100-SXM@25gbe", SplitMode::Tensor).2;
    let crossing = |r: &PlanReport| -> u64 {
        let cluster = r.cluster.as_ref().expect("several machines");
        cluster.prompt_token.between.iter().map(|p| p.bytes).sum()
    };
    assert!(crossing(&report) * 10 < crossing(&tensor));
    let said = text(&report);
    assert!(
        said.contains(
            "layer of 2 × tensor of 4 (layers across machines, tensors inside), the fastest"
        ),
        "{said}"
    );
}

#[test]
fn a_pod_per_machine_starts_with_mpi() {
    let (placement, _, report) = planned(SMALL, "2*2xcpu@ib-ndr", SplitMode::Tensor);
    let emit = |target: &str, image: Option<&str>| {
        let target = Emitter::named(target).expect("a target");
        let deployment = Deployment::new(target, (&report, &placement), Path::new("/m"), image);
        deployment.and_then(|d| target.emit(&d))
    };
    let file = emit("k8s-lws", Some("me/tpc:mpi")).expect("an object");
    for part in [
        "kind: LeaderWorkerSet",
        "    size: 2\n",
        "exec mpirun --allow-run-as-root -np 2 --hostfile /tmp/hosts",
        "- \"serve\"",
        "- \"/models/qwen3-0.6b-q8_0.header.gguf\"",
        "- \"2*2xcpu@ib-ndr\"",
        "- \"/usr/sbin/sshd\"",
    ] {
        assert!(file.contains(part), "{part}: {file}");
    }
    for (target, image) in [("compose", Some("me/tpc:mpi")), ("k8s-lws", None)] {
        let refused = emit(target, image).expect_err(target);
        assert_eq!((refused.code.id, refused.help.is_some()), ("TPC0416", true));
    }
}
