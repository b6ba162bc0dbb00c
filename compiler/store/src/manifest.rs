//! Manifests of Ollama and of older versions of llama.cpp.

use std::path::Path;

use serde_json::Value as Json;

use super::repository::is_safe_file;
use super::walk;

/// The maximum size of a manifest, in bytes.
const MAX_MANIFEST: u64 = 4 << 20;
/// The media type of a model's layer.
const MODEL_LAYER: &str = "application/vnd.ollama.image.model";

/// The model's layer of an Ollama manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// The SHA-256 in hexadecimal digits.
    pub(super) digest: String,
    pub(super) bytes: Option<u64>,
}

fn read(path: &Path) -> Result<Json, String> {
    let text = walk::text(path, MAX_MANIFEST).ok_or_else(|| {
        format!(
            "the manifest cannot be read, or has more than {} MiB",
            MAX_MANIFEST >> 20
        )
    })?;
    serde_json::from_str(&text).map_err(|e| format!("the manifest is not JSON: {e}"))
}

/// True for a SHA-256 in hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Reads an Ollama manifest's first layer with a model.
pub(super) fn model_layer(path: &Path) -> Result<Layer, String> {
    let manifest = read(path)?;
    let layers = manifest["layers"].as_array();
    let of_model = |l: &&Json| l["mediaType"].as_str() == Some(MODEL_LAYER);
    let layer = layers.and_then(|l| l.iter().find(of_model));
    let layer =
        layer.ok_or_else(|| "the manifest does not have a layer with a model".to_owned())?;
    let digest = layer["digest"]
        .as_str()
        .and_then(|d| d.strip_prefix("sha256:"));
    match digest.filter(|d| is_sha256(d)) {
        Some(digest) => Ok(Layer {
            digest: digest.to_owned(),
            bytes: layer["size"].as_u64(),
        }),
        None => Err("the model's layer does not have a SHA-256 digest".to_owned()),
    }
}

/// Reads the model's file name in a manifest of llama.cpp.
pub(super) fn gguf_file(path: &Path) -> Option<String> {
    let manifest = read(path).ok()?;
    let file = manifest["ggufFile"]["rfilename"].as_str()?;
    is_safe_file(file).then(|| file.to_owned())
}
