use serde_json::json;

use super::client::Served;
use crate::support::Scratch;
use crate::worded::worded;

const SPEC: &str = "llama:layers=2,embd=64,heads=4,kv_heads=2,head_dim=16,ff=96,vocab=286,ctx=256";

fn served(options: &[&str]) -> (Scratch, Served) {
    served_with(SPEC, options)
}

fn served_with(spec: &str, options: &[&str]) -> (Scratch, Served) {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", spec);
    let served = Served::start(model.to_str().unwrap(), options);
    (scratch, served)
}

#[test]
fn a_server_describes_its_model() {
    let (_scratch, served) = served(&["-np", "3", "--alias", "small"]);
    assert_eq!(served.get("/health").ok(), json!({"status": "ok"}));
    let models = served.get("/v1/models").ok();
    assert_eq!(models["object"], "list");
    assert_eq!(models["data"][0]["id"], "small");
    assert_eq!(models["data"][0]["meta"]["n_ctx"], 256);
    let props = served.get("/props").ok();
    assert_eq!(props["total_slots"], 3);
    assert_eq!(props["bos_token"], "<s>");
    let slots = served.get("/slots").ok();
    assert_eq!(slots.as_array().unwrap().len(), 3);
    assert!(served.get("/").body.contains("<!doctype html"));
    assert_eq!(served.metric("tpc_slots"), 3.0);
}

#[test]
fn text_is_tokenized_and_back() {
    let (_scratch, served) = served(&[]);
    let found = served.post("/tokenize", &json!({"content": "a cat"})).ok();
    let tokens = found["tokens"].clone();
    assert!(tokens.as_array().unwrap().len() >= 5, "{found}");
    let back = served
        .post("/detokenize", &json!({ "tokens": tokens }))
        .ok();
    assert_eq!(back["content"], "a cat");
    let pieces = json!({"content": "ab", "with_pieces": true, "add_special": true});
    let pieces = served.post("/tokenize", &pieces).ok();
    assert_eq!(pieces["tokens"][0]["id"], 1);
    let chat = json!({"messages": [{"role": "user", "content": "hi"}]});
    let prompt = served.post("/apply-template", &chat).ok();
    let prompt = prompt["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("hi") && prompt.ends_with("assistant\n"),
        "{prompt}"
    );
}

