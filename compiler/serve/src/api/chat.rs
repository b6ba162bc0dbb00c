//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::answer::{
    Answers, Question, Whole, chat_logprobs_json, collect, finish_name, timings_json, usage_json,
};
use super::caller::Caller;
use super::fields::Fields;
use super::form::{Delta, Form, FormParser};
use super::message::{MessageBuilder, delta_json, is_call};
use super::parameters::{Parameters, chat_logprobs};
use super::prompt::{ChatPrompt, chat_prompt};
use super::stream::{Chunks, stream};
use crate::app::App;
use crate::error::ApiError;
use crate::scheduler::{Event, Piece};

/// Answers a chat.
pub(crate) async fn chat(
    app: Arc<App>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let served = app.ready()?;
    let parameters = Parameters::read(&fields, &app, served)?;
    let record = chat_logprobs(&fields)?;
    let worker = Arc::clone(&app);
    let given = fields.clone();
    let n = parameters.n;
    let prompt = super::blocking(move || chat_prompt(worker.ready()?, &given, n)).await?;
    let ChatPrompt {
        tokens,
        constraints,
        form,
        show,
    } = prompt;
    let question = Question {
        prompts: vec![tokens],
        constraints,
        record,
        show,
        field: "messages",
    };
    let user = caller.user(parameters.user.as_deref());
    let mut answers = Answers::start(&app, served, &user, &parameters, question)?;
    let head = Head {
        id: format!("chatcmpl-{}-{:x}", served.created, answers.id),
        created: crate::model::now(),
        model: served.model.name.clone(),
        fingerprint: super::fingerprint(),
    };
    if parameters.stream {
        let chunks = ChatChunks {
            app: Arc::clone(&app),
            head,
            parsers: vec![form.parser(); n],
            begun: vec![false; n],
            calls: vec![false; n],
            records: record.is_some(),
            include_usage: parameters.include_usage,
        };
        return Ok(stream(answers, chunks));
    }
    let wholes = collect(&mut answers).await?;
    let mut choices = Vec::new();
    for (index, whole) in wholes.into_iter().enumerate() {
        let ids = head.call_ids(index);
        let mut out = choice(&app, &form, &whole, &ids, record.is_some())?;
        out["index"] = index.into();
        choices.push(out);
    }
    let mut out = head.json("chat.completion");
    out["choices"] = choices.into();
    out["usage"] = usage_json(&answers.usage);
    out["timings"] = timings_json(&answers.usage);
    out["seed"] = answers.seed.into();
    Ok(axum::Json(out).into_response())
}

/// The fields that all chunks of an answer share.
#[derive(Clone, Debug)]
struct Head {
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

impl Head {
    fn json(&self, object: &str) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        })
    }

    /// Returns the start of the ids of an answer's calls.
    fn call_ids(&self, index: usize) -> String {
        let own = self.id.trim_start_matches("chatcmpl-");
        format!("{own}_{index}")
    }
}

fn choice(
    app: &App,
    form: &Form,
    whole: &Whole,
    ids: &str,
    records: bool,
) -> Result<Value, ApiError> {
    let mut parser = form.parser();
    let mut message = MessageBuilder::default();
    for delta in parser.push(&whole.text) {
        message.add(delta, ids);
    }
    for delta in parser.finish() {
        message.add(delta, ids);
    }
    let finish = whole.finish.as_ref().map(finish_name);
    let finish = match (message.calls_tool(), finish) {
        (true, Some("stop")) => Some("tool_calls"),
        (_, finish) => finish,
    };
    let tokenizer = &app.ready()?.model.tokenizer;
    Ok(json!({
        "index": 0,
        "message": message.json(),
        "logprobs": records.then(|| chat_logprobs_json(tokenizer, &whole.tokens)),
        "finish_reason": finish,
    }))
}

/// Writes the chunks of a chat.
struct ChatChunks {
    app: Arc<App>,
    head: Head,
    parsers: Vec<FormParser>,
    /// True for each answer whose role has been sent.
    begun: Vec<bool>,
    /// True for each answer that calls a tool.
    calls: Vec<bool>,
    records: bool,
    include_usage: bool,
}

impl ChatChunks {
    fn chunk(&self, index: usize, delta: &Value, finish: Option<&str>, logprobs: &Value) -> Value {
        let mut out = self.head.json("chat.completion.chunk");
        out["choices"] = json!([{
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
        }]);
        if self.include_usage {
            out["usage"] = Value::Null;
        }
        out
    }

    fn begin(&mut self, index: usize, out: &mut Vec<Value>) {
        if let Some(begun) = self.begun.get_mut(index)
            && !std::mem::replace(begun, true)
        {
            let delta = json!({ "role": "assistant", "content": "" });
            out.push(self.chunk(index, &delta, None, &Value::Null));
        }
    }

    fn deltas(&mut self, index: usize, deltas: &[Delta], logprobs: Value, out: &mut Vec<Value>) {
        let mut logprobs = Some(logprobs);
        let ids = self.head.call_ids(index);
        for delta in deltas {
            if let (true, Some(calls)) = (is_call(delta), self.calls.get_mut(index)) {
                *calls = true;
            }
            let logprobs = logprobs.take().unwrap_or(Value::Null);
            out.push(self.chunk(index, &delta_json(delta, &ids), None, &logprobs));
        }
        if let Some(logprobs) = logprobs.filter(|l| !l.is_null()) {
            out.push(self.chunk(index, &json!({}), None, &logprobs));
        }
    }
}

impl Chunks for ChatChunks {
    fn event(&mut self, index: usize, event: Event) -> Vec<Value> {
        let mut out = Vec::new();
        match event {
            Event::Started => self.begin(index, &mut out),
            Event::Text(Piece { text, tokens }) => {
                self.begin(index, &mut out);
                let deltas = self.parsers.get_mut(index).map(|p| p.push(&text));
                let logprobs = match (self.records && !tokens.is_empty(), self.app.loaded()) {
                    (true, Some(served)) => chat_logprobs_json(&served.model.tokenizer, &tokens),
                    _ => Value::Null,
                };
                self.deltas(index, &deltas.unwrap_or_default(), logprobs, &mut out);
            }
            Event::Ended(ended) => {
                self.begin(index, &mut out);
                let deltas = self.parsers.get_mut(index).map(FormParser::finish);
                self.deltas(index, &deltas.unwrap_or_default(), Value::Null, &mut out);
                let finish = match (self.calls.get(index), finish_name(&ended.finish)) {
                    (Some(true), "stop") => "tool_calls",
                    (_, finish) => finish,
                };
                out.push(self.chunk(index, &json!({}), Some(finish), &Value::Null));
            }
            Event::Failed(_) => {}
        }
        out
    }

    fn end(&mut self, answers: &Answers) -> Vec<Value> {
        let mut out = self.head.json("chat.completion.chunk");
        out["choices"] = json!([]);
        out["timings"] = timings_json(&answers.usage);
        match self.include_usage {
            false => return Vec::new(),
            true => out["usage"] = usage_json(&answers.usage),
        }
        vec![out]
    }
}
