use std::thread::scope;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Served, answer};
use crate::support::Scratch;
use crate::worded::worded;

const SPEC: &str = "llama:layers=2,embd=64,heads=4,kv_heads=2,head_dim=16,ff=96,vocab=286,ctx=8192";

fn served(options: &[&str]) -> (Scratch, Served) {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", SPEC);
    let served = Served::start(model.to_str().unwrap(), options);
    (scratch, served)
}

/// The options of an answer that takes seconds.
fn long() -> serde_json::Value {
    json!({"max_tokens": 2000, "ignore_eos": true, "logit_bias": {"262": 1000}})
}

#[test]
fn sigterm_lets_requests_end() {
    let (_scratch, mut served) = served(&["-np", "2"]);
    let options = json!({"max_tokens": 300, "ignore_eos": true});
    let whole = served.complete(&json!("a cat"), &options).ok();
    let body = json!({"prompt": "a cat", "temperature": 0, "max_tokens": 300, "ignore_eos": true});
    let open = served.send("POST", "/v1/completions", "", body.to_string().as_bytes());
    while served.busy() == 0 {}
    served.signal("-TERM");
    std::thread::sleep(Duration::from_millis(50));
    // New requests are refused, if the server still listens.
    if let Ok(stream) = std::net::TcpStream::connect(&served.address) {
        drop(stream);
        let refused = served.complete(&json!("b"), &json!({}));
        assert!(refused.status == 503 || refused.status == 0, "{refused:?}");
    }
    let found = answer(open).ok();
    assert_eq!(found["choices"], whole["choices"]);
    let status = served
        .ended(Duration::from_secs(20))
        .expect("the server ends");
    assert!(status.success());
}

#[test]
fn a_second_signal_ends_requests() {
    let (_scratch, mut served) = served(&["-np", "1"]);
    let mut body = long();
    body["prompt"] = "a cat".into();
    let open = served.send("POST", "/v1/completions", "", body.to_string().as_bytes());
    while served.busy() == 0 {}
    served.signal("-TERM");
    std::thread::sleep(Duration::from_millis(100));
    served.signal("-TERM");
    assert!(served.ended(Duration::from_secs(10)).is_some());
    let cut = answer(open);
    assert!(cut.status == 503 || cut.status == 0, "{cut:?}");
}

#[test]
fn a_killed_server_starts_again_at_once() {
    let (scratch, mut served) = served(&[]);
    let expected = served.complete(&json!("a cat"), &json!({})).ok();
    let port = served.address.rsplit_once(':').unwrap().1.to_owned();
    served.signal("-KILL");
    assert!(served.ended(Duration::from_secs(5)).is_some());
    let model = scratch.path("words.gguf");
    let again = Served::start(model.to_str().unwrap(), &["--port", &port]);
    let found = again.complete(&json!("a cat"), &json!({})).ok();
    assert_eq!(found["choices"], expected["choices"]);
}

#[test]
fn a_client_that_goes_frees_its_slot() {
    let (_scratch, served) = served(&["-np", "1"]);
    for stream in [false, true] {
        let mut body = long();
        body["prompt"] = "a cat".into();
        body["stream"] = stream.into();
        let open = served.send("POST", "/v1/completions", "", body.to_string().as_bytes());
        while served.busy() == 0 {}
        drop(open);
        let begun = Instant::now();
        served.idle();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(
        served.metric("tpc_requests_total{result=\"cancelled\"}"),
        2.0
    );
}

#[test]
fn limits_have_their_statuses() {
    let (_scratch, served) = served(&["-np", "1", "--queue", "1", "--user-requests", "2"]);
    let mut body = long();
    body["prompt"] = "a cat".into();
    body["user"] = "first".into();
    let text = body.to_string();
    let first = served.send("POST", "/v1/completions", "", text.as_bytes());
    while served.busy() == 0 {}
    let second = served.send("POST", "/v1/completions", "", text.as_bytes());
    while served.metric("tpc_requests_waiting") == 0.0 {}
    let full = served.complete(&json!("a"), &json!({"user": "other"}));
    full.error(503);
    assert!(full.head.contains("retry-after: 1"), "{}", full.head);
    drop(second);
    while served.metric("tpc_requests_waiting") > 0.0 {}
    let three = served.complete(&json!("a"), &json!({"user": "first", "n": 3}));
    assert!([429, 503].contains(&three.status), "{three:?}");
    drop(first);
    served.idle();
    let alone = served.complete(&json!("a"), &json!({"user": "first", "n": 2}));
    alone.ok();
}

#[test]
fn a_request_has_a_deadline() {
    let (_scratch, served) = served(&["-np", "1", "--timeout", "1"]);
    let late = served.complete(
        &json!("a cat"),
        &json!({"max_tokens": 8000, "ignore_eos": true}),
    );
    if late.status != 200 {
        late.error(504);
    }
    served.idle();
}

#[test]
fn many_clients_share_few_slots() {
    let (_scratch, served) = served(&["-np", "2"]);
    let expected = served
        .complete(&json!("a cat"), &json!({"max_tokens": 20}))
        .ok();
    scope(|s| {
        for _ in 0..12 {
            s.spawn(|| {
                let found = served
                    .complete(&json!("a cat"), &json!({"max_tokens": 20}))
                    .ok();
                assert_eq!(found["choices"], expected["choices"]);
            });
        }
    });
    assert!(served.metric("tpc_cached_tokens_total") > 0.0);
}
