use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri, header};
use subtle::{Choice, ConstantTimeEq};

use crate::app::App;
use crate::error::ApiError;

/// Paths that need no key.
const PUBLIC: [&str; 6] = [
    "/",
    "/index.html",
    "/health",
    "/v1/health",
    "/models",
    "/v1/models",
];

/// Checks the key and the origin of a request. Returns the position of the key in the list of keys.
///
/// # Errors
/// Returns 401 for a missing or wrong key, and 403 for a page of another origin.
pub(super) fn check(
    app: &Arc<App>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<usize>, ApiError> {
    check_origin(&app.options.origins, headers)?;
    let keys = &app.options.api_keys;
    if keys.is_empty() {
        return Ok(None);
    }
    match (given(headers).and_then(|key| find(keys, key)), method) {
        (Some(key), _) => Ok(Some(key)),
        (None, &Method::OPTIONS) => Ok(None),
        (None, _) if PUBLIC.contains(&uri.path()) => Ok(None),
        (None, _) => Err(ApiError::unauthorised()),
    }
}

/// Returns the key of a request: OpenAI's or Anthropic's header.
fn given(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(key) = headers.get("x-api-key") {
        return Some(key.as_bytes());
    }
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| key.trim_ascii())
}

/// Returns the position of a key. The time does not depend on the keys' contents.
fn find(keys: &[String], given: &[u8]) -> Option<usize> {
    let mut found = None;
    for (at, key) in keys.iter().enumerate() {
        let equal: Choice = key.as_bytes().ct_eq(given);
        if bool::from(equal) {
            found = Some(at);
        }
    }
    found
}

/// Checks that a browser's request comes from the server's own page or an allowed origin. Other programs do not send an
/// origin.
///
/// The own page must be at an address or at `localhost`: a foreign name may resolve to this machine (DNS rebinding).
fn check_origin(allowed: &[String], headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok());
    let own = origin
        .split_once("://")
        .is_some_and(|(_, name)| host == Some(name) && is_address(name));
    match own || allowed.iter().any(|a| a == origin || a == "*") {
        true => Ok(()),
        false => Err(ApiError::forbidden(format!(
            "pages of {origin} may not call this server; start it with --cors-origin {origin} to allow them"
        ))),
    }
}

/// True if a host with an optional port is an IP address or `localhost`.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    name == "localhost" || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
}

/// Returns the headers that let a page of an allowed origin read an answer.
pub(super) fn cors(allowed: &[String], origin: Option<&str>) -> Option<String> {
    let origin = origin?;
    let allowed = allowed.iter().any(|a| a == origin || a == "*");
    allowed.then(|| origin.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| {
                let name = header::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn keys_are_found_in_both_headers() {
        let keys = ["one".to_owned(), "two".to_owned()];
        let found = |pairs: &[(&'static str, &'static str)]| {
            let headers = headers(pairs);
            given(&headers).and_then(|key| find(&keys, key))
        };
        assert_eq!(found(&[("authorization", "Bearer two")]), Some(1));
        assert_eq!(found(&[("authorization", "bearer  one")]), Some(0));
        assert_eq!(found(&[("x-api-key", "one")]), Some(0));
        for wrong in ["Bearer on", "Bearer onee", "Basic one", "Bearer", "", "one"] {
            let headers = HeaderMap::from_iter([(
                header::AUTHORIZATION,
                HeaderValue::from_str(wrong).expect("valid"),
            )]);
            assert_eq!(
                given(&headers).and_then(|key| find(&keys, key)),
                None,
                "{wrong}"
            );
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let own = [
            ("host", "127.0.0.1:8080"),
            ("origin", "http://127.0.0.1:8080"),
        ];
        assert!(check_origin(&[], &headers(&own)).is_ok());
        assert!(check_origin(&[], &headers(&[("host", "127.0.0.1:8080")])).is_ok());
        let other = [
            ("host", "127.0.0.1:8080"),
            ("origin", "http://evil.example"),
        ];
        assert!(check_origin(&[], &headers(&other)).is_err());
        let allowed = ["http://evil.example".to_owned()];
        assert!(check_origin(&allowed, &headers(&other)).is_ok());
        let rebound = [
            ("host", "evil.example:8080"),
            ("origin", "http://evil.example:8080"),
        ];
        assert!(check_origin(&[], &headers(&rebound)).is_err());
        for host in ["localhost:8080", "[::1]:8080", "192.168.0.7"] {
            assert!(is_address(host), "{host}");
        }
        let null = [("host", "127.0.0.1:8080"), ("origin", "null")];
        assert!(check_origin(&[], &headers(&null)).is_err());
    }
}
