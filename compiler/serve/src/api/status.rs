//! `GET /health`, `/metrics`, `/v1/models`, `/props` and `/slots`.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::app::{App, Health};
use crate::error::ApiError;
use crate::model::Function;

/// Returns 200 if the server answers requests, else 503 with the cause.
pub(crate) fn health(app: &App) -> Response {
    let cause = match app.health() {
        Health::Ok => return axum::Json(json!({ "status": "ok" })).into_response(),
        Health::Loading => "the model is being loaded".to_owned(),
        Health::Draining => "the server is shutting down".to_owned(),
        Health::Failing(why) => why,
    };
    ApiError::unavailable(cause).into_response()
}

/// Returns all metrics in Prometheus' format.
pub(crate) fn metrics(app: &App) -> Response {
    let snapshot = app.shared.snapshot();
    let busy = snapshot.slots.iter().filter(|s| s.is_processing).count();
    let held: usize = snapshot.slots.iter().map(|s| s.n_past).sum();
    let prefixes = snapshot.prefixes;
    let healthy = matches!(app.health(), Health::Ok);
    let gauges = [
        ("slots", "Slots.", snapshot.slots.len() as f64),
        ("slots_busy", "Slots that answer a request.", busy as f64),
        (
            "requests_waiting",
            "Requests that wait for a slot.",
            snapshot.waiting as f64,
        ),
        ("cache_tokens", "Tokens in the slots' caches.", held as f64),
        (
            "prefix_bytes",
            "Bytes of the prefix store.",
            prefixes.bytes as f64,
        ),
        (
            "prefix_blocks",
            "Blocks of the prefix store.",
            prefixes.blocks as f64,
        ),
        (
            "prefix_evictions",
            "Blocks that the prefix store removed.",
            prefixes.evictions as f64,
        ),
        (
            "healthy",
            "1 if the server answers requests.",
            f64::from(u8::from(healthy)),
        ),
    ];
    let text = app.shared.metrics.write(&gauges);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Returns the served model in OpenAI's list.
pub(crate) fn models(app: &App) -> Result<Response, ApiError> {
    let entry = entry(app)?;
    Ok(axum::Json(json!({ "object": "list", "data": [entry] })).into_response())
}

/// Returns the served model if it has this name.
///
/// # Errors
/// Returns 404 for another name.
pub(crate) fn model(app: &App, name: &str) -> Result<Response, ApiError> {
    let entry = entry(app)?;
    match entry["id"] == name {
        true => Ok(axum::Json(entry).into_response()),
        false => Err(ApiError::not_found(format!(
            "the server does not have the model {name:?}"
        ))),
    }
}

fn entry(app: &App) -> Result<Value, ApiError> {
    let Some(served) = app.loaded() else {
        return Err(ApiError::unavailable("the model is being loaded"));
    };
    let model = &served.model;
    Ok(json!({
        "id": model.name,
        "object": "model",
        "created": served.created,
        "owned_by": "tpc",
        "meta": {
            "n_ctx": model.n_ctx,
            "n_ctx_train": model.n_ctx_train,
            "n_vocab": model.n_vocab,
            "size": model.bytes,
        },
    }))
}

/// Returns the server's properties, with llama.cpp's names.
pub(crate) fn props(app: &App) -> Result<Response, ApiError> {
    let Some(served) = app.loaded() else {
        return Err(ApiError::unavailable("the model is being loaded"));
    };
    let model = &served.model;
    let sampling = &app.options.sampling;
    let special = |id: Option<u32>| {
        let text = id.and_then(|id| model.tokenizer.token_text(id));
        Value::from(text.unwrap_or_default())
    };
    let tokens = model.tokenizer.special();
    Ok(axum::Json(json!({
        "default_generation_settings": {
            "n_ctx": model.n_ctx,
            "params": {
                "temperature": sampling.temperature,
                "top_k": sampling.top_k,
                "top_p": sampling.top_p,
                "min_p": sampling.min_p,
                "repeat_penalty": sampling.repetition,
                "frequency_penalty": sampling.frequency,
                "presence_penalty": sampling.presence,
                "seed": app.options.seed,
            },
        },
        "total_slots": model.slots,
        "model_alias": model.name,
        "chat_template": model.template_source,
        "bos_token": special(tokens.bos),
        "eos_token": special(tokens.eos),
        "build_info": super::fingerprint(),
        "modalities": { "vision": false, "audio": false },
        "function": match model.function {
            Function::Text => "text",
            Function::Embeddings | Function::TokenEmbeddings => "embeddings",
        },
        "devices": model.devices,
        "bits": model.bits,
    }))
    .into_response())
}

/// Returns the state of all slots.
pub(crate) fn slots(app: &App) -> Response {
    axum::Json(app.shared.snapshot().slots).into_response()
}
