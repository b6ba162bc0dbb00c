//! Plans for several machines.

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, plan, refuses, words};

fn json(model: &str, options: &str) -> Json {
    let ran = plan(model, &format!("{options} --format json"));
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr))
}

fn chosen(report: &Json) -> &str {
    let all = report["considered"].as_array().unwrap();
    let one = all.iter().find(|c| c["chosen"] == true).unwrap();
    one["name"].as_str().unwrap()
}

#[test]
fn machines_and_their_network_are_reported() {
    let report = json(SMALL, "--devices 2*2x3090@ib-ndr -sm tensor -c 4096");
    let machine = &report["machine"];
    assert_eq!(machine["machines"], serde_json::json!([[0, 1], [2, 3]]));
    assert_eq!(machine["network"]["name"], "ib-ndr");
    assert_eq!(machine["network"]["link"]["bandwidth"], 50e9);
    let cluster = &report["cluster"];
    assert_eq!(cluster["division"], "tensors across machines");
    for part in ["token", "prompt_token"] {
        let between = cluster[part]["between"].as_array().unwrap();
        assert_eq!(between.len(), 2, "{part}: {between:?}");
        assert!(between.iter().all(|p| p["bytes"].as_u64() > Some(0)));
        assert_eq!(cluster[part]["inside"].as_array().unwrap().len(), 2);
    }
    // Both machines exchange the sums of all reductions.
    let sent = &cluster["token"]["between"];
    assert!(sent[0]["bytes"].as_u64().unwrap() >= sent[1]["bytes"].as_u64().unwrap() / 4);
    assert_eq!(cluster["faster"][0]["network"], "ib-xdr");
    let command = report["commands"]["tpc"].as_str().unwrap();
    let start = "mpirun -np 2 --hostfile hosts --map-by ppr:1:node --bind-to none tpc run ";
    assert!(
        command.starts_with(start) && command.contains("--devices '2*2x3090@ib-ndr'"),
        "{command}"
    );
    let why = report["commands"]["llama.cpp_reason"].as_str().unwrap();
    assert!(why.contains("--rpc"), "{why}");
    let one = json(SMALL, "--devices 4x3090 -sm tensor -c 4096");
    assert!(one.get("cluster").is_none() && one["machine"].get("machines").is_none());
}

#[test]
fn the_text_has_the_bytes_and_a_faster_network() {
    let ran = plan(SMALL, "--devices 2*2x3090@10gbe -sm tensor -c 4096");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let text = words(&ran.stdout);
    for part in [
        "on 4 × RTX 3090 in 2 machines, joined by 10gbe",
        "tensor over 4 devices (tensors across machines), as requested",
        "between machines, per token: ",
        "with a faster network: 25gbe ",
    ] {
        assert!(text.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(
        !ran.stderr.contains("TPC0441: tpc assumes a network"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_network_that_is_assumed_is_noted() {
    let noted = |ran: &Ran| words(&ran.stderr).contains("tpc assumes a network of 10 Gbit/s");
    let options = "-sm layer -c 4096";
    assert!(noted(&plan(
        SMALL,
        &format!("--devices 2*1x4090 {options}")
    )));
    assert!(!noted(&plan(
        SMALL,
        &format!("--devices 2*1x4090@10gbe {options}")
    )));
    assert!(!noted(&plan(SMALL, &format!("--devices 2x4090 {options}"))));
}

#[test]
fn wrong_networks_are_refused() {
    for bad in [
        "2*2x3090@fddi",
        "2x3090@ib-ndr",
        "9*8x3090@ib-ndr",
        "2*2x3091@ib-ndr",
    ] {
        let ran = plan(SMALL, &format!("--devices {bad} -c 4096"));
        refuses(&ran, 2, "TPC0400");
    }
    let servers = plan(SMALL, "--devices 2*2x3090@ib-ndr --rpc a:1 -c 4096");
    refuses(&servers, 2, "TPC0400");
}

#[test]
fn a_file_has_machines_like_the_notation() {
    let scratch = Scratch::new();
    let text = "Topology(devices: [(card: \"H100-SXM\", count: 8)],
        machines: [(devices: 4, count: 2, memory: \"512 GiB\")], network: \"25gbe\")";
    let file = scratch.file("two.ron", text);
    let of_file = json(
        "llama-3.1-70b",
        &format!("--topology {} -c 8192", file.display()),
    );
    let of_list = json(
        "llama-3.1-70b",
        "--devices 2*4xH100-SXM@25gbe -c 8192 --host-memory 512GiB",
    );
    for part in ["estimate", "cluster", "considered"] {
        assert_eq!(of_file[part], of_list[part], "{part}");
    }
    assert_eq!(of_file["machine"]["network"], of_list["machine"]["network"]);
}

#[test]
fn groups_are_whole_machines_or_halves() {
    let report = json("llama-3.1-405b", "--devices 2*8xH100-SXM@25gbe -c 8192");
    let names: Vec<&str> = (report["considered"].as_array().unwrap().iter())
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"layer of 2 × tensor of 8"), "{names:?}");
    assert!(!names.contains(&"layer of 8 × tensor of 2"), "{names:?}");
    // 25 Gbit/s is too slow for reductions between machines.
    assert_eq!(chosen(&report), "layer of 2 × tensor of 8");
    let cluster = &report["cluster"];
    assert_eq!(
        cluster["division"],
        "layers across machines, tensors inside"
    );
    let tensor = json(
        "llama-3.1-405b",
        "--devices 2*8xH100-SXM@25gbe -c 8192 -sm tensor",
    );
    let speed = |r: &Json| r["estimate"]["decode_tps"].as_f64().unwrap();
    assert!(speed(&report) > speed(&tensor));
}

#[test]
fn a_pod_per_machine_starts_with_mpi() {
    let options = "--devices 2*2xcpu@ib-ndr -sm tensor -c 4096 --emit-image me/tpc:mpi";
    let ran = plan(SMALL, &format!("{options} --emit k8s-lws"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in [
        "kind: LeaderWorkerSet",
        "    size: 2\n",
        "exec mpirun --allow-run-as-root -np 2 --hostfile /tmp/hosts --map-by ppr:1:node --bind-to none",
        "- \"serve\"",
        "- \"2*2xcpu@ib-ndr\"",
        "- \"/usr/sbin/sshd\"",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let on_cards = options.replace("cpu", "3090");
    let ran = plan(SMALL, &format!("{on_cards} --emit k8s-lws"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    // The leader and each worker request the cards of a machine.
    let cards = ran.stdout.matches("nvidia.com/gpu: 2").count();
    assert!(cards >= 2, "{}", ran.stdout);
    let other = plan(SMALL, &format!("{options} --emit compose"));
    refuses(&other, 1, "TPC0416");
    let bare = options.split(" --emit-image").next().unwrap();
    let without_image = plan(SMALL, &format!("{bare} --emit k8s-lws"));
    refuses(&without_image, 1, "TPC0416");
}
