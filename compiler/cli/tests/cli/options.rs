//! The placement options.

use serde_json::Value as Json;

use super::contract::documented;
use super::support::{SMALL, Scratch, plan};

#[test]
fn every_placement_option_is_accepted() {
    let scratch = Scratch::new();
    let link = "link: (bandwidth: 5e10, latency_us: 5.0)";
    let text = format!(
        "Topology(devices: [(name: \"a\", memory: Some(24e9), bandwidth: 1e12, flops: 1e14), (name: \"b\", bandwidth: \
         5e11, flops: 1e14)], {link}, links: [(a: 0, b: 1, {link})])"
    );
    let topology = scratch.file("two.ron", text);
    let topology = topology.to_str().unwrap();
    let topology = format!("--devices 2 --topology {topology}");
    for options in [
        "--devices 1",
        "--devices 64",
        "--devices cpu,cpu",
        "--devices cuda:0,cuda:1",
        "--devices cuda:0,cuda:0,cpu",
        topology.as_str(),
        "--devices 2 --split-mode auto",
        "--devices 2 --split-mode none",
        "--devices 2 --split-mode tensor",
        "--devices 2 -sm tensor",
        "--devices 2 --tensor-split 3,1",
        "--devices 2 -ts 3,1",
        "--devices 2 -ts=3,1",
        "--devices 4 -ts 1,0,0,1",
        "--devices 4 -ts 0,0,0,1",
        "--devices 4 -ts 2",
        "--devices 2 --cache-type-k q8_0 --cache-type-v q4_0",
        "--devices 2 -ctk bf16 -ctv iq4_nl",
        "-c 1",
        "--ctx-size 4294967296",
        "--ubatch-size 1",
        "-ub 4294967296",
        "--parallel 1000",
        "-np 1000 -c 1000",
        "--spec-type none",
        "-fa on",
        "-fa off",
        "--flash-attn auto",
        "-ncmoe 0",
        "-v",
        "--devices 3 --verbose",
    ] {
        let ran = plan(SMALL, options);
        assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        assert!(!ran.stdout.is_empty());
    }
}

#[test]
fn every_cache_type_is_accepted_for_keys_and_values() {
    for k in [
        "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "Q8_0",
    ] {
        let other = if k == "f16" { "q4_0" } else { "f16" };
        for options in [
            format!("-ctk {k} -ctv {other}"),
            format!("-ctk {other} -ctv {k}"),
        ] {
            let ran = plan(SMALL, &format!("--devices 2 {options}"));
            assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        }
    }
}

#[test]
fn host_options_are_planned() {
    for (options, on_host) in [
        ("-ot ffn_down=CPU", true),
        ("--override-tensor ffn_(up|gate)=host,attn=dev1", true),
        ("-nkvo", false),
        ("--no-kv-offload", false),
        ("-ngl 99", false),
        ("-ngl all", false),
        ("-ngl -1", false),
        ("--gpu-layers auto", false),
        ("-ot ffn_down=CUDA1", false),
        ("-ts 0,1", false),
        ("-ts 3,1 -sm layer", false),
        ("-sm row", false),
        ("--n-gpu-layers 0", true),
        ("-sm layer", false),
        ("--split-mode layer", false),
    ] {
        let ran = plan(SMALL, &format!("{options} --devices 2 --format json"));
        assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        documented(&json);
        let weights = json["host"]["weights_bytes"].as_u64().unwrap();
        assert_eq!(
            weights > 0,
            on_host,
            "{options}: {weights} bytes on the host"
        );
        let cache = json["host"]["kv_bytes"].as_u64().unwrap();
        let kept = options.contains("kv") || options.ends_with(" 0");
        assert_eq!(
            cache > 0,
            kept,
            "{options}: {cache} bytes of cache on the host"
        );
    }
    // An override that matches no tensor gives a note.
    for options in [
        "-ot exps=CPU",
        "-ncmoe 4",
        "--n-cpu-moe 4",
        "-cmoe",
        "--cpu-moe",
    ] {
        let ran = plan(SMALL, options);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("TPC0311"), "{options}: {}", ran.stderr);
    }
}
