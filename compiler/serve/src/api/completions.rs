//! `POST /v1/completions`.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tpc_text::Show;

use super::answer::{
    Answers, Question, collect, completion_logprobs_json, finish_name, timings_json, usage_json,
};
use super::caller::Caller;
use super::constrain;
use super::fields::{Fields, shown};
use super::parameters::{Parameters, completion_logprobs};
use super::stream::{Chunks, stream};
use crate::app::App;
use crate::error::ApiError;
use crate::model::Served;
use crate::scheduler::{Event, Piece};

/// Maximum number of prompts per request.
const MOST_PROMPTS: usize = 128;

/// Maximum tokens of an answer if the request does not give it, as OpenAI documents.
const DEFAULT_MAX_TOKENS: usize = 16;

/// Continues texts.
pub(crate) async fn completions(
    app: Arc<App>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let served = app.ready()?;
    let mut parameters = Parameters::read(&fields, &app, served)?;
    if fields.value("max_tokens").is_none() && fields.value("n_predict").is_none() {
        parameters.max_tokens.get_or_insert(DEFAULT_MAX_TOKENS);
    }
    let record = completion_logprobs(&fields)?;
    let echo = fields.flag("echo", false)?;
    let worker = Arc::clone(&app);
    let given = fields.clone();
    let prompts = super::blocking(move || prompts(worker.ready()?, &given)).await?;
    let echoes = match echo {
        true => echoed(served, &prompts, parameters.n)?,
        false => vec![String::new(); prompts.len() * parameters.n],
    };
    let count = prompts.len() * parameters.n;
    let worker = Arc::clone(&app);
    let given = fields.clone();
    let constraints = super::blocking(move || match constrain::grammar(&given)? {
        Some(asked) => asked.constraints(worker.ready()?, count),
        None => Ok(Vec::new()),
    });
    let question = Question {
        constraints: constraints.await?,
        prompts,
        record,
        show: Show::Text,
        field: "prompt",
    };
    let user = caller.user(parameters.user.as_deref());
    let mut answers = Answers::start(&app, served, &user, &parameters, question)?;
    let head = json!({
        "id": format!("cmpl-{}-{:x}", served.created, answers.id),
        "object": "text_completion",
        "created": crate::model::now(),
        "model": served.model.name,
        "system_fingerprint": super::fingerprint(),
    });
    if parameters.stream {
        let chunks = TextChunks {
            app: Arc::clone(&app),
            head,
            offsets: echoes.iter().map(|e| e.chars().count()).collect(),
            echoes,
            records: record.is_some(),
            include_usage: parameters.include_usage,
        };
        return Ok(stream(answers, chunks));
    }
    let wholes = collect(&mut answers).await?;
    let tokenizer = &served.model.tokenizer;
    let choices = wholes.into_iter().zip(echoes).enumerate();
    let choices = choices.map(|(index, (whole, echo))| {
        let mut offset = echo.chars().count();
        let logprobs = record
            .is_some()
            .then(|| completion_logprobs_json(tokenizer, &whole.tokens, &mut offset));
        json!({
            "index": index,
            "text": echo + &whole.text,
            "logprobs": logprobs,
            "finish_reason": whole.finish.as_ref().map(finish_name),
        })
    });
    let mut out = head;
    out["choices"] = choices.collect();
    out["usage"] = usage_json(&answers.usage);
    out["timings"] = timings_json(&answers.usage);
    out["seed"] = answers.seed.into();
    Ok(axum::Json(out).into_response())
}

/// Reads the prompts: a text, a list of texts, tokens, or a list of lists of tokens.
fn prompts(served: &Served, fields: &Fields) -> Result<Vec<Vec<u32>>, ApiError> {
    let prompt = fields.value("prompt");
    let prompt = prompt.ok_or_else(|| ApiError::field("prompt", "`prompt` is missing"))?;
    inputs(served, prompt, "prompt", MOST_PROMPTS)
}

