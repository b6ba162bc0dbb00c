//! The commands of the protocol.
//!
//! A request is one byte of command, eight bytes of payload length, and the payload. A reply does not have the
//! command. Numbers are little-endian, and structures are packed.

use crate::refusal::Refusal;
use crate::version::Version;

/// The size of a tensor in a message, in bytes.
pub const TENSOR_BYTES: u64 = 296;

/// The size of the capabilities, in bytes.
pub const CAPABILITIES: u64 = 24;

/// The maximum number of sources of a tensor.
pub const SOURCES: usize = 10;

/// The number of graphs that client and server store per device. Both forget all before they store another one.
pub const STORED_GRAPHS: usize = 1024;

/// The allowed length of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Exactly this number of bytes.
    Exactly(u64),
    /// At least this number of bytes.
    AtLeast(u64),
}

/// The allowed length of a payload in each version.
#[derive(Clone, Copy)]
enum Lengths {
    Same(Length),
    Since8(Length),
    Changed { v7: Length, v8: Length },
}

/// Declares [`Command`] from lines `Variant = number, "NAME", length;`.
macro_rules! commands {
    ($($variant:ident = $number:literal, $name:literal, $length:expr;)*) => {
        /// A command of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Command {
            $(#[doc = concat!("`", $name, "`.")] $variant = $number,)*
        }

        impl Command {
            /// All commands, by number.
            pub const ALL: &'static [Command] = &[$(Command::$variant),*];

            /// Returns the command with this number.
            pub const fn from_number(number: u8) -> Option<Command> {
                match number {
                    $($number => Some(Command::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Command::$variant => $name,)*
                }
            }

            const fn lengths(self) -> Lengths {
                match self {
                    $(Command::$variant => $length,)*
                }
            }
        }
    };
}

use Length::{AtLeast, Exactly};
use Lengths::{Changed, Same, Since8};

impl Command {
    /// Returns the allowed payload length; `None` if the version lacks the command.
    pub const fn length(self, version: Version) -> Option<Length> {
        match (self.lengths(), version) {
            (Same(n), _)
            | (Since8(n) | Changed { v8: n, .. }, Version::V8)
            | (Changed { v7: n, .. }, Version::V7) => Some(n),
            (Since8(_), Version::V7) => None,
        }
    }
}

commands! {
    AllocBuffer = 0, "ALLOC_BUFFER", Same(Exactly(12));
    GetAlignment = 1, "GET_ALIGNMENT", Same(Exactly(4));
    GetMaxSize = 2, "GET_MAX_SIZE", Same(Exactly(4));
    BufferGetBase = 3, "BUFFER_GET_BASE", Same(Exactly(8));
    FreeBuffer = 4, "FREE_BUFFER", Same(Exactly(8));
    BufferClear = 5, "BUFFER_CLEAR", Same(Exactly(9));
    SetTensor = 6, "SET_TENSOR", Same(AtLeast(TENSOR_BYTES + 9));
    SetTensorHash = 7, "SET_TENSOR_HASH", Same(Exactly(TENSOR_BYTES + 16));
    GetTensor = 8, "GET_TENSOR", Same(Exactly(TENSOR_BYTES + 16));
    CopyTensor = 9, "COPY_TENSOR", Same(Exactly(2 * TENSOR_BYTES));
    GraphCompute = 10, "GRAPH_COMPUTE", Changed { v7: AtLeast(12), v8: AtLeast(20) };
    GetDeviceMemory = 11, "GET_DEVICE_MEMORY", Same(Exactly(4));
    InitTensor = 12, "INIT_TENSOR", Same(Exactly(TENSOR_BYTES));
    GetAllocSize = 13, "GET_ALLOC_SIZE", Same(Exactly(4 + 11 * TENSOR_BYTES));
    Hello = 14, "HELLO", Same(Exactly(CAPABILITIES));
    DeviceCount = 15, "DEVICE_COUNT", Same(Exactly(0));
    GraphRecompute = 16, "GRAPH_RECOMPUTE", Changed { v7: Exactly(4), v8: Exactly(12) };
    MemsetTensor = 17, "MEMSET_TENSOR", Same(Exactly(TENSOR_BYTES + 17));
    SetTensor2d = 18, "SET_TENSOR_2D", Since8(AtLeast(TENSOR_BYTES + 32));
    GetTensor2d = 19, "GET_TENSOR_2D", Since8(Exactly(TENSOR_BYTES + 32));
    CommInit = 20, "COMM_INIT", Since8(Exactly(80));
    CommAllreduce = 21, "COMM_ALLREDUCE", Since8(Exactly(4 + TENSOR_BYTES));
    CommFree = 22, "COMM_FREE", Since8(Exactly(4));
}

/// The size of a request's head, in bytes.
pub const HEAD: usize = 9;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The command.
    pub command: Command,
    /// The payload length in bytes.
    pub length: u64,
}

impl Head {
    /// Parses a head.
    ///
    /// # Errors
    /// Returns [`Refusal::Message`] for an unknown command, or for a length that the command does not allow.
    pub fn parse(bytes: [u8; HEAD], version: Version) -> Result<Head, Refusal> {
        let [number, length @ ..] = bytes;
        let length = u64::from_le_bytes(length);
        let command = Command::from_number(number)
            .ok_or_else(|| Refusal::message(format!("unknown command {number}")))?;
        let name = command.name();
        let Some(allowed) = command.length(version) else {
            return Err(Refusal::Message(format!(
                "version {version} of the protocol lacks {name}"
            )));
        };
        let fits = match allowed {
            Exactly(n) => length == n,
            AtLeast(n) => length >= n,
        };
        if fits {
            return Ok(Head { command, length });
        }
        Err(Refusal::message(match allowed {
            Exactly(n) => format!("{name} has {n} bytes, not {length}"),
            AtLeast(n) => format!("{name} has {n} bytes or more, not {length}"),
        }))
    }
}
