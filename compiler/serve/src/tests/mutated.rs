//! Mutated requests: no panic, no status 500, and other requests get their answers.
//!
//! `TPC_FULL=1` sends a million.

use serde_json::json;

use super::model::Oracle;
use super::running::{Running, Setup, run};

/// A generator of pseudorandom numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() % n.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

const PATHS: [&str; 8] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/v1/models",
    "/slots",
];

/// Texts that mutations insert.
const PIECES: [&str; 26] = [
    "null",
    "-1",
    "1e400",
    "18446744073709551616",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\\u0000",
    "\\ud800",
    "[[[[[[[[",
    "\"messages\":",
    "\"prompt\":[1,2,",
    "\"stream\":true,",
    "\"n\":99,",
    "\u{fffd}",
    "<s>",
    "{%",
    "\"tools\":[{}],",
    "\"grammar\":\"root ::= root\",",
    "\"stop\":[\"\",\"a\"],",
    "\"logit_bias\":{\"2\":-100},",
    "\"max_tokens\":0,",
    "\"response_format\":{\"type\":\"json_object\"},",
    "\"logprobs\":true,",
    "0.0000000000000001",
];

fn seeds() -> Vec<String> {
    [
        json!({"messages": [{"role": "user", "content": "a cat"}], "max_tokens": 3, "temperature": 0.5}),
        json!({"messages": [
            {"role": "system", "content": [{"type": "text", "text": "be"}]},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "2"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
                "properties": {"x": {"type": "integer"}}}}}],
            "tool_choice": "auto", "max_tokens": 2, "n": 2, "logprobs": true, "top_logprobs": 2}),
        json!({"prompt": ["ab", "c"], "max_tokens": 2, "seed": 7, "stop": "x", "echo": true, "logprobs": 1}),
        json!({"prompt": [260, 261], "max_tokens": 2, "stream": true, "stream_options": {"include_usage": true},
            "logit_bias": [[260, false], ["b", 1.5]], "top_k": 3, "min_p": 0.1, "repeat_penalty": 1.2}),
        json!({"prompt": "a", "max_tokens": 4, "json_schema": {"type": "array", "items": {"enum": [1, "b"]}}}),
        json!({"content": "a\u{301}b", "tokens": [3, 4], "with_pieces": true, "input": ["a"], "user": "u"}),
    ]
    .iter()
    .map(ToString::to_string)
    .collect()
}

/// Returns a seed with up to four mutations of its bytes.
fn mutated(random: &mut Random, seeds: &[String]) -> Vec<u8> {
    let mut out = random.of(seeds).clone().into_bytes();
    for _ in 0..random.below(5) {
        let at = random.below(out.len() + 1);
        match random.below(6) {
            0 => out.truncate(at),
            1 => drop(out.splice(at..at, random.of(&PIECES).bytes())),
            2 if at < out.len() => out[at] = random.next() as u8,
            3 => drop(out.drain(at..(at + random.below(9)).min(out.len()))),
            4 => {
                let other = random.of(seeds).as_bytes();
                let from = random.below(other.len());
                let n = random.below(40).min(other.len() - from);
                out.splice(at..at, other[from..from + n].iter().copied());
            }
            _ => {
                let value = out[at..].iter().position(|b| b": ,".contains(b));
                let at = at + value.unwrap_or(0);
                out.splice(at..at, random.of(&PIECES).bytes());
            }
        }
    }
    out
}

async fn load(server: Running, seed: u64, count: usize) {
    let seeds = seeds();
    let mut random = Random(seed * 2 + 1);
    for i in 0..count {
        let body = mutated(&mut random, &seeds);
        let path = *random.of(&PATHS);
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (status, answer) = server.send("POST", path, body).await;
        let known = [200, 400, 405, 413, 429, 501, 503].contains(&status.as_u16());
        let answer = String::from_utf8_lossy(&answer);
        assert!(known, "{status} {path} {shown}\n{answer}");
        if i % 64 == 0 {
            let good = json!({"prompt": [260, 270], "max_tokens": 5, "temperature": 0});
            let found = server.post("/v1/completions", &good, 200).await;
            assert_eq!(found["object"], "text_completion");
        }
    }
}

#[test]
fn mutated_requests_harm_nothing() {
    let count = match std::env::var_os("TPC_FULL") {
        Some(_) => 1_000_000,
        None => 6_000,
    };
    run(Oracle::default(), Setup::default(), |server| async move {
        let clients: Vec<_> = (0..3)
            .map(|seed| tokio::spawn(load(server.clone(), seed, count / 3)))
            .collect();
        for client in clients {
            client.await.expect("no assertion failed");
        }
        server.close_all().await;
    });
}
