//! Answers have the same bits alone and under load.
//!
//! `TPC_SERVE_SECONDS` sets the time of the load per server, with 32 clients. The server's memory and the time between
//! tokens are then checked, too.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::client::{Served, answer};
use crate::support::Scratch;
use crate::worded::worded;

/// Number of clients of a short load.
const CLIENTS: usize = 8;
/// Number of clients of a long load.
const MANY_CLIENTS: usize = 32;
const REQUESTS: usize = 24;

/// A generator of pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Returns a request: token prompts with common prefixes, greedy or seeded.
fn request(random: &mut Random) -> Json {
    let prefix: Vec<usize> = (0..[0, 40, 100][random.below(3)])
        .map(|i| 259 + i * 7 % 26)
        .collect();
    let own = (0..1 + random.below(60)).map(|_| 3 + random.below(280));
    let prompt: Vec<usize> = prefix.into_iter().chain(own).collect();
    let temperature = [0.0, 0.7, 1.5][random.below(3)];
    json!({
        "prompt": prompt,
        "max_tokens": 1 + random.below(24),
        "temperature": temperature,
        "seed": random.below(1000),
        "logprobs": 3,
        "ignore_eos": random.below(2) == 0,
    })
}

fn choices(answer: &Json) -> Json {
    answer["choices"].clone()
}

