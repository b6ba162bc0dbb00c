//! Reads model headers over HTTPS. `HF_TOKEN` has the token; `SSL_CERT_FILE` names the certificates.

use std::path::Path;

use tpc_fetch::{Address, Client, Limits, Token};
use tpc_gguf::GgufFile;

use super::regular;
use crate::output::Failure;

/// The maximum size of a certificate file, in bytes.
const MAX_CERTIFICATES: u64 = 16 << 20;

pub(super) fn open(address: Address) -> Result<GgufFile, Failure> {
    let token = std::env::var("HF_TOKEN").ok();
    let token = token.as_deref().and_then(Token::hugging_face);
    let roots = match std::env::var_os("SSL_CERT_FILE").filter(|f| !f.is_empty()) {
        Some(file) => Some(regular::read(Path::new(&file), MAX_CERTIFICATES)?),
        None => None,
    };
    let client = Client::new(Limits::default(), token, roots.as_deref()).map_err(Failure::usage)?;
    tpc_fetch::open(client, address).map_err(|d| Failure::from_diagnostics(vec![d]))
}
