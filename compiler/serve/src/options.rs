use std::net::SocketAddr;
use std::time::Duration;

use tpc_diag::Diagnostic;
use tpc_text::Settings;

use crate::codes;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The listen address.
    pub address: SocketAddr,
    /// API keys; without a key, the server does not ask for one.
    pub api_keys: Vec<String>,
    /// Name of the model in answers.
    pub alias: Option<String>,
    /// Maximum bytes of a request's body.
    pub max_body: usize,
    /// Maximum connections.
    pub max_connections: usize,
    /// Maximum waiting requests of all users.
    pub max_queue: usize,
    /// Maximum requests of one user, running and waiting.
    pub max_user: usize,
    /// Maximum time of a request.
    pub timeout: Duration,
    /// Time that a shutdown leaves for requests in progress.
    pub drain: Duration,
    /// Memory of the prefix store, in bytes.
    pub prefix_bytes: usize,
    /// Maximum prompt tokens per batch while answers are in progress.
    pub chunk: usize,
    /// Default sampling settings. The seed is the default seed; `None` draws a new seed per request.
    pub sampling: Settings,
    /// The default seed; `None` for a new seed per request.
    pub seed: Option<u64>,
    /// Web origins whose pages may call the server, besides the server's own.
    pub origins: Vec<String>,
    /// True if the server has a web page.
    pub ui: bool,
    /// Ends the process if a device hangs during a shutdown. The thread that runs the model cannot end then.
    pub abandon: fn(),
}

impl ServerOptions {
    /// Returns the default options for an address.
    pub fn new(address: SocketAddr) -> ServerOptions {
        ServerOptions {
            address,
            api_keys: Vec::new(),
            alias: None,
            max_body: 16 << 20,
            max_connections: 1024,
            max_queue: 256,
            max_user: 128,
            timeout: Duration::from_secs(3600),
            drain: Duration::from_secs(30),
            prefix_bytes: 1 << 30,
            chunk: 128,
            sampling: Settings::default(),
            seed: None,
            origins: Vec::new(),
            ui: true,
            abandon: || {},
        }
    }

    /// Returns a warning if other machines reach the server and it has no key.
    pub fn open_to_all(&self) -> Option<Diagnostic> {
        if self.address.ip().is_loopback() || !self.api_keys.is_empty() {
            return None;
        }
        let message = format!(
            "other machines can reach {}, and the server does not ask for a key",
            self.address
        );
        let d = Diagnostic::new(&codes::NO_KEY, "--host", message);
        Some(d.help("add --api-key KEY, or listen at 127.0.0.1"))
    }
}
