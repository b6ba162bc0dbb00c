//! `--devices numa`: this machine's NUMA nodes.

use serde_json::Value as Json;

use super::support::{SMALL, Scratch, plan, refuses, tpc, words};

const MODEL: &str = "llama:layers=2,embd=128,heads=4,kv_heads=2,ff=256,type=q8_0";

/// Returns the nodes' names in `--devices`, by a plan for all of them.
fn nodes() -> Vec<String> {
    let ran = plan(SMALL, "--devices numa -c 4096 --format json");
    assert!(ran.status < 2, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let devices = json["devices"].as_array().unwrap();
    let name = |d: &Json| {
        assert_eq!(d["kind"], "cpu", "{d}");
        let name = d["name"].as_str().unwrap();
        name.split('#').next().unwrap().to_owned()
    };
    devices.iter().map(name).collect()
}

#[test]
fn the_nodes_of_this_machine_are_planned_and_run() {
    let nodes = nodes();
    assert!(nodes.iter().all(|n| n.starts_with("numa:")), "{nodes:?}");
    let scratch = Scratch::new();
    let model = scratch.model(MODEL);
    let model = model.to_str().unwrap();
    let artefact = scratch.path("model.tpc");
    let artefact = artefact.to_str().unwrap();
    let answer = |subject: &str, devices: &[&str]| {
        let options = [
            "--tokens",
            "1,2,3",
            "--temp",
            "0",
            "-n",
            "6",
            "--ignore-eos",
        ];
        let ran = tpc([&["run", subject][..], &options, devices].concat());
        assert_eq!(ran.status, 0, "{devices:?}: {}", ran.stderr);
        ran.stdout
    };
    let expected = answer(model, &["--devices", "cpu"]);
    let all = ["--devices", "numa", "-sm", "layer"];
    assert_eq!(answer(model, &all), expected);
    assert_eq!(
        answer(model, &["--devices", &nodes[0], "-t", "64"]),
        expected
    );
    let ran = tpc([&["compile", model, "-o", artefact][..], &all].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(answer(artefact, &[]), expected);
    assert_eq!(answer(artefact, &["--devices", "numa"]), expected);
    let listed = words(&tpc(["devices"]).stdout).contains("--devices numa");
    assert_eq!(listed, nodes.len() > 1, "only several nodes are listed");
}

#[test]
fn wrong_nodes_are_refused_with_a_cure() {
    let nodes = nodes();
    let cure = match nodes.as_slice() {
        [one] => format!("use {one}, the only node; `cpu,cpu` makes two devices that share it"),
        all => format!("use `numa` for all nodes, or a list of {}", all.join(", ")),
    };
    let twice = format!("{0},{0}", nodes[0]);
    let number = &nodes[0][5..];
    let listed_twice = format!("NUMA node {number} is listed twice");
    for (devices, message, cure) in [
        (
            "numa:9999",
            "this machine has no NUMA node 9999 that tpc may use",
            cure.as_str(),
        ),
        (
            "numa:x",
            "`numa:x` lacks the number of the NUMA node",
            "write for example `numa:0`, or `numa` for all nodes",
        ),
        (
            "numa,cuda:0",
            "NUMA nodes cannot be listed with other devices",
            "list only nodes, such as `numa`, or only other devices; -ngl, -ncmoe and -ot keep weights of cards on the \
             host",
        ),
        (&twice, &listed_twice, "list each node once;"),
    ] {
        let ran = plan(SMALL, &format!("--devices {devices}"));
        refuses(&ran, 2, "TPC0400");
        let said = words(&ran.stderr);
        assert!(said.contains(message), "{devices}: {said}");
        assert!(said.contains(cure), "{devices}: {said}");
    }
}