/// Returns the server's memory in bytes.
fn memory(served: &Served) -> f64 {
    let path = format!("/proc/{}/status", served.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<f64>().unwrap() * 1024.0
}

/// Returns the bound of the histogram's bucket that holds 99 % of the times between tokens, in seconds.
fn slow_token(served: &Served) -> f64 {
    let text = served.get("/metrics").body;
    let prefix = "tpc_time_between_tokens_seconds_bucket{le=\"";
    let buckets = text
        .lines()
        .filter_map(|l| l.strip_prefix(prefix)?.split_once("\"} "));
    let buckets: Vec<(f64, f64)> = buckets
        .map(|(bound, n)| (bound.parse().unwrap_or(f64::INFINITY), n.parse().unwrap()))
        .collect();
    let all = buckets.last().unwrap().1;
    buckets.iter().find(|b| b.1 >= 0.99 * all).unwrap().0
}

/// Loads a server for a long time. Checks its memory and the time between tokens.
fn endure(served: &Served, alone: &[(Json, Json)], seconds: u64) {
    let prompt: Vec<usize> = (0..128).map(|i| 3 + i * 37 % 250).collect();
    let chunk = json!({ "cache_prompt": false, "max_tokens": 1 });
    let chunk = served.complete(&json!(prompt), &chunk).ok();
    let chunk = chunk["timings"]["prompt_ms"].as_f64().unwrap() / 1e3;
    load(served, alone, MANY_CLIENTS, seconds / 3);
    let before = memory(served);
    load(served, alone, MANY_CLIENTS, seconds - seconds / 3);
    let (after, slow) = (memory(served), slow_token(served));
    println!(
        "memory {before:.3e} B, then {after:.3e} B; 99 % of tokens within {slow} s; a chunk takes {chunk:.4} s"
    );
    assert!(after < before * 1.05 + 16e6, "{before} {after}");
    assert!(slow <= (2.0 * chunk).max(0.025), "{slow} {chunk}");
}

/// Loads a server with all requests, and compares each answer with its answer alone.
fn compare(served: &Served, alone: &[(Json, Json)]) {
    let seconds = std::env::var("TPC_SERVE_SECONDS").ok();
    match seconds.and_then(|s| s.parse().ok()) {
        Some(seconds) => endure(served, alone, seconds),
        None => load(served, alone, CLIENTS, 2),
    }
}

fn load(served: &Served, alone: &[(Json, Json)], clients: usize, seconds: u64) {
    let begun = Instant::now();
    let compared = AtomicUsize::new(0);
    scope(|s| {
        for client in 0..clients {
            let compared = &compared;
            s.spawn(move || {
                let mut random = Random(client as u64 + 99);
                let mut round = 0;
                while round < 4 || begun.elapsed() < Duration::from_secs(seconds) {
                    round += 1;
                    let (request, expected) = &alone[random.below(alone.len())];
                    match random.below(8) {
                        0 => {
                            // A client that goes.
                            let text = request.to_string();
                            let open = served.send("POST", "/v1/completions", "", text.as_bytes());
                            std::thread::sleep(Duration::from_millis(random.below(30) as u64));
                            drop(open);
                        }
                        1 => {
                            let bad =
                                served.request("POST", "/v1/completions", "", b"{\"prompt\":");
                            bad.error(400);
                        }
                        2 => {
                            let mut request = request.clone();
                            request["stream"] = true.into();
                            let text = request.to_string();
                            let open = served.send("POST", "/v1/completions", "", text.as_bytes());
                            let chunks = answer(open).chunks();
                            let texts = chunks
                                .iter()
                                .filter_map(|c| c["choices"][0]["text"].as_str());
                            assert_eq!(expected[0]["text"], texts.collect::<String>().as_str());
                            compared.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => {
                            let found = served.post("/v1/completions", request).ok();
                            assert_eq!(&choices(&found), expected, "{request}");
                            compared.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    served.idle();
    assert!(compared.into_inner() >= clients);
}

/// Compares answers of servers of a synthetic model as [`check_file`].
fn check(spec: &str, servers: &[&[&str]]) {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", spec);
    check_file(model.to_str().unwrap(), servers);
}

/// Compares answers of servers of a model with answers of a server for one request at a time without prefix store.
fn check_file(model: &str, servers: &[&[&str]]) {
    let mut random = Random(7);
    let alone = Served::start(model, &["-np", "1", "-c", "256", "--prefix-cache", "0"]);
    let requests = (0..REQUESTS).map(|_| request(&mut random));
    let alone: Vec<(Json, Json)> = requests
        .map(|request| {
            let mut fresh = request.clone();
            fresh["cache_prompt"] = false.into();
            let expected = choices(&alone.post("/v1/completions", &fresh).ok());
            (request, expected)
        })
        .collect();
    for options in servers {
        compare(&Served::start(model, options), &alone);
    }
}

#[test]
fn a_dense_model() {
    let spec =
        "llama:layers=2,embd=64,heads=4,kv_heads=2,head_dim=16,ff=96,vocab=286,ctx=256,type=q4_0";
    check(
        spec,
        &[
            &["-np", "4", "-c", "1024"],
            &[
                "-np",
                "5",
                "-c",
                "1280",
                "--prefix-cache",
                "200KiB",
                "--chunk",
                "16",
                "-ub",
                "64",
            ],
            &[
                "-np",
                "4",
                "-c",
                "1024",
                "--spec-type",
                "ngram-simple",
                "--spec-draft-n-min",
                "4",
            ],
            &[
                "-np",
                "3",
                "-c",
                "768",
                "--devices",
                "cpu,cpu",
                "--deterministic",
                "on",
            ],
        ],
    );
}

#[test]
fn a_model_with_a_sliding_window() {
    let spec =
        "gemma3:layers=4,embd=64,heads=4,kv_heads=2,head_dim=32,ff=96,vocab=286,ctx=256,window=32";
    check(spec, &[&["-np", "4", "-c", "1024"]]);
}

#[test]
fn a_model_with_recurrent_states() {
    let spec = "mamba2:layers=2,vocab=286,ctx=256";
    check(
        spec,
        &[
            &["-np", "4", "-c", "1024"],
            &[
                "-np",
                "4",
                "-c",
                "1024",
                "--spec-type",
                "ngram-simple",
                "--spec-draft-n-min",
                "3",
            ],
        ],
    );
}

#[test]
fn a_hybrid_model() {
    check(
        "qwen35:layers=4,vocab=286,ctx=256",
        &[&["-np", "4", "-c", "1024"]],
    );
}

#[test]
fn a_mixture_of_experts() {
    check(
        "qwen3moe:layers=2,vocab=286,ctx=256",
        &[&["-np", "4", "-c", "1024"]],
    );
}

/// Returns a real model's path. Skips the test if the model is absent.
fn real(name: &str) -> Option<String> {
    let folder = std::env::var_os("TPC_REAL_MODELS").filter(|f| !f.is_empty());
    let model = folder.map(|f| std::path::Path::new(&f).join(format!("{name}.gguf")));
    let model = model.filter(|m| m.is_file());
    if model.is_none() {
        tpc_op_cases::skip(format!("TPC_REAL_MODELS has no {name}.gguf"));
    }
    model.map(|m| m.to_str().unwrap().to_owned())
}

#[test]
fn a_trained_model() {
    if let Some(model) = real("smollm2-135m") {
        check_file(
            &model,
            &[
                &["-np", "8", "-c", "4096", "--spec-type", "ngram-simple"],
                &["-np", "8", "-c", "4096", "--prefix-cache", "2MiB"],
            ],
        );
    }
}
