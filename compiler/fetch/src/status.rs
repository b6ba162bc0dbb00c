use tpc_diag::Diagnostic;
use ureq::Error;
use ureq::http::{HeaderMap, header};

use super::address::Address;
use super::codes;
use super::limits::Limits;

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
            "accept the terms on the repository's page, and check that HF_TOKEN may read gated repositories"
                .to_owned(),
        ),
        (401 | 403, false) if listing.is_some() => (
            said("the repository does not exist or restricts access"),
            "check the name; accept the terms on the repository's page and set HF_TOKEN to a token of \
             https://huggingface.co/settings/tokens"
                .to_owned(),
        ),
        (401 | 403, false) => (
            said("access is restricted"),
            "download the file with your credentials and plan the copy: tpc sends tokens to Hugging Face only"
                .to_owned(),
        ),
        (404 | 410, _) => (
            said("no such file"),
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
        (407, _) => (
            said("the proxy needs credentials"),
            "set HTTPS_PROXY to http://USER:PASSWORD@HOST:PORT".to_owned(),
        ),
        (500.., _) => (
            said("a temporary failure"),
            "try again later, or download the file elsewhere and plan the copy".to_owned(),
        ),
        _ => (
            said("the request is refused"),
            "check the address, or download the file and plan the copy".to_owned(),
        ),
    };
    Diagnostic::new(&codes::REFUSED, at.display_name(), message).help(help)
}

pub(super) fn no_answer(at: &Address, e: &Error, limits: &Limits) -> Diagnostic {
    let host = &at.host;
    let by_hand = format!(
        "fetch the start of the file elsewhere and plan head.gguf: curl -L -r 0-33554431 -o head.gguf {}",
        at.display_name()
    );
    let (message, help) = match e {
        Error::HostNotFound => (
            format!("unknown host `{host}`, or the name server does not answer"),
            format!("check the spelling and the connection (tpc uses HTTPS_PROXY), or {by_hand}"),
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
            format!("`{host}` does not answer in HTTP: {e}"),
            format!("check the port, and http:// against https://, or {by_hand}"),
        ),
        Error::Rustls(_) | Error::Tls(_) | Error::Pem(_) => (
            format!("no trusted connection to `{host}`: {e}"),
            "check the clock and the host's name; if a proxy has its own certificates, name them in SSL_CERT_FILE"
                .to_owned(),
        ),
        _ => (
            format!("`{host}` cannot be reached: {e}"),
            format!("check the address and the connection (tpc uses HTTPS_PROXY), or {by_hand}"),
        ),
    };
    Diagnostic::new(&codes::NO_ANSWER, at.display_name(), message).help(help)
}
