//! Reads from the web. [`hub_token`] finds the token; `SSL_CERT_FILE` names the certificates; `MODEL_ENDPOINT` or
//! `HF_ENDPOINT` names the hub.

use std::path::Path;

use tpc_fetch::{Address, Client, Limits, Token};
use tpc_gguf::GgufFile;
use tpc_store::{Endpoint, hub_token};

use super::regular;
use crate::output::Failure;

/// The maximum size of a certificate file, in bytes.
const MAX_CERTIFICATES: u64 = 16 << 20;

/// Returns the hub of the environment variables.
pub(super) fn endpoint() -> Endpoint {
    Endpoint::from_variables(|name| std::env::var(name).ok())
}

/// Returns a client with the hub's token.
pub(super) fn client(limits: Limits) -> Result<Client, Failure> {
    let token = hub_token(|name| std::env::var_os(name));
    let hub = endpoint().api().map_err(Failure::usage)?;
    let token = token.as_deref().and_then(|t| Token::of_hub(&hub, t));
    let roots = match std::env::var_os("SSL_CERT_FILE").filter(|f| !f.is_empty()) {
        Some(file) => Some(regular::read(Path::new(&file), MAX_CERTIFICATES)?),
        None => None,
    };
    Client::new(limits, token, roots.as_deref()).map_err(Failure::usage)
}

/// Reads the headers of the model at an address.
pub(super) fn open(address: Address) -> Result<GgufFile, Failure> {
    let client = client(Limits::default())?;
    tpc_fetch::open(client, address).map_err(|d| Failure::from_diagnostics(vec![d]))
}
