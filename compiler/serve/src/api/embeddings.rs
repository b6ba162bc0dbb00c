//! `POST /v1/embeddings`.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::caller::Caller;
use super::completions::inputs;
use super::fields::Fields;
use crate::app::App;
use crate::error::ApiError;
use crate::model::Function;
use crate::scheduler::{Command, EmbedJob};

/// Maximum number of texts per request, as OpenAI documents.
const MOST_TEXTS: usize = 2048;

/// Computes the embeddings of texts.
pub(crate) async fn embeddings(
    app: Arc<App>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let served = app.ready()?;
    match served.model.function {
        Function::Embeddings => {}
        Function::TokenEmbeddings => {
            return Err(ApiError::request(
                "the server computes one vector per token; start it with --pooling mean, cls or last",
            ));
        }
        Function::Text => {
            return Err(ApiError::unsupported(
                "the server generates text; start it with --embeddings for embeddings",
            ));
        }
    }
    let base64 = encoding(&fields)?;
    if let Some(n) = fields.value("dimensions") {
        let message = format!("`dimensions` is not supported, but the request has {n}");
        return Err(ApiError::field("dimensions", message));
    }
    let name = ["input", "content"]
        .into_iter()
        .find(|name| fields.value(name).is_some());
    let name = name.ok_or_else(|| ApiError::field("input", "`input` is missing"))?;
    let worker = Arc::clone(&app);
    let given = fields.clone();
    let texts = super::blocking(move || {
        let value = given.value(name).unwrap_or(&Value::Null);
        inputs(worker.ready()?, value, name, MOST_TEXTS)
    });
    let texts = texts.await?;
    for tokens in &texts {
        if tokens.is_empty() {
            return Err(ApiError::field(
                name,
                format!("a text of `{name}` is empty"),
            ));
        }
        if tokens.len() > served.model.n_ctx {
            return Err(ApiError::too_long(name, tokens.len(), served.model.n_ctx));
        }
    }
    let user: Option<String> = fields.get("user", "a text")?;
    let user = caller.user(user.as_deref());
    let mut data = Vec::new();
    let mut n_tokens = 0;
    for (index, tokens) in texts.into_iter().enumerate() {
        n_tokens += tokens.len();
        let vector = embed(&app, &user, tokens).await?;
        data.push(json!({
            "object": "embedding",
            "index": index,
            "embedding": match base64 {
                true => Value::from(base64_text(&vector)),
                false => Value::from(vector),
            },
        }));
    }
    app.shared.metrics.answered.add(1);
    Ok(axum::Json(json!({
        "object": "list",
        "data": data,
        "model": served.model.name,
        "usage": { "prompt_tokens": n_tokens, "total_tokens": n_tokens },
    }))
    .into_response())
}

/// Returns true for vectors as base64 of little-endian f32.
fn encoding(fields: &Fields) -> Result<bool, ApiError> {
    let format: Option<String> = fields.get("encoding_format", "`float` or `base64`")?;
    match format.as_deref() {
        None | Some("float") => Ok(false),
        Some("base64") => Ok(true),
        Some(other) => Err(ApiError::field(
            "encoding_format",
            format!("`encoding_format` must be `float` or `base64`, not {other:?}"),
        )),
    }
}

async fn embed(app: &App, user: &str, tokens: Vec<u32>) -> Result<Vec<f32>, ApiError> {
    let tickets = app.shared.admission.admit(user, 1);
    let ticket = tickets.map_err(|refusal| app.refusal(refusal))?.pop();
    let (reply, vectors) = oneshot::channel();
    app.send(Command::Embed(EmbedJob {
        tokens,
        reply,
        _ticket: ticket.unwrap_or_default(),
    }))?;
    let Ok(vectors) = timeout(app.options.timeout, vectors).await else {
        return Err(ApiError::deadline(app.options.timeout.as_secs()));
    };
    let vectors = vectors.map_err(|_| ApiError::unavailable("the server is shutting down"))?;
    let vectors = vectors.map_err(|d| ApiError::of_model(&d))?;
    vectors
        .into_iter()
        .next()
        .ok_or_else(|| ApiError::internal("the model returned no vector"))
}

/// Returns base64 of little-endian f32 (RFC 4648).
fn base64_text(vector: &[f32]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) as usize & 63;
            let shown = if digit > group.len() {
                '='
            } else {
                char::from(DIGITS[index])
            };
            let _ = write!(out, "{shown}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64_text;

    #[test]
    fn vectors_are_little_endian_in_base64() {
        assert_eq!(base64_text(&[]), "");
        assert_eq!(base64_text(&[1.0]), "AACAPw==");
        assert_eq!(base64_text(&[1.0, -2.5]), "AACAPwAAIMA=");
        assert_eq!(base64_text(&[1.0, -2.5, 0.1]), "AACAPwAAIMDNzMw9");
    }
}
