//! `tpc run --embeddings`.

use super::support::{Ran, Scratch, refuses, tpc};

const BERT: &str = "bert-tiny:type=f32,vocab=64,embd=64,head_dim=8,ff=96,biases=1";
const IDS: [&str; 2] = ["--tokens", "1,2,3,4,5,9,8,7"];

fn run(model: &str, options: &[&str]) -> Ran {
    let fixed = [
        "run",
        model,
        "--embeddings",
        "-t",
        "1",
        "-ctk",
        "f32",
        "-ctv",
        "f32",
    ];
    tpc([&fixed[..], options].concat())
}

/// Returns the vectors of the array form.
fn vectors(model: &str, options: &[&str]) -> Vec<Vec<f64>> {
    let ran = run(
        model,
        &[&["--embd-output-format", "array"], options].concat(),
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn assert_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-5, "{what}: {a} is not {b}");
    }
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn poolings_reduce_the_vectors_of_the_tokens() {
    let scratch = Scratch::new();
    let model = scratch.model(BERT);
    let model = model.to_str().unwrap();
    let with = |pooling: &str| {
        let options = ["--pooling", pooling, "--embd-normalize", "-1"];
        vectors(model, &[&IDS[..], &options].concat())
    };
    let rows = with("none");
    assert_eq!((rows.len(), rows[0].len()), (8, 64));
    assert_close("cls", &with("cls")[0], &rows[0]);
    assert_close("last", &with("last")[0], &rows[7]);
    let sum = |i: usize| rows.iter().map(|row| row[i]).sum::<f64>();
    let mean: Vec<f64> = (0..64).map(|i| sum(i) / 8.0).collect();
    assert_close("mean", &with("mean")[0], &mean);
    // The file pools by the mean, and the default norm is Euclidean.
    let unit: Vec<f64> = mean.iter().map(|x| x / length(&mean)).collect();
    assert_close("default", &vectors(model, &IDS)[0], &unit);
}

#[test]
fn several_devices_and_artefacts_give_the_same_embedding() {
    let scratch = Scratch::new();
    for spec in [BERT, "modern-bert-tiny:type=f32,vocab=64"] {
        let model = scratch.model(spec);
        let model = model.to_str().unwrap();
        let one = vectors(model, &IDS);
        for devices in ["cpu,cpu", "cpu,cpu,cpu"] {
            let split = ["--devices", devices, "-sm", "tensor"];
            let several = vectors(model, &[&IDS[..], &split].concat());
            assert_close(spec, &several[0], &one[0]);
        }
        let artefact = scratch.path("model.tpc");
        let artefact = artefact.to_str().unwrap();
        let compiled = tpc(["compile", model, "-o", artefact, "-ub", "16"]);
        assert_eq!(compiled.status, 0, "{}", compiled.stderr);
        let run = |ids: &str| {
            let format = ["--embd-output-format", "array"];
            let words = [
                "run",
                artefact,
                model,
                "--embeddings",
                "-t",
                "1",
                "--tokens",
                ids,
            ];
            tpc([&words[..], &format].concat())
        };
        let ran = run(IDS[1]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let found: Vec<Vec<f64>> = serde_json::from_str(&ran.stdout).unwrap();
        assert_close(spec, &found[0], &one[0]);
        // The artefact's batch is smaller than this text.
        let long = vec!["3"; 20].join(",");
        refuses(&run(&long), 2, "TPC0428");
    }
}

#[test]
fn formats_hold_the_same_numbers() {
    let scratch = Scratch::new();
    let model = scratch.model(BERT);
    let model = model.to_str().unwrap();
    let two = ["--tokens", "1,2,3", "--tokens", "4,5"];
    let rows = vectors(model, &two);
    assert_eq!(rows.len(), 2);
    let format = |name: &str| {
        let ran = run(model, &[&two[..], &["--embd-output-format", name]].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout
    };
    let text = format("text");
    let first = text.lines().next().unwrap();
    let numbers = first.strip_prefix("embedding 0: ").unwrap();
    let numbers: Vec<f64> = numbers.split(' ').map(|x| x.parse().unwrap()).collect();
    assert_close("text", &numbers, &rows[0]);
    assert!(text.contains("\ncosine similarity:\n  1.00 "), "{text}");
    assert_eq!(format("raw").lines().count(), 2);
    let json: serde_json::Value = serde_json::from_str(&format("json+")).unwrap();
    assert_eq!(json["data"][1]["index"], 1);
    assert_eq!(json["data"][1]["embedding"].as_array().unwrap().len(), 64);
    let similar = json["cosineSimilarity"][0][1].as_f64().unwrap();
    let product: f64 = rows[0].iter().zip(&rows[1]).map(|(a, b)| a * b).sum();
    assert!((similar - product).abs() < 1e-5, "{similar} {product}");
    let integers = run(model, &[&IDS[..], &["--embd-normalize", "0"]].concat());
    assert!(integers.stdout.contains("32760"), "{}", integers.stdout);
}

#[test]
fn a_model_of_text_gives_its_last_hidden_state() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny:type=f32,vocab=64");
    let model = model.to_str().unwrap();
    // The file does not state a pooling, so every token has a vector.
    assert_eq!(vectors(model, &IDS).len(), 8);
    let last = vectors(model, &[&IDS[..], &["--pooling", "last"]].concat());
    assert_eq!((last.len(), last[0].len()), (1, 256));
    assert!((length(&last[0]) - 1.0).abs() < 1e-5);
    // Causal attention: the first tokens do not depend on later ones.
    let first = vectors(model, &["--tokens", "1,2,3"]);
    let all = vectors(model, &IDS);
    assert_close("prefix", &first[2], &all[2]);
}

#[test]
fn what_a_model_cannot_give_is_refused() {
    let scratch = Scratch::new();
    let model = scratch.model(BERT);
    let model = model.to_str().unwrap();
    refuses(
        &tpc(["run", model, "--tokens", "1,2", "-t", "1"]),
        2,
        "TPC0428",
    );
    let ranked = run(model, &[&IDS[..], &["--pooling", "rank"]].concat());
    refuses(&ranked, 2, "TPC0400");
    assert!(
        ranked.stderr.contains("classification head"),
        "{}",
        ranked.stderr
    );
    for wrong in [["--pooling", "sum"], ["--embd-normalize", "-2"]] {
        refuses(&run(model, &[&IDS[..], &wrong].concat()), 2, "TPC0400");
    }
    let llama = scratch.model("llama-tiny:type=f32,vocab=64");
    let artefact = scratch.path("llama.tpc");
    let paths = [llama.to_str().unwrap(), artefact.to_str().unwrap()];
    let compiled = tpc(["compile", paths[0], "-o", paths[1]]);
    assert_eq!(compiled.status, 0, "{}", compiled.stderr);
    let words = ["run", paths[1], paths[0], "--embeddings", "--tokens", "1,2"];
    refuses(&tpc(words), 2, "TPC0401");
}

#[test]
fn a_plan_prints_commands_that_give_embeddings() {
    let scratch = Scratch::new();
    let model = scratch.model(BERT);
    let words = [
        "plan",
        model.to_str().unwrap(),
        "--devices",
        "3090",
        "--format",
        "json",
    ];
    let plan = super::support::json(&words);
    for engine in ["tpc", "llama.cpp"] {
        let command = plan["commands"][engine].as_str().unwrap();
        assert!(command.ends_with(" --embeddings"), "{command}");
    }
}
