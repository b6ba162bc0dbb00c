//! Predicted times of tpc's kernels in plans for cards.

use super::support::{json, path, plan, words};

const MODEL: &str = "llama-3.1-8b-instruct-q4_k_m";

#[test]
fn plans_for_cards_list_predicted_kernels() {
    let ran = plan(MODEL, "--devices 4090 -c 4096 -v");
    let text = words(&ran.stdout);
    for part in [
        "tpc's kernels on RTX 4090, a token at depth 0",
        "tpc's kernels on RTX 4090, a prompt of 512 tokens",
        "launches µs each ms share bound by",
        "% observed on two cards",
        "% assumed, not measured",
    ] {
        assert!(text.contains(part), "{part} is not in\n{}", ran.stdout);
    }
    let brief = plan(MODEL, "--devices 4090 -c 4096").stdout;
    assert!(brief.contains("\nmodel "), "{brief}");
    // tpc predicts nothing for other engines and for unnamed devices.
    for options in [
        "--devices 4090 -c 4096 --engine llama.cpp",
        "--devices 1 -c 4096",
    ] {
        let other = plan(MODEL, options).stdout;
        assert!(!other.contains("\nmodel "), "{other}");
    }
}

#[test]
fn json_has_the_predicted_kernels() {
    let header = path(MODEL);
    let of = |devices: &str| {
        let options = [
            "plan",
            &header,
            "--devices",
            devices,
            "-c",
            "4096",
            "--format",
            "json",
        ];
        json(&options)["step"].clone()
    };
    let one = of("4090");
    let kernels = one["token"]["kernels"].as_array().expect("kernels");
    let share: f64 = kernels.iter().filter_map(|k| k["share"].as_f64()).sum();
    assert!((0.5..=1.0001).contains(&share), "{share}");
    let launches: u64 = kernels.iter().filter_map(|k| k["launches"].as_u64()).sum();
    assert!((250..300).contains(&launches), "{launches}");
    let tps = |step: &serde_json::Value, batch: &str| step[batch]["tps"].as_f64().expect("a speed");
    // A card with three times the bandwidth is faster, and prompts are faster than tokens.
    let large = of("h100");
    assert!(tps(&large, "token") > tps(&one, "token"));
    assert!(tps(&one, "prompt") > 10.0 * tps(&one, "token"));
    assert_eq!(one["token"]["edges_us"].as_f64(), Some(0.0));
    assert!(of("2x4090")["token"]["edges_us"].as_f64() > Some(0.0));
}
