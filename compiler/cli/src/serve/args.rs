//! The arguments of `tpc serve`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpc_core::units::{Unit, quantity};
use tpc_diag::{Diagnostic, codes};
use tpc_serve::ServerOptions;

use crate::args::PlacementArgs;
use crate::execution::{ExecutionArgs, FaultArgs, RankOptions, SubjectArgs};
use crate::generation::{DraftArgs, DraftOptions, PoolingArgs, SamplingArgs};
use crate::input;
use crate::output::{self, Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) subject: SubjectArgs,
    #[command(flatten)]
    server: NetworkArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Serve embeddings instead of answers.
    #[arg(long, visible_alias = "embedding")]
    pub(super) embeddings: bool,
    #[command(flatten)]
    pub(super) vectors: PoolingArgs,
    #[command(flatten)]
    pub(super) drafts: DraftArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    pub(super) engine: ExecutionArgs,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
struct NetworkArgs {
    /// Listen address. Other machines reach the server only at another address than 127.0.0.1.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    host: String,
    /// Listen port; 0: any free port.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// API key that requests must send; repeatable.
    #[arg(long, value_name = "KEY")]
    api_key: Vec<String>,
    /// File with an API key per line.
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Name of the model in answers [default: the model's own].
    #[arg(long, short, value_name = "NAME")]
    alias: Option<String>,
    /// Web origin whose pages may call the server, such as `http://localhost:3000`; repeatable.
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<String>,
    /// Leave out the web page for a chat.
    #[arg(long, visible_alias = "no-webui")]
    no_ui: bool,
    /// Write the log as JSON, one object per line.
    #[arg(long)]
    pub(super) log_json: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Maximum number of waiting requests; more get status 503.
    #[arg(long, value_name = "N", default_value_t = 256)]
    queue: usize,
    /// Maximum requests in progress of one user; more get status 429. A user is an API key, a name in the request, or
    /// an address.
    #[arg(long, value_name = "N", default_value_t = 128)]
    user_requests: usize,
    /// Maximum number of connections.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    connections: usize,
    /// Maximum size of a request's body.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = |t: &str| bytes("--max-body", t))]
    max_body: usize,
    /// Maximum time of a request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Time that a shutdown leaves for requests in progress, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    drain_seconds: u64,
    /// Maximum prompt tokens per batch while other requests get answers.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    chunk: u64,
    /// Host memory for the caches of earlier prompts; 0: none.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = |t: &str| bytes("--prefix-cache", t))]
    prefix_cache: usize,
}

fn bytes(option: &str, text: &str) -> Result<usize, Diagnostic> {
    let wrong = |message: String| {
        Diagnostic::new(&codes::COMMAND_LINE, option, message)
            .help(format!("write bytes with a unit, such as `{option} 64MiB`"))
    };
    match quantity(text, Unit::Bytes) {
        Ok(n) if (0.0..=1e15).contains(&n) => Ok(n as usize),
        Ok(_) => Err(wrong(format!("invalid size `{text}`"))),
        Err(e) => Err(wrong(e.message)),
    }
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(crate) fn resolve(&mut self) -> Result<(), Failure> {
        self.subject.resolve()?;
        match &mut self.drafts.model_draft {
            Some(draft) => self.subject.resolve_other(draft),
            None => Ok(()),
        }
    }

    pub(super) fn draft_options(&self) -> DraftOptions<'_> {
        DraftOptions {
            drafts: &self.drafts,
            placement: &self.placement,
            engine: &self.engine,
        }
    }

    pub(super) const fn log_json(&self) -> bool {
        self.server.log_json
    }

    pub(super) const fn alias(&self) -> Option<&String> {
        self.server.alias.as_ref()
    }

    /// Returns the server's options.
    ///
    /// # Errors
    /// Returns an error for an unusable address or file of keys.
    pub(super) fn options(&self) -> Result<ServerOptions, Failure> {
        let NetworkArgs { host, port, .. } = &self.server;
        let address = address(host, *port)?;
        let api_keys = self.keys()?;
        let limits = &self.limits;
        let options = ServerOptions {
            api_keys,
            alias: self.server.alias.clone(),
            max_body: limits.max_body,
            max_connections: limits.connections.max(1),
            max_queue: limits.queue,
            max_user: limits.user_requests,
            timeout: Duration::from_secs(limits.timeout),
            drain: Duration::from_secs(limits.drain_seconds),
            prefix_bytes: limits.prefix_cache,
            chunk: usize::try_from(limits.chunk).unwrap_or(usize::MAX),
            sampling: self.sampling.settings(),
            seed: self.sampling.given_seed(),
            origins: self.server.cors_origin.clone(),
            ui: !self.server.no_ui,
            abandon: || output::leave(1),
            ..ServerOptions::new(address)
        };
        options.open_to_all().iter().for_each(output::diagnostic);
        Ok(options)
    }

    fn keys(&self) -> Result<Vec<String>, Failure> {
        let mut keys = self.server.api_key.clone();
        if let Some(path) = &self.server.api_key_file {
            keys.extend(keys_of(path)?);
        }
        match keys.iter().any(|k| k.trim().is_empty()) {
            false => Ok(keys),
            true => {
                let d = Diagnostic::new(&codes::COMMAND_LINE, "--api-key", "an API key is empty");
                Err(Failure::usage(d.help(
                    "give a key such as the output of `openssl rand -hex 24`",
                )))
            }
        }
    }
}

fn keys_of(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::text_of_file(path)?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let keys: Vec<String> = lines.map(str::to_owned).collect();
    if keys.is_empty() {
        let d = Diagnostic::new(
            &codes::FILE_ACCESS,
            path.display().to_string(),
            "the file does not hold a key",
        );
        return Err(Failure::usage(d.help("write an API key per line")));
    }
    Ok(keys)
}

fn address(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let found = match host.parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, port)),
        Err(_) => (host, port)
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.next()),
    };
    found.ok_or_else(|| {
        let message = format!("invalid listen address `{host}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--host", message);
        Failure::usage(d.help("give an address such as 127.0.0.1, or 0.0.0.0 for all networks"))
    })
}

impl Args {
    /// Returns the options that several processes need to run the model together.
    pub(crate) const fn of_ranks(&self) -> RankOptions<'_> {
        (&self.subject, &self.placement, &self.engine)
    }
}
