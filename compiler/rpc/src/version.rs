//! The versions of the protocol.
//!
//! The server states the version, and the client ends if it has another one. A client does not state its version.

use tpc_ggml::op::Numbering;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 7.0.0, of llama.cpp 0.5 and 0.6.
    V7,
    /// 8.0.1, of llama.cpp 0.8.
    V8,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Version; 2] = [Version::V7, Version::V8];

    /// Returns the version with this major number.
    pub fn from_major(major: u8) -> Option<Version> {
        let mut all = Version::ALL.into_iter();
        all.find(|version| version.numbers()[0] == major)
    }

    /// Returns major, minor and patch.
    pub const fn numbers(self) -> [u8; 3] {
        match self {
            Version::V7 => [7, 0, 0],
            Version::V8 => [8, 0, 1],
        }
    }

    /// Returns the releases of llama.cpp with this version.
    pub const fn releases(self) -> &'static str {
        match self {
            Version::V7 => "llama.cpp 0.5 and 0.6",
            Version::V8 => "llama.cpp 0.8",
        }
    }

    /// Returns the numbers of ops and element types.
    pub const fn numbering(self) -> &'static Numbering {
        match self {
            Version::V7 => &Numbering::GGML_0_25,
            Version::V8 => &Numbering::GGML_0_28,
        }
    }

    /// Returns the other version.
    pub const fn other(self) -> Version {
        match self {
            Version::V7 => Version::V8,
            Version::V8 => Version::V7,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.numbers();
        write!(f, "{major}.{minor}.{patch}")
    }
}
