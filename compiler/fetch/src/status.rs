//! Diagnostics for failed requests.

use tpc_diag::Diagnostic;
use ureq::Error;
use ureq::http::{HeaderMap, header};

use super::address::Address;
use super::codes;
use super::limits::Limits;

/// Returns the diagnostic of an error status.
pub(super) fn refusal(
    at: &Address,
    status: u16,
    headers: &HeaderMap,
    with_token: bool,
) -> Diagnostic {
    let said = |what: &str| format!("the server answers {status}: {what}");
    let listing = at.listing();
    let wait = headers
        .get(header::RETRY_AFTER)
        .and_then(|v| v.to_str().ok());
    let wait = wait.and_then(|v| v.parse::<u32>().ok());
    let (message, help) = match (status, with_token) {
        (401 | 403, true) => (
            said("the token does not give access"),
            "accept the terms on the repository's page, and check that HF_TOKEN is valid and may read gated repositories"
                .to_owned(),
        ),
        (401 | 403, false) if listing.is_some() => (
            said("access is on request, or there is no such repository"),
            "check the name; accept the terms on the repository's page and set HF_TOKEN to a token of \
             https://huggingface.co/settings/tokens"
                .to_owned(),
        ),
        (401 | 403, false) => (
            said("access is not for everyone"),
            "download the file with your credentials and plan it: no token is sent to this host".to_owned(),
        ),
        (404 | 410, _) => (
            said("there is no such file"),
            match listing {
                Some(page) => format!("check the spelling of repository, branch and file; {page} lists the files"),
                None => "check the spelling of the address".to_owned(),
            },
        ),
        (429, _) => (
            said("too many requests"),
            match (wait, listing.is_some() && !with_token) {
                (Some(s), false) => format!("wait {s} seconds and try again"),
                (Some(s), true) => format!("wait {s} seconds and try again; with HF_TOKEN more requests are allowed"),
                (None, false) => "wait some minutes and try again".to_owned(),
                (None, true) => "wait some minutes and try again; with HF_TOKEN more requests are allowed".to_owned(),
            },
        ),
        (407, _) => (said("the proxy wants credentials"), "put them into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT".to_owned()),
        (500.., _) => (
            said("it cannot answer now"),
            "try again later, or download the file from elsewhere and plan it".to_owned(),
        ),
        _ => (
            said("it does not give the file"),
            "check the address, or download the file and plan it".to_owned(),
        ),
    };
    Diagnostic::new(&codes::REFUSED, at.display_name(), message).help(help)
}

/// Returns the diagnostic of a failed connection.
pub(super) fn no_answer(at: &Address, e: &Error, limits: &Limits) -> Diagnostic {
    let host = &at.host;
    let by_hand = format!(
        "fetch the beginning of the file elsewhere and plan that: curl -L -r 0-33554431 -o head.gguf {}",
        at.display_name()
    );
    let (message, help) = match e {
        Error::HostNotFound => (
            format!("there is no host `{host}`, or no name server answers"),
            format!("check the spelling and the connection (HTTPS_PROXY is honoured), or {by_hand}"),
        ),
        Error::Timeout(_) => (
            format!(
                "`{host}` does not answer in time: {} s for a connection and each read, {} s in all",
                limits.connect.max(limits.read).as_secs_f32(),
                limits.whole.as_secs_f32()
            ),
            format!("try again, or {by_hand}"),
        ),
        Error::Protocol(_) => (
            format!("`{host}` does not answer as HTTP says: {e}"),
            format!("check the port, and http:// against https://, or {by_hand}"),
        ),
        Error::Rustls(_) | Error::Tls(_) | Error::Pem(_) => (
            format!("no trusted connection to `{host}`: {e}"),
            "check the clock and the host's name; where a proxy signs with certificates of its own, name them in \
             SSL_CERT_FILE"
                .to_owned(),
        ),
        _ => (
            format!("`{host}` cannot be reached: {e}"),
            format!("check the address and the connection (HTTPS_PROXY is honoured), or {by_hand}"),
        ),
    };
    Diagnostic::new(&codes::NO_ANSWER, at.display_name(), message).help(help)
}
