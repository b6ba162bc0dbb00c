use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::Value;
use tpc_text::{Markers, Settings, SpecialText};

use super::fields::{Fields, shown};
use crate::app::App;
use crate::error::ApiError;
use crate::model::Served;

/// Maximum answers per request.
const MOST_CHOICES: usize = 128;
/// Maximum number of likeliest tokens with log-probabilities.
const MOST_LOGPROBS: usize = 20;
/// Maximum number of stop texts.
const MOST_STOPS: usize = 64;
/// Maximum length of a stop text, in bytes.
const LONGEST_STOP: usize = 1024;

/// The parameters that requests for answers have in common.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) settings: Settings,
    pub(crate) n: usize,
    pub(crate) max_tokens: Option<usize>,
    pub(crate) stops: Vec<String>,
    pub(crate) stream: bool,
    /// True if the last chunk of a stream has the usage.
    pub(crate) include_usage: bool,
    pub(crate) ignore_end: bool,
    pub(crate) reuse: bool,
    /// The user's name, if the request gives it.
    pub(crate) user: Option<String>,
}

impl Parameters {
    /// Reads the parameters. Missing ones have the server's defaults.
    ///
    /// # Errors
    /// Returns an error that names the wrong field.
    pub(crate) fn read(
        fields: &Fields,
        app: &App,
        served: &Served,
    ) -> Result<Parameters, ApiError> {
        let stream = fields.flag("stream", false)?;
        let options: Option<serde_json::Map<String, Value>> =
            fields.get("stream_options", "an object")?;
        let include_usage = options
            .and_then(|o| o.get("include_usage").and_then(Value::as_bool))
            .unwrap_or(false);
        Ok(Parameters {
            settings: settings(fields, app, served)?,
            n: fields.number("n", 1..=MOST_CHOICES)?.unwrap_or(1),
            max_tokens: max_tokens(fields)?,
            stops: stops(fields)?,
            stream,
            include_usage,
            ignore_end: fields.flag("ignore_eos", false)?,
            reuse: fields.flag("cache_prompt", true)?,
            user: user(fields)?,
        })
    }
}

fn user(fields: &Fields) -> Result<Option<String>, ApiError> {
    let named: Option<String> = fields.get("safety_identifier", "a text")?;
    match named {
        Some(user) => Ok(Some(user)),
        None => fields.get("user", "a text"),
    }
}

fn settings(fields: &Fields, app: &App, served: &Served) -> Result<Settings, ApiError> {
    let default = &app.options.sampling;
    let top_k: Option<i64> = fields.get("top_k", "a whole number")?;
    let window: Option<i64> = fields.get("repeat_last_n", "a whole number")?;
    let penalty = -100.0..=100.0_f32;
    let settings = Settings {
        temperature: fields
            .number("temperature", 0.0..=100.0)?
            .unwrap_or(default.temperature),
        top_k: top_k.map_or(default.top_k, |k| usize::try_from(k).unwrap_or(0)),
        top_p: fields.number("top_p", 0.0..=1.0)?.unwrap_or(default.top_p),
        min_p: fields.number("min_p", 0.0..=1.0)?.unwrap_or(default.min_p),
        window: window.map_or(default.window, |n| usize::try_from(n).unwrap_or(usize::MAX)),
        repetition: fields
            .number("repeat_penalty", f32::MIN_POSITIVE..=100.0)?
            .unwrap_or(default.repetition),
        frequency: fields
            .number("frequency_penalty", penalty.clone())?
            .unwrap_or(default.frequency),
        presence: fields
            .number("presence_penalty", penalty)?
            .unwrap_or(default.presence),
        seed: seed(fields, app)?,
        bias: bias(fields, served)?,
    };
    Ok(settings)
}

/// Returns the request's seed, the server's, or else a random one.
fn seed(fields: &Fields, app: &App) -> Result<u64, ApiError> {
    let given: Option<i128> = match fields.value("seed") {
        None => None,
        Some(Value::Number(n)) if n.is_i64() => n.as_i64().map(i128::from),
        Some(Value::Number(n)) if n.is_u64() => n.as_u64().map(i128::from),
        Some(other) => {
            let message = format!("`seed` must be a whole number, not {}", shown(other));
            return Err(ApiError::field("seed", message));
        }
    };
    Ok(match given {
        // llama.cpp's clients write -1 for a random seed.
        None | Some(-1) => app.options.seed.unwrap_or_else(random),
        Some(n) => n as u64,
    })
}

fn random() -> u64 {
    // The standard library seeds each hasher at random.
    RandomState::new().build_hasher().finish() >> 11
}

