use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout_at;
use tpc_text::{Constraint, Settings, Show, TokenRecord, Tokenizer};

use super::parameters::Parameters;
use crate::app::App;
use crate::error::ApiError;
use crate::model::{Function, Served};
use crate::scheduler::{Command, Event, EventSender, Finish, Job, TokenOut, Usage};

/// A request for answers to one or more prompts.
pub(crate) struct Question {
    pub(crate) prompts: Vec<Vec<u32>>,
    /// One constraint per answer; empty without a grammar.
    pub(crate) constraints: Vec<Box<dyn Constraint>>,
    pub(crate) record: Option<usize>,
    pub(crate) show: Show,
    /// Name of the field with the prompt, for errors.
    pub(crate) field: &'static str,
}

/// The answers in progress to a request. The drop cancels them.
pub(crate) struct Answers {
    events: mpsc::UnboundedReceiver<(usize, Event)>,
    /// Number of answers that have not ended.
    open: usize,
    deadline: Instant,
    timeout: Duration,
    /// Tokens and times of the request.
    pub(crate) usage: Usage,
    /// Number of the request.
    pub(crate) id: u64,
    /// Seed of the first answer.
    pub(crate) seed: u64,
}

impl Answers {
    /// Sends a request's jobs to the scheduler.
    ///
    /// # Errors
    /// Returns an error if a prompt does not fit the context, or if the server has too many requests.
    pub(crate) fn start(
        app: &App,
        served: &Served,
        user: &str,
        parameters: &Parameters,
        question: Question,
    ) -> Result<Answers, ApiError> {
        if served.model.function != Function::Text {
            let message =
                "the server computes embeddings; start it without --embeddings for answers";
            return Err(ApiError::unsupported(message));
        }
        let n_ctx = served.model.n_ctx;
        for prompt in &question.prompts {
            if prompt.is_empty() {
                let message = format!("`{}` is empty; give at least one token", question.field);
                return Err(ApiError::field(question.field, message));
            }
            // The last token of an answer need not fit the caches.
            if prompt.len() > n_ctx {
                return Err(ApiError::too_long(question.field, prompt.len(), n_ctx));
            }
        }
        let count = question.prompts.len() * parameters.n;
        let tickets = app.shared.admission.admit(user, count);
        let tickets = tickets.map_err(|refusal| app.refusal(refusal))?;
        let (sender, events) = mpsc::unbounded_channel();
        let id = app.shared.next_request();
        let arrived = Instant::now();
        let prompts = question.prompts.iter().flat_map(|prompt| {
            let of_prompt = (0..parameters.n).map(move |i| (prompt, i));
            of_prompt.into_iter()
        });
        let mut constraints = question.constraints.into_iter();
        let mut usage = Usage::default();
        for (choice, ((prompt, i), ticket)) in prompts.zip(tickets).enumerate() {
            let settings = Settings {
                seed: parameters.settings.seed.wrapping_add(i as u64),
                ..parameters.settings.clone()
            };
            if i == 0 {
                usage.prompt += prompt.len();
            }
            app.send(Command::Generate(Box::new(Job {
                id,
                user: user.to_owned(),
                prompt: prompt.clone(),
                settings,
                constraint: constraints.next(),
                record: question.record,
                max_tokens: parameters.max_tokens,
                stops: parameters.stops.clone(),
                ignore_end: parameters.ignore_end,
                show: question.show,
                reuse: parameters.reuse,
                events: EventSender::new(sender.clone(), choice),
                arrived,
                _ticket: ticket,
            })))?;
        }
        Ok(Answers {
            events,
            open: count,
            deadline: arrived + app.options.timeout,
            timeout: app.options.timeout,
            usage,
            id,
            seed: parameters.settings.seed,
        })
    }

    /// Returns the next event with the number of its answer; `None` after all answers have ended.
    ///
    /// # Errors
    /// Returns the error of a failed answer, and an error if the request takes too long.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, Event)>, ApiError> {
        if self.open == 0 {
            return Ok(None);
        }
        let event = timeout_at(self.deadline.into(), self.events.recv()).await;
        let Ok(event) = event else {
            return Err(ApiError::deadline(self.timeout.as_secs()));
        };
        match event {
            None => Err(ApiError::unavailable("the server is shutting down")),
            Some((_, Event::Failed(d))) => Err(ApiError::of_model(&d)),
            Some((choice, event)) => {
                if let Event::Ended(ended) = &event {
                    self.open -= 1;
                    self.add(&ended.usage);
                }
                Ok(Some((choice, event)))
            }
        }
    }

    fn add(&mut self, other: &Usage) {
        let usage = &mut self.usage;
        usage.cached = usage.cached.max(other.cached);
        usage.answer += other.answer;
        usage.drafted += other.drafted;
        usage.accepted += other.accepted;
        usage.prompt_seconds = usage.prompt_seconds.max(other.prompt_seconds);
        usage.answer_seconds = usage.answer_seconds.max(other.answer_seconds);
        usage.queued_seconds = usage.queued_seconds.max(other.queued_seconds);
    }
}

