use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value as Json, json};

use super::client::{Served, answer};
use crate::support::{Scratch, refuses, tpc};
use crate::worded::worded;

const SPEC: &str = "llama:layers=1,embd=64,heads=4,kv_heads=2,head_dim=16,ff=96,vocab=286,ctx=64";

fn served(options: &[&str]) -> (Scratch, Served) {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", SPEC);
    let served = Served::start(model.to_str().unwrap(), options);
    (scratch, served)
}

#[test]
fn wrong_fields_are_named() {
    let (_scratch, served) = served(&[]);
    let chat = |extra: Json| {
        let mut body = json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1});
        let fields = body.as_object_mut().unwrap();
        fields.extend(extra.as_object().unwrap().clone());
        body
    };
    let cases = [
        (json!({"temperature": -1}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": 2}), "top_p"),
        (json!({"n": 0}), "n"),
        (json!({"n": 1000}), "n"),
        (json!({"max_tokens": -7}), "max_tokens"),
        (json!({"stop": 5}), "stop"),
        (json!({"seed": "x"}), "seed"),
        (json!({"logit_bias": {"999999": 1}}), "logit_bias"),
        (json!({"logit_bias": 3}), "logit_bias"),
        (json!({"top_logprobs": 3}), "top_logprobs"),
        (
            json!({"logprobs": true, "top_logprobs": 99}),
            "top_logprobs",
        ),
        (json!({"messages": []}), "messages"),
        (json!({"messages": "hi"}), "messages"),
        (json!({"messages": [{"content": "a"}]}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": 5}]}),
            "messages",
        ),
        (
            json!({"response_format": {"type": "xml"}}),
            "response_format",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format",
        ),
        (json!({"grammar": "root ::= ("}), "grammar"),
        (
            json!({"grammar": "root ::= \"a\"", "json_schema": {}}),
            "json_schema",
        ),
        (json!({"tools": [{"type": "function"}]}), "tools"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"stream": "yes"}), "stream"),
    ];
    for (extra, param) in cases {
        let error = served
            .post("/v1/chat/completions", &chat(extra.clone()))
            .error(400);
        let found = error["param"].as_str().unwrap_or_default();
        let named = found == param || param == "json_schema" && found == "grammar";
        assert!(named, "{extra} {error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    let long = served.complete(&json!(vec![5; 100]), &json!({})).error(400);
    assert_eq!(long["code"], "context_length_exceeded");
    served.complete(&json!([]), &json!({})).error(400);
    served.complete(&json!([999_999]), &json!({})).error(400);
    served
        .post("/detokenize", &json!({"tokens": [-1]}))
        .error(400);
    served.post("/tokenize", &json!({})).error(400);
    assert_eq!(served.complete(&json!("a"), &json!({})).status, 200);
}

#[test]
fn broken_requests_do_not_harm_the_server() {
    let (_scratch, served) = served(&["--max-body", "64KiB"]);
    let json = "Content-Type: application/json\r\n";
    for body in [&b"{"[..], b"", b"[]", b"\xff\xfe", b"{\"prompt\": 1e999}"] {
        served
            .request("POST", "/v1/completions", json, body)
            .error(400);
    }
    let deep = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
    served
        .request("POST", "/v1/completions", json, &deep)
        .error(400);
    served
        .request("POST", "/v1/completions", json, &vec![b' '; 70_000])
        .error(413);
    served.get("/v1/nothing").error(404);
    served.get("/../etc/passwd").error(404);
    served.get("/v1/chat/completions").error(405);
    for raw in ["GET\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.write_all(raw.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_ne!(answer(stream).status, 200);
    }
    let evil = format!("{json}Origin: http://evil.example\r\n");
    served
        .request("POST", "/v1/completions", &evil, b"{}")
        .error(403);
    assert_eq!(served.complete(&json!("a"), &json!({})).status, 200);
}

#[test]
fn keys_are_checked() {
    let (_scratch, served) = served(&["--api-key", "one", "--api-key", "two"]);
    assert_eq!(served.get("/health").status, 200);
    assert_eq!(served.get("/v1/models").status, 200);
    let wrong = served.get("/slots").error(401);
    assert_eq!(wrong["code"], "invalid_api_key");
    for (key, status) in [("one", 200), ("two", 200), ("on", 401), ("three", 401)] {
        let header = format!("Authorization: Bearer {key}\r\n");
        assert_eq!(served.request("GET", "/props", &header, b"").status, status);
    }
}

#[test]
fn wrong_options_are_refused() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", SPEC);
    let model = model.to_str().unwrap();
    let run = |options: &[&str]| tpc([&["serve", model], options].concat());
    refuses(&run(&["--host", "no.such.host.invalid"]), 2, "TPC0400");
    refuses(&run(&["--api-key", ""]), 2, "TPC0400");
    refuses(&run(&["--max-body", "x"]), 2, "TPC0400");
    refuses(&run(&["--api-key-file", "/nonexistent"]), 2, "TPC0402");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refuses(&run(&["--port", &port]), 2, "TPC0462");
    refuses(&tpc(["serve", "/nonexistent.gguf"]), 2, "TPC0100");
}