fn max_tokens(fields: &Fields) -> Result<Option<usize>, ApiError> {
    for name in ["max_completion_tokens", "max_tokens", "n_predict"] {
        let found: Option<i64> = fields.get(name, "a whole number")?;
        match found {
            None => {}
            // llama.cpp's clients write -1 for no limit.
            Some(-1) => return Ok(None),
            Some(n) => {
                return usize::try_from(n).map(Some).map_err(|_| {
                    ApiError::field(name, format!("`{name}` must not be negative, but is {n}"))
                });
            }
        }
    }
    Ok(None)
}

fn stops(fields: &Fields) -> Result<Vec<String>, ApiError> {
    let stops = match fields.value("stop") {
        None => Vec::new(),
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(_) => {
            let expected = "a text or a list of texts";
            fields.get("stop", expected)?.unwrap_or_default()
        }
    };
    if stops.len() > MOST_STOPS {
        let message = format!(
            "`stop` has {} texts; at most {MOST_STOPS} are supported",
            stops.len()
        );
        return Err(ApiError::field("stop", message));
    }
    if stops.iter().any(|s| s.len() > LONGEST_STOP) {
        let message = format!("a text of `stop` is longer than {LONGEST_STOP} bytes");
        return Err(ApiError::field("stop", message));
    }
    Ok(stops)
}

/// Reads `logit_bias`: an object from token ids to numbers, or llama.cpp's list of pairs of a token or text and a
/// number or `false`.
fn bias(fields: &Fields, served: &Served) -> Result<Vec<(u32, f32)>, ApiError> {
    let mut out = Vec::new();
    match fields.value("logit_bias") {
        None => {}
        Some(Value::Object(pairs)) => {
            for (token, amount) in pairs {
                let key = match token.parse::<u32>() {
                    Ok(id) => Value::from(id),
                    Err(_) => Value::from(token.as_str()),
                };
                add_bias(&key, amount, served, &mut out)?;
            }
        }
        Some(Value::Array(pairs)) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([token, amount]) => add_bias(token, amount, served, &mut out)?,
                    _ => return Err(bias_error(pair)),
                }
            }
        }
        Some(other) => return Err(bias_error(other)),
    }
    Ok(out)
}

fn add_bias(
    token: &Value,
    amount: &Value,
    served: &Served,
    out: &mut Vec<(u32, f32)>,
) -> Result<(), ApiError> {
    let amount = match amount {
        Value::Bool(false) => f32::NEG_INFINITY,
        Value::Number(n) => n.as_f64().map_or(0.0, |n| n.clamp(-1e6, 1e6) as f32),
        other => return Err(bias_error(other)),
    };
    let n_vocab = served.model.n_vocab;
    match token {
        Value::Number(n) => {
            let id = n.as_u64().filter(|id| (*id as usize) < n_vocab);
            let Some(id) = id else {
                let message =
                    format!("`logit_bias` names token {n}, but the vocabulary has {n_vocab}");
                return Err(ApiError::field("logit_bias", message));
            };
            out.push((id as u32, amount));
        }
        Value::String(text) => {
            let tokenizer = &served.model.tokenizer;
            let ids = tokenizer.encode(text, SpecialText::Read, Markers::Omit);
            out.extend(ids.into_iter().map(|id| (id, amount)));
        }
        other => return Err(bias_error(other)),
    }
    Ok(())
}

fn bias_error(found: &Value) -> ApiError {
    let message = format!(
        "`logit_bias` must be an object from token ids to numbers, not {}",
        shown(found)
    );
    ApiError::field("logit_bias", message)
}

/// Returns the number of likeliest tokens to record: `logprobs` and `top_logprobs` of a chat.
///
/// # Errors
/// Returns an error that names the wrong field.
pub(crate) fn chat_logprobs(fields: &Fields) -> Result<Option<usize>, ApiError> {
    let wanted = fields.flag("logprobs", false)?;
    let top = fields.number("top_logprobs", 0..=MOST_LOGPROBS)?;
    match (wanted, top) {
        (true, top) => Ok(Some(top.unwrap_or(0))),
        (false, Some(1..)) => Err(ApiError::field(
            "top_logprobs",
            "`top_logprobs` needs `logprobs: true`",
        )),
        (false, _) => Ok(None),
    }
}

/// Returns the number of likeliest tokens to record: `logprobs` of a completion.
///
/// # Errors
/// Returns an error that names the wrong field.
pub(crate) fn completion_logprobs(fields: &Fields) -> Result<Option<usize>, ApiError> {
    match fields.value("logprobs") {
        Some(Value::Bool(false)) => Ok(None),
        _ => fields.number("logprobs", 0..=MOST_LOGPROBS),
    }
}
