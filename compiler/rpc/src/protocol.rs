//! The commands of the protocol.
//!
//! A request is one byte of command, eight bytes of payload length, and the payload. A reply does not have the
//! command. Numbers are little-endian, and structures are packed.

use crate::refusal::Refusal;

/// The version of the protocol: major, minor, patch.
pub const VERSION: [u8; 3] = [7, 0, 0];

/// The size of a tensor in a message, in bytes.
pub const TENSOR_BYTES: u64 = 296;

/// The size of the capabilities, in bytes.
pub const CAPABILITIES: u64 = 24;

/// The maximum number of sources of a tensor.
pub const SOURCES: usize = 10;

/// The allowed length of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Exactly this number of bytes.
    Exactly(u64),
    /// At least this number of bytes.
    AtLeast(u64),
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

            /// Returns the allowed payload length.
            pub const fn length(self) -> Length {
                match self {
                    $(Command::$variant => $length,)*
                }
            }
        }
    };
}

use Length::{AtLeast, Exactly};

commands! {
    AllocBuffer = 0, "ALLOC_BUFFER", Exactly(12);
    GetAlignment = 1, "GET_ALIGNMENT", Exactly(4);
    GetMaxSize = 2, "GET_MAX_SIZE", Exactly(4);
    BufferGetBase = 3, "BUFFER_GET_BASE", Exactly(8);
    FreeBuffer = 4, "FREE_BUFFER", Exactly(8);
    BufferClear = 5, "BUFFER_CLEAR", Exactly(9);
    SetTensor = 6, "SET_TENSOR", AtLeast(TENSOR_BYTES + 9);
    SetTensorHash = 7, "SET_TENSOR_HASH", Exactly(TENSOR_BYTES + 16);
    GetTensor = 8, "GET_TENSOR", Exactly(TENSOR_BYTES + 16);
    CopyTensor = 9, "COPY_TENSOR", Exactly(2 * TENSOR_BYTES);
    GraphCompute = 10, "GRAPH_COMPUTE", AtLeast(12);
    GetDeviceMemory = 11, "GET_DEVICE_MEMORY", Exactly(4);
    InitTensor = 12, "INIT_TENSOR", Exactly(TENSOR_BYTES);
    GetAllocSize = 13, "GET_ALLOC_SIZE", Exactly(4 + 11 * TENSOR_BYTES);
    Hello = 14, "HELLO", Exactly(CAPABILITIES);
    DeviceCount = 15, "DEVICE_COUNT", Exactly(0);
    GraphRecompute = 16, "GRAPH_RECOMPUTE", Exactly(4);
    MemsetTensor = 17, "MEMSET_TENSOR", Exactly(TENSOR_BYTES + 17);
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
    pub fn parse(bytes: [u8; HEAD]) -> Result<Head, Refusal> {
        let [number, length @ ..] = bytes;
        let length = u64::from_le_bytes(length);
        let command = Command::from_number(number)
            .ok_or_else(|| Refusal::message(format!("unknown command {number}")))?;
        let fits = match command.length() {
            Exactly(n) => length == n,
            AtLeast(n) => length >= n,
        };
        if fits {
            return Ok(Head { command, length });
        }
        let name = command.name();
        Err(Refusal::message(match command.length() {
            Exactly(n) => format!("{name} has {n} bytes, not {length}"),
            AtLeast(n) => format!("{name} has {n} bytes or more, not {length}"),
        }))
    }
}
