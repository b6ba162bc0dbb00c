use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::model::{Oracle, next};
use super::running::{Running, Setup, run};

fn completion(prompt: &[u32], most: usize) -> Json {
    json!({ "prompt": prompt, "max_tokens": most, "temperature": 0 })
}

/// Returns the answer that the model gives to a prompt.
fn expected(prompt: &[u32], most: usize) -> String {
    let mut text = prompt.to_vec();
    let mut out = String::new();
    while out.len() < most && next(&text) != 2 {
        text.push(next(&text));
        out.push((b'a' + (text[text.len() - 1] - 259) as u8) as char);
    }
    out
}

fn prompt(seed: u32, n: u32) -> Vec<u32> {
    (0..n).map(|i| 259 + (seed * 31 + i * i) % 26).collect()
}

async fn ask(server: &Running, prompt: &[u32], most: usize) {
    let found = server
        .post("/v1/completions", &completion(prompt, most), 200)
        .await;
    assert_eq!(found["choices"][0]["text"], expected(prompt, most).as_str());
}

#[test]
fn requests_in_any_number_get_their_own_answers() {
    for slots in [1, 3, 8] {
        let setup = Setup {
            slots,
            ..Setup::default()
        };
        run(Oracle::default(), setup, |server| async move {
            let mut all = JoinSet::new();
            for i in 0..40 {
                let server = server.clone();
                all.spawn(async move {
                    // Every third prompt continues another.
                    ask(&server, &prompt(i % 3, 5 + 3 * i), 30).await;
                });
            }
            while let Some(done) = all.join_next().await {
                done.expect("the answer is right");
            }
            assert!(server.app.shared.metrics.cached_tokens.get() > 0);
            server.close_all().await;
        });
    }
}

#[test]
fn a_prompt_delays_answers_by_at_most_a_chunk() {
    let setup = Setup {
        slots: 2,
        n_ctx: 2000,
        batch: 64,
        chunk: 8,
    };
    let slow = Oracle {
        time: Duration::from_millis(1),
        ..Oracle::default()
    };
    let oracle = run(slow, setup, |server| async move {
        let first = server.clone();
        // The bias keeps the model from ending.
        let body = json!({
            "prompt": [259], "max_tokens": 150, "temperature": 0, "ignore_eos": true,
        });
        let long = tokio::spawn(async move { first.post("/v1/completions", &body, 200).await });
        tokio::time::sleep(Duration::from_millis(30)).await;
        let found = server
            .post("/v1/completions", &completion(&prompt(5, 600), 1), 200)
            .await;
        assert_eq!(found["usage"]["prompt_tokens"], 600);
        long.await.expect("an answer");
    });
    // One token of the answer and a chunk of the prompt.
    let shared = oracle.batches.iter().filter(|n| **n == 9).count();
    assert!(shared >= 70, "{:?}", oracle.batches);
    let most = oracle.batches.iter().max();
    assert!(most <= Some(&64), "{most:?}");
}

#[test]
fn equal_prompts_are_read_once() {
    let setup = Setup {
        slots: 4,
        n_ctx: 400,
        ..Setup::default()
    };
    let oracle = run(Oracle::default(), setup, |server| async move {
        let body = json!({
            "prompt": prompt(3, 300), "max_tokens": 4, "n": 4, "temperature": 1, "seed": 1,
        });
        let found = server.post("/v1/completions", &body, 200).await;
        assert_eq!(found["choices"].as_array().map(Vec::len), Some(4));
    });
    let read: usize = oracle.batches.iter().sum();
    // Without a prefix store, only the slot that read the prompt has its tokens.
    assert!(read < 4 * 300 + 20, "{read}");
}

#[test]
fn a_model_that_fails_once_answers_again() {
    let failing = Oracle {
        fails: Some((5, 1)),
        ..Oracle::default()
    };
    run(failing, Setup::default(), |server| async move {
        let body = json!({"prompt": [260], "max_tokens": 60, "ignore_eos": true});
        let error = server.post("/v1/completions", &body, 500).await;
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains("the device is lost"), "{message}");
        ask(&server, &prompt(1, 20), 10).await;
        let (status, _) = server.send("GET", "/health", Vec::new()).await;
        assert_eq!(status.as_u16(), 200);
    });
}

#[test]
fn a_model_that_keeps_failing_turns_health_to_503() {
    let failing = Oracle {
        fails: Some((5, usize::MAX - 9)),
        ..Oracle::default()
    };
    run(failing, Setup::default(), |server| async move {
        let body = json!({"prompt": [260], "max_tokens": 60, "ignore_eos": true});
        server.post("/v1/completions", &body, 500).await;
        for _ in 0..200 {
            let (status, text) = server.send("GET", "/health", Vec::new()).await;
            if status.as_u16() == 503 {
                let text = String::from_utf8_lossy(&text).into_owned();
                assert!(text.contains("the device is lost"), "{text}");
                server.post("/v1/completions", &body, 503).await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("/health stays at 200");
    });
}

#[test]
fn a_hung_device_turns_health_to_503_within_five_seconds() {
    let hanging = Oracle {
        hangs: Some((20, Duration::from_secs(7))),
        ..Oracle::default()
    };
    run(hanging, Setup::default(), |server| async move {
        let first = server.clone();
        let body = json!({"prompt": [260], "max_tokens": 60, "ignore_eos": true});
        let open = tokio::spawn(async move { first.post("/v1/completions", &body, 200).await });
        let begun = std::time::Instant::now();
        let message = loop {
            let (status, text) = server.send("GET", "/health", Vec::new()).await;
            if status.as_u16() == 503 {
                break String::from_utf8_lossy(&text).into_owned();
            }
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "/health stays at 200"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(message.contains("a device hangs"), "{message}");
        server
            .post("/v1/completions", &completion(&[261], 2), 503)
            .await;
        // The batch ends after all, and the answer is complete.
        open.await.expect("an answer");
        let (status, _) = server.send("GET", "/health", Vec::new()).await;
        assert_eq!(status.as_u16(), 200);
    });
}
