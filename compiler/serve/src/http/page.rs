use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The web page: one file without references to other hosts.
const PAGE: &str = include_str!("page.html");

/// Returns the web page. Its policy forbids all connections except to this server.
pub(super) fn page() -> Response {
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                  img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE).into_response()
}
