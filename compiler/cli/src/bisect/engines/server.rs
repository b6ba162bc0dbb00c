//! A server of ggml's RPC protocol as an engine.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;

use crate::codes;
use crate::output::Failure;
use tpc_diag::{Diagnostic, codes as common};
use tpc_ggml::capture::Record;
use tpc_numeric::bisect::{Engine, EngineError, Memory};
use tpc_rpc::{Remote, RemoteError};

/// A server and its address.
#[derive(Debug)]
pub(super) struct RpcServer {
    remote: Remote,
    name: String,
}

impl RpcServer {
    pub(super) fn connect(text: &str) -> Result<RpcServer, Failure> {
        let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
        let Some(address) = found else {
            let message = format!("invalid address `{text}`");
            let d = Diagnostic::new(&common::COMMAND_LINE, "--rpc", message);
            return Err(Failure::usage(d.help(
                "give the address and port of an RPC server, such as 127.0.0.1:50052",
            )));
        };
        let remote = Remote::connect(address).map_err(|e| {
            let d = Diagnostic::new(&codes::NO_SERVER, "--rpc", format!("{text}: {e}"));
            Failure::usage(d.help(codes::NO_SERVER.cure))
        })?;
        Ok(RpcServer {
            remote,
            name: text.to_owned(),
        })
    }

    /// Returns the address as the user wrote it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Engine for RpcServer {
    fn run(
        &mut self,
        graph: &[Record],
        leaves: &BTreeMap<usize, Vec<u8>>,
        wanted: usize,
    ) -> Result<Memory, EngineError> {
        let failed = match self.remote.run(graph, leaves, wanted) {
            Ok(bytes) => return Ok(Memory::Bytes(bytes)),
            Err(e @ (RemoteError::Graph(_) | RemoteError::Memory { .. })) => {
                return Err(EngineError::Unsupported(e.to_string()));
            }
            Err(e) => e.to_string(),
        };
        // A server that closed only this connection runs other ops.
        match self.remote.reconnect() {
            Ok(()) => Err(EngineError::Failed(failed)),
            Err(_) => Err(EngineError::Stopped(failed)),
        }
    }
}