/// Reads texts or tokens: one text, several texts, the tokens of one text, or several lists of tokens.
///
/// # Errors
/// Returns an error that names the field.
pub(crate) fn inputs(
    served: &Served,
    value: &Value,
    field: &'static str,
    most: usize,
) -> Result<Vec<Vec<u32>>, ApiError> {
    let all = match value {
        Value::Array(items) if items.iter().any(Value::is_number) => std::slice::from_ref(value),
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    if all.is_empty() || all.len() > most {
        let message = format!("`{field}` must have 1 to {most} texts, not {}", all.len());
        return Err(ApiError::field(field, message));
    }
    let tokenizer = &served.model.tokenizer;
    let one = |value: &Value| match value {
        Value::String(text) => Ok(tokenizer.encode_prompt(text)),
        Value::Array(ids) => ids.iter().map(|id| token(served, id, field)).collect(),
        other => {
            let message = format!(
                "`{field}` must be a text, a list of texts, or tokens, not {}",
                shown(other)
            );
            Err(ApiError::field(field, message))
        }
    };
    all.iter().map(one).collect()
}

/// Reads a token's id.
pub(crate) fn token(served: &Served, value: &Value, field: &str) -> Result<u32, ApiError> {
    let n_vocab = served.model.n_vocab.min(served.model.tokenizer.len());
    let id = value.as_u64().filter(|id| *id < n_vocab as u64);
    id.map(|id| id as u32).ok_or_else(|| {
        let message = format!(
            "`{field}` has the token {}, but tokens are numbers from 0 to {}",
            shown(value),
            n_vocab.saturating_sub(1)
        );
        ApiError::field(field, message)
    })
}

fn echoed(served: &Served, prompts: &[Vec<u32>], n: usize) -> Result<Vec<String>, ApiError> {
    let mut out = Vec::new();
    for prompt in prompts {
        let text = served
            .model
            .tokenizer
            .decode(prompt, tpc_text::Start::Text, Show::Text);
        let text = text.map_err(|d| ApiError::of_request("prompt", &d))?;
        out.extend(std::iter::repeat_n(text, n));
    }
    Ok(out)
}

/// Writes the chunks of completions.
struct TextChunks {
    app: Arc<App>,
    head: Value,
    echoes: Vec<String>,
    /// Characters of each answer so far.
    offsets: Vec<usize>,
    records: bool,
    include_usage: bool,
}

impl TextChunks {
    fn chunk(&self, index: usize, text: &str, logprobs: &Value, finish: Option<&str>) -> Value {
        let mut out = self.head.clone();
        out["choices"] = json!([{
            "index": index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": finish,
        }]);
        if self.include_usage {
            out["usage"] = Value::Null;
        }
        out
    }
}

impl Chunks for TextChunks {
    fn event(&mut self, index: usize, event: Event) -> Vec<Value> {
        match event {
            Event::Started => match self.echoes.get_mut(index).map(std::mem::take) {
                Some(echo) if !echo.is_empty() => {
                    vec![self.chunk(index, &echo, &Value::Null, None)]
                }
                _ => Vec::new(),
            },
            Event::Text(Piece { text, tokens }) => {
                let logprobs = match (self.records, self.app.loaded(), self.offsets.get_mut(index))
                {
                    (true, Some(served), Some(offset)) => {
                        completion_logprobs_json(&served.model.tokenizer, &tokens, offset)
                    }
                    _ => Value::Null,
                };
                vec![self.chunk(index, &text, &logprobs, None)]
            }
            Event::Ended(ended) => {
                let finish = finish_name(&ended.finish);
                vec![self.chunk(index, "", &Value::Null, Some(finish))]
            }
            Event::Failed(_) => Vec::new(),
        }
    }

    fn end(&mut self, answers: &Answers) -> Vec<Value> {
        let mut out = self.head.clone();
        out["choices"] = json!([]);
        match self.include_usage {
            false => return Vec::new(),
            true => out["usage"] = usage_json(&answers.usage),
        }
        out["timings"] = timings_json(&answers.usage);
        vec![out]
    }
}
