//! A client of the protocol: runs graphs on a server, such as llama.cpp's `ggml-rpc-server`.
//!
//! The server is not trusted: replies have a fixed length, and a stalled connection ends.

mod error;
mod run;
mod wire;

pub use error::RemoteError;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::protocol::{CAPABILITIES, Command, TENSOR_BYTES};
use crate::version::Version;
use wire::WireTensor;

/// The time to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The time to wait for a reply. The server replies only after it has computed the graph.
const REPLY: Duration = Duration::from_secs(300);
/// The largest alignment of tensors that the client accepts, in bytes.
const MOST_ALIGNMENT: u64 = 1 << 20;

/// A connection to a server.
#[derive(Debug)]
pub struct Remote {
    stream: TcpStream,
    address: SocketAddr,
    version: Version,
    /// The alignment of tensors in bytes.
    alignment: u64,
}

impl Remote {
    /// Connects to a server, and asks for its version.
    ///
    /// # Errors
    /// Returns an error if no server answers, or if its version is not one of [`Version::ALL`].
    pub fn connect(address: SocketAddr) -> Result<Remote, RemoteError> {
        let stream =
            TcpStream::connect_timeout(&address, CONNECT).map_err(RemoteError::Unreachable)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY))?;
        stream.set_write_timeout(Some(REPLY))?;
        let mut remote = Remote {
            stream,
            address,
            version: Version::V8,
            alignment: 1,
        };
        remote.send(Command::Hello, &[&[0; CAPABILITIES as usize]])?;
        let greeting = remote.greeting()?;
        let known = Version::from_major(greeting[0]).filter(|v| v.numbers()[1] == greeting[1]);
        remote.version = known.ok_or(RemoteError::Version(greeting))?;
        remote.send(Command::GetAlignment, &[&[0; 4]])?;
        let [alignment] = remote.numbers()?;
        if !alignment.is_power_of_two() || alignment > MOST_ALIGNMENT {
            let what = format!("an alignment of {alignment} bytes");
            return Err(RemoteError::Reply(what));
        }
        remote.alignment = alignment;
        Ok(remote)
    }

    /// Connects to the same server again.
    ///
    /// # Errors
    /// Returns the errors of [`Remote::connect`].
    pub fn reconnect(&mut self) -> Result<(), RemoteError> {
        *self = Remote::connect(self.address)?;
        Ok(())
    }

    /// Returns the server's version of the protocol.
    pub const fn version(&self) -> Version {
        self.version
    }

    fn send(&mut self, command: Command, parts: &[&[u8]]) -> Result<(), RemoteError> {
        let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut head = vec![command as u8];
        head.extend(length.to_le_bytes());
        self.stream.write_all(&head)?;
        for part in parts {
            self.stream.write_all(part)?;
        }
        Ok(())
    }

    /// Reads the length of a reply, which must be `length`.
    fn reply(&mut self, length: u64) -> Result<(), RemoteError> {
        let mut bytes = [0; 8];
        self.stream.read_exact(&mut bytes)?;
        match u64::from_le_bytes(bytes) {
            n if n == length => Ok(()),
            n => Err(RemoteError::Reply(format!("{n} bytes instead of {length}"))),
        }
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], RemoteError> {
        self.reply(8 * N as u64)?;
        let mut out = [0; N];
        for n in &mut out {
            let mut bytes = [0; 8];
            self.stream.read_exact(&mut bytes)?;
            *n = u64::from_le_bytes(bytes);
        }
        Ok(out)
    }

    /// Reads the version of a server. Another version of the protocol may have a longer greeting.
    fn greeting(&mut self) -> Result<[u8; 3], RemoteError> {
        let mut length = [0; 8];
        self.stream.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if !(3..=4 + CAPABILITIES).contains(&length) {
            return Err(RemoteError::Reply(format!(
                "a greeting of {length} bytes, which is not ggml's RPC protocol"
            )));
        }
        let mut greeting = Vec::new();
        let read = (&mut self.stream).take(length).read_to_end(&mut greeting)?;
        match greeting.first_chunk::<3>() {
            Some(version) if read as u64 == length => Ok(*version),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    fn allocation_of(&mut self, tensor: &WireTensor) -> Result<u64, RemoteError> {
        let none = vec![0; 10 * TENSOR_BYTES as usize];
        let bytes = tensor.bytes(self.version)?;
        self.send(Command::GetAllocSize, &[&[0; 4], &bytes, &none])?;
        let [size] = self.numbers()?;
        Ok(size)
    }

    /// Allocates a buffer. Returns its id and address.
    fn allocate(&mut self, bytes: u64) -> Result<(u64, u64), RemoteError> {
        self.send(Command::AllocBuffer, &[&[0; 4], &bytes.to_le_bytes()])?;
        let [buffer, size] = self.numbers()?;
        if buffer == 0 || size < bytes {
            return Err(RemoteError::Memory { bytes });
        }
        self.send(Command::BufferGetBase, &[&buffer.to_le_bytes()])?;
        let [base] = self.numbers()?;
        Ok((buffer, base))
    }
}
