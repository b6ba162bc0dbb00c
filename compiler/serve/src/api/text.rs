//! `POST /tokenize`, `/detokenize` and `/apply-template`, with llama.cpp's fields.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tpc_text::{Markers, Show, SpecialText, Start};

use super::completions::token;
use super::fields::Fields;
use super::prompt::chat_text;
use super::tools::Tools;
use crate::app::App;
use crate::error::ApiError;

/// Converts a text to tokens.
pub(crate) async fn tokenize(app: Arc<App>, fields: Fields) -> Result<Response, ApiError> {
    super::blocking(move || {
        let served = app.ready()?;
        let tokenizer = &served.model.tokenizer;
        let content: Option<String> = fields.get("content", "a text")?;
        let content = content.ok_or_else(|| ApiError::field("content", "`content` is missing"))?;
        let special = match fields.flag("parse_special", true)? {
            true => SpecialText::Read,
            false => SpecialText::Plain,
        };
        let markers = match fields.flag("add_special", false)? {
            true => Markers::Add,
            false => Markers::Omit,
        };
        let ids = tokenizer.encode(&content, special, markers);
        let tokens: Vec<Value> = match fields.flag("with_pieces", false)? {
            false => ids.into_iter().map(Value::from).collect(),
            true => {
                let piece = |id: u32| {
                    let mut bytes = Vec::new();
                    let _ = tokenizer.piece(id, &mut bytes);
                    let piece = match String::from_utf8(bytes) {
                        Ok(text) => Value::from(text),
                        Err(e) => Value::from(e.into_bytes()),
                    };
                    json!({ "id": id, "piece": piece })
                };
                ids.into_iter().map(piece).collect()
            }
        };
        Ok(axum::Json(json!({ "tokens": tokens })).into_response())
    })
    .await
}

/// Converts tokens to text.
pub(crate) async fn detokenize(app: Arc<App>, fields: Fields) -> Result<Response, ApiError> {
    super::blocking(move || {
        let served = app.ready()?;
        let tokens: Option<Vec<Value>> = fields.get("tokens", "a list of tokens")?;
        let tokens = tokens.ok_or_else(|| ApiError::field("tokens", "`tokens` is missing"))?;
        let ids: Result<Vec<u32>, ApiError> =
            tokens.iter().map(|t| token(served, t, "tokens")).collect();
        let text = served
            .model
            .tokenizer
            .decode(&ids?, Start::Text, Show::Special);
        let text = text.map_err(|d| ApiError::of_request("tokens", &d))?;
        Ok(axum::Json(json!({ "content": text })).into_response())
    })
    .await
}

/// Renders a chat with the model's template.
pub(crate) async fn apply_template(app: Arc<App>, fields: Fields) -> Result<Response, ApiError> {
    super::blocking(move || {
        let tools = Tools::read(&fields)?;
        let text = chat_text(app.ready()?, &fields, &tools)?;
        Ok(axum::Json(json!({ "prompt": text })).into_response())
    })
    .await
}