/// A complete answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) tokens: Vec<TokenOut>,
    pub(crate) finish: Option<Finish>,
}

/// Collects all answers.
///
/// # Errors
/// Returns the errors of [`Answers::next`].
pub(crate) async fn collect(answers: &mut Answers) -> Result<Vec<Whole>, ApiError> {
    let mut out = vec![Whole::default(); answers.open];
    while let Some((choice, event)) = answers.next().await? {
        let Some(whole) = out.get_mut(choice) else {
            continue;
        };
        match event {
            Event::Text(piece) => {
                whole.text.push_str(&piece.text);
                whole.tokens.extend(piece.tokens);
            }
            Event::Ended(ended) => whole.finish = Some(ended.finish),
            Event::Started | Event::Failed(_) => {}
        }
    }
    Ok(out)
}

/// Returns OpenAI's name of a reason.
pub(crate) const fn finish_name(finish: &Finish) -> &'static str {
    match finish {
        Finish::EndToken | Finish::StopText(_) => "stop",
        Finish::Length => "length",
    }
}

/// Returns OpenAI's usage.
pub(crate) fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt + usage.answer,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": {
            "accepted_prediction_tokens": usage.accepted,
            "rejected_prediction_tokens": usage.drafted - usage.accepted,
        },
    })
}

/// Returns llama.cpp's timings.
pub(crate) fn timings_json(usage: &Usage) -> Value {
    let read = usage.prompt.saturating_sub(usage.cached);
    let rate = |n: usize, seconds: f64| match seconds > 0.0 {
        true => n as f64 / seconds,
        false => 0.0,
    };
    let each = |n: usize, seconds: f64| match n > 0 {
        true => seconds * 1e3 / n as f64,
        false => 0.0,
    };
    json!({
        "cache_n": usage.cached,
        "prompt_n": read,
        "prompt_ms": usage.prompt_seconds * 1e3,
        "prompt_per_token_ms": each(read, usage.prompt_seconds),
        "prompt_per_second": rate(read, usage.prompt_seconds),
        "predicted_n": usage.answer,
        "predicted_ms": usage.answer_seconds * 1e3,
        "predicted_per_token_ms": each(usage.answer.saturating_sub(1), usage.answer_seconds),
        "predicted_per_second": rate(usage.answer.saturating_sub(1), usage.answer_seconds),
        "draft_n": usage.drafted,
        "draft_n_accepted": usage.accepted,
        "queued_ms": usage.queued_seconds * 1e3,
    })
}

/// Returns a token's text and bytes.
fn spelled(tokenizer: &Tokenizer, id: u32) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let _ = tokenizer.piece(id, &mut bytes);
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}

/// Returns log-probabilities in the form of chats.
pub(crate) fn chat_logprobs_json(tokenizer: &Tokenizer, tokens: &[TokenOut]) -> Value {
    let entry = |id: u32, logprob: f32| {
        let (token, bytes) = spelled(tokenizer, id);
        json!({ "id": id, "token": token, "logprob": finite(logprob), "bytes": bytes })
    };
    let content = recorded(tokens).map(|(id, record)| {
        let mut out = entry(id, record.logprob);
        let top = record.top.iter().map(|&(id, logprob)| entry(id, logprob));
        out["top_logprobs"] = top.collect();
        out
    });
    json!({ "content": content.collect::<Vec<_>>(), "refusal": null })
}

/// Returns log-probabilities in the form of completions. `offset` is the number of characters before the tokens.
pub(crate) fn completion_logprobs_json(
    tokenizer: &Tokenizer,
    tokens: &[TokenOut],
    offset: &mut usize,
) -> Value {
    let (mut texts, mut logprobs, mut tops, mut offsets) = (vec![], vec![], vec![], vec![]);
    for (id, record) in recorded(tokens) {
        let (text, _) = spelled(tokenizer, id);
        offsets.push(*offset);
        *offset += text.chars().count();
        texts.push(text);
        logprobs.push(finite(record.logprob));
        let top = record.top.iter();
        let top = top.map(|&(id, logprob)| (spelled(tokenizer, id).0, finite(logprob).into()));
        tops.push(Value::Object(top.collect()));
    }
    json!({ "tokens": texts, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets })
}

fn recorded(tokens: &[TokenOut]) -> impl Iterator<Item = (u32, &TokenRecord)> {
    tokens
        .iter()
        .filter_map(|t| t.record.as_ref().map(|r| (t.id, r)))
}

/// Returns a number that JSON can hold. OpenAI writes -9999 for a probability of 0.
fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}
