use std::time::Instant;

use tpc_diag::Diagnostic;
use ureq::http::{HeaderMap, Response, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Error, Timeout};

use super::address::Address;
use super::limits::Limits;
use super::{codes, status};

/// An access token for one host.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    host: String,
    secret: String,
    /// True if TLS is not required, as for a test server.
    plain: bool,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token for {}", self.host)
    }
}

impl Token {
    /// Creates a token for Hugging Face. Returns `None` for an invalid text.
    pub fn hugging_face(secret: &str) -> Option<Token> {
        let secret = secret.trim();
        let sendable = !secret.is_empty() && secret.bytes().all(|b| b.is_ascii_graphic());
        sendable.then(|| Token {
            host: "huggingface.co".to_owned(),
            secret: secret.to_owned(),
            plain: false,
        })
    }

    /// Creates a token for the host of a hub's address. Returns `None` for an invalid text.
    pub fn of_hub(hub: &Address, secret: &str) -> Option<Token> {
        let token = Token::hugging_face(secret)?;
        Some(match hub.is_hugging_face() {
            true => token,
            false => Token {
                host: hub.host.clone(),
                ..token
            },
        })
    }

    #[cfg(test)]
    pub(super) fn of_test(host: &str, secret: &str) -> Token {
        Token {
            host: host.to_owned(),
            secret: secret.to_owned(),
            plain: true,
        }
    }

    fn is_for(&self, address: &Address) -> bool {
        address.host == self.host && (address.secure || self.plain)
    }
}

/// An HTTP client with limits and an optional token.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    limits: Limits,
    token: Option<Token>,
    begun: Instant,
}

/// A response and the address that it came from.
pub(super) struct Answer {
    pub(super) from: Address,
    pub(super) response: Response<Body>,
    /// The headers of the redirects before the response, in order.
    pub(super) redirects: Vec<HeaderMap>,
}

/// The requested bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    All,
    /// Everything after the first bytes.
    From(u64),
    /// The first byte, and the number of bytes.
    Range(u64, u64),
}

impl Client {
    /// Creates a client and starts its total time. `roots` is a PEM file that replaces Mozilla's certificates.
    ///
    /// # Errors
    /// Returns TPC0432 if `roots` contains no certificate.
    pub fn new(
        limits: Limits,
        token: Option<Token>,
        roots: Option<&[u8]>,
    ) -> Result<Client, Diagnostic> {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = roots {
            tls = tls.root_certs(certificates(pem)?);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // `get` follows redirects itself, so that the token is not sent to other hosts.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(limits.read))
            .timeout_per_read(Some(limits.read))
            .timeout_per_write(Some(limits.read))
            .user_agent(concat!("tpc/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .tls_config(tls.build())
            .build();
        Ok(Client {
            agent: config.new_agent(),
            limits,
            token,
            begun: Instant::now(),
        })
    }

    pub(super) fn get(&self, address: &Address, bytes: Bytes) -> Result<Answer, Diagnostic> {
        let mut at = address.clone();
        let mut redirects = Vec::new();
        for _ in 0..=self.limits.redirects {
            let mut answer = self.ask(&at, bytes)?;
            if !answer.response.status().is_redirection() {
                answer.redirects = redirects;
                return Ok(answer);
            }
            redirects.push(answer.response.headers().clone());
            let location = answer.response.headers().get(header::LOCATION);
            let Some(location) = location.and_then(|l| l.to_str().ok()) else {
                return Err(refused(
                    address,
                    "the server redirects without a target address".to_owned(),
                ));
            };
            at = at.redirect_target(location).ok_or_else(|| {
                let place: String = location
                    .split('?')
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(120)
                    .collect();
                refused(
                    address,
                    format!(
                        "the redirect to `{place}` is not allowed from {}",
                        at.display_name()
                    ),
                )
            })?;
        }
        let most = self.limits.redirects;
        Err(refused(
            address,
            format!("the server redirects more than {most} times"),
        ))
    }

    fn ask(&self, at: &Address, bytes: Bytes) -> Result<Answer, Diagnostic> {
        let left = self.limits.whole.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            return Err(self.connection_error(at, &Error::Timeout(Timeout::Global)));
        }
        let mut request = self.agent.get(at.request());
        let range = match bytes {
            Bytes::All => None,
            Bytes::From(first) => Some(format!("bytes={first}-")),
            Bytes::Range(first, len) => {
                let last = first.saturating_add(len).saturating_sub(1);
                Some(format!("bytes={first}-{last}"))
            }
        };
        if let Some(range) = range {
            request = request.header(header::RANGE, range);
        }
        if let Some(token) = self.token_for(at) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.secret));
        }
        let response = request.config().timeout_global(Some(left)).build().call();
        Ok(Answer {
            response: response.map_err(|e| self.connection_error(at, &e))?,
            from: at.clone(),
            redirects: Vec::new(),
        })
    }

    fn token_for(&self, at: &Address) -> Option<&Token> {
        self.token.as_ref().filter(|t| t.is_for(at))
    }

    pub(super) fn sends_token(&self, at: &Address) -> bool {
        self.token_for(at).is_some()
    }

    pub(super) fn connection_error(&self, at: &Address, e: &Error) -> Diagnostic {
        status::no_answer(at, e, &self.limits)
    }
}

fn refused(address: &Address, what: String) -> Diagnostic {
    let d = Diagnostic::new(&codes::REDIRECT, address.display_name(), what);
    d.help("give the file's final address, or download the file and plan the copy")
}

fn certificates(pem: &[u8]) -> Result<RootCerts, Diagnostic> {
    let items = parse_pem(pem).filter_map(Result::ok);
    let found: Vec<Certificate<'static>> = items
        .filter_map(|item| match item {
            PemItem::Certificate(c) => Some(c),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        let d = Diagnostic::new(
            &codes::NO_ANSWER,
            "SSL_CERT_FILE",
            "the file does not have a PEM certificate",
        );
        return Err(d.help(
            "name a file that begins with -----BEGIN CERTIFICATE-----, or unset the variable",
        ));
    }
    Ok(RootCerts::from(found))
}
