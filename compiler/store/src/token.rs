//! The hub's token, where huggingface_hub finds it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The maximum length of a token file, in bytes.
const MAX_TOKEN: u64 = 4096;

/// Returns the hub's token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that `hf auth login` writes: HF_TOKEN_PATH, or
/// `token` in HF_HOME. With HF_HUB_DISABLE_IMPLICIT_TOKEN, only variables count.
pub fn hub_token(variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let given = |name: &str| variable(name).filter(|v| !v.is_empty());
    let named = given("HF_TOKEN").or_else(|| given("HUGGING_FACE_HUB_TOKEN"));
    if let Some(token) = named {
        return token.into_string().ok();
    }
    let disabled = given("HF_HUB_DISABLE_IMPLICIT_TOKEN").and_then(|v| v.into_string().ok());
    let disabled = disabled.map(|v| v.to_ascii_uppercase());
    if disabled.is_some_and(|v| ["1", "ON", "YES", "TRUE"].contains(&v.as_str())) {
        return None;
    }
    let home = || {
        let cache = given("HF_HOME").map(PathBuf::from).or_else(|| {
            let cache = given("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.or_else(|| Some(PathBuf::from(given("HOME")?).join(".cache")))?;
            Some(cache.join("huggingface"))
        })?;
        Some(cache.join("token"))
    };
    let path = given("HF_TOKEN_PATH").map(PathBuf::from).or_else(home)?;
    let mut text = String::new();
    let file = File::open(path)
        .ok()
        .filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    file.take(MAX_TOKEN).read_to_string(&mut text).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}