#[test]
fn completions_have_openais_form() {
    let (_scratch, served) = served(&["-np", "4"]);
    let one = served
        .complete(&json!("a cat"), &json!({"logprobs": 2}))
        .ok();
    assert_eq!(one["object"], "text_completion");
    let choice = &one["choices"][0];
    let logprobs = &choice["logprobs"];
    let n = one["usage"]["completion_tokens"].as_u64().unwrap() as usize;
    assert_eq!(logprobs["token_logprobs"].as_array().unwrap().len(), n);
    assert!(logprobs["top_logprobs"][0].as_object().unwrap().len() <= 2);
    // The likeliest token is the chosen one.
    let first = logprobs["tokens"][0].as_str().unwrap();
    assert_eq!(
        logprobs["top_logprobs"][0][first],
        logprobs["token_logprobs"][0]
    );
    let several = served
        .complete(
            &json!(["a cat", "a dog"]),
            &json!({"n": 2, "temperature": 1, "seed": 5}),
        )
        .ok();
    assert_eq!(several["choices"].as_array().unwrap().len(), 4);
    let ids = served
        .complete(&json!([5, 6, 7]), &json!({"max_tokens": 3}))
        .ok();
    assert_eq!(ids["usage"]["prompt_tokens"], 3);
    let echo = served
        .complete(&json!("abc"), &json!({"echo": true, "max_tokens": 1}))
        .ok();
    assert!(
        echo["choices"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("abc")
    );
}

#[test]
fn a_stream_has_the_text_of_the_whole_answer() {
    let (_scratch, served) = served(&[]);
    let chat = |stream: bool| {
        json!({
            "messages": [{"role": "user", "content": "a cat"}],
            "max_tokens": 12, "seed": 3, "temperature": 1, "n": 2, "logprobs": true,
            "stream": stream, "stream_options": {"include_usage": true},
        })
    };
    let whole = served.post("/v1/chat/completions", &chat(false)).ok();
    let chunks = served.post("/v1/chat/completions", &chat(true)).chunks();
    for index in 0..2 {
        let own = chunks
            .iter()
            .map(|c| &c["choices"][0])
            .filter(|c| c["index"] == index);
        let text: String = own
            .clone()
            .filter_map(|c| c["delta"]["content"].as_str())
            .collect();
        let choice = &whole["choices"][index];
        assert_eq!(choice["message"]["content"], text.as_str());
        let logprobs: Vec<_> = own
            .clone()
            .filter_map(|c| c["logprobs"]["content"].as_array())
            .flatten()
            .collect();
        let all = choice["logprobs"]["content"].as_array().unwrap();
        assert!(all.iter().eq(logprobs), "{all:?}");
        let finish = own.filter_map(|c| c["finish_reason"].as_str()).next_back();
        assert_eq!(choice["finish_reason"].as_str(), finish);
    }
    let last = chunks.last().unwrap();
    assert_eq!(
        last["usage"]["completion_tokens"],
        whole["usage"]["completion_tokens"]
    );
}

#[test]
fn stops_biases_and_grammars_shape_answers() {
    let (_scratch, served) = served(&[]);
    let free = served
        .complete(&json!("a"), &json!({"max_tokens": 20}))
        .ok();
    let text = free["choices"][0]["text"].as_str().unwrap().to_owned();
    let stop: String = text.chars().skip(4).take(2).collect();
    let cut = served
        .complete(&json!("a"), &json!({"max_tokens": 20, "stop": [stop]}))
        .ok();
    assert_eq!(cut["choices"][0]["finish_reason"], "stop");
    let cut = cut["choices"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(cut) && !cut.contains(&stop),
        "{text:?} {stop:?} {cut:?}"
    );
    let biased = served
        .complete(
            &json!("a"),
            &json!({"logit_bias": {"262": 1000}, "max_tokens": 4}),
        )
        .ok();
    assert_eq!(biased["choices"][0]["text"], "dddd");
    let regular = served
        .complete(
            &json!("a"),
            &json!({"grammar": "root ::= \"ab\" [c-e]+ \"f\"", "max_tokens": 30}),
        )
        .ok();
    let regular = regular["choices"][0]["text"].as_str().unwrap().to_owned();
    assert!(regular.starts_with("ab"), "{regular}");
    let schema = json!({
        "messages": [{"role": "user", "content": "a cat"}],
        "temperature": 1, "seed": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"enum": ["x", "yy"]}},
        }}},
    });
    let found = served.post("/v1/chat/completions", &schema).ok();
    let content = found["choices"][0]["message"]["content"].as_str().unwrap();
    let content: serde_json::Value = serde_json::from_str(content).unwrap();
    assert!(["x", "yy"].iter().any(|v| content["a"] == *v), "{content}");
}

#[test]
fn a_required_tool_is_called() {
    // Each letter of the tool's description is a token.
    let (_scratch, served) = served_with(&SPEC.replace("ctx=256", "ctx=2048"), &[]);
    let tool = json!({"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "required": ["days"], "additionalProperties": false,
        "properties": {"days": {"enum": [1, 2]}},
    }}});
    let mut chat = json!({
        "messages": [{"role": "user", "content": "a cat"}],
        "tools": [tool], "tool_choice": "required", "seed": 4, "max_tokens": 200,
    });
    let whole = served.post("/v1/chat/completions", &chat).ok();
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{whole}");
    let function = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "weather");
    let arguments: serde_json::Value =
        serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments["days"] == 1 || arguments["days"] == 2);
    chat["stream"] = true.into();
    let chunks = served.post("/v1/chat/completions", &chat).chunks();
    let calls = chunks.iter().filter_map(|c| {
        c["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
    });
    assert_eq!(function["arguments"], calls.collect::<String>().as_str());
    let last = chunks
        .iter()
        .rev()
        .find_map(|c| c["choices"][0]["finish_reason"].as_str());
    assert_eq!(last, Some("tool_calls"));
}

#[test]
fn an_embedding_model_gives_vectors() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "words.gguf", SPEC);
    let served = Served::start(
        model.to_str().unwrap(),
        &["--embeddings", "--pooling", "mean"],
    );
    let found = served
        .post("/v1/embeddings", &json!({"input": ["a cat", "a dog"]}))
        .ok();
    let vectors: Vec<Vec<f64>> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| serde_json::from_value(e["embedding"].clone()).unwrap())
        .collect();
    assert_eq!((vectors.len(), vectors[0].len()), (2, 64));
    let norm: f64 = vectors[0].iter().map(|x| x * x).sum();
    assert!((norm - 1.0).abs() < 1e-5 && vectors[0] != vectors[1]);
    let text = json!({"input": "a cat", "encoding_format": "base64"});
    let text = served.post("/v1/embeddings", &text).ok();
    assert_eq!(text["data"][0]["embedding"].as_str().unwrap().len(), 344);
    let chat = json!({"messages": [{"role": "user", "content": "hi"}]});
    served.post("/v1/chat/completions", &chat).error(501);
}
