use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use tpc_gguf::GgufFile;

/// A SHA-256 hash (FIPS 180-4). The text form is `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";

impl Digest {
    /// Returns the hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Returns the bytes of the hash.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses the text of a hash.
    pub fn parse(text: &str) -> Option<Digest> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let (pairs, []) = digits.as_chunks::<2>() else {
            return None;
        };
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
            .collect();
        Some(Digest(bytes?.try_into().ok()?))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = String::json_schema(generator);
        schema.insert("pattern".to_owned(), "^sha256:[0-9a-f]{64}$".into());
        schema
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong =
            || serde::de::Error::custom("expected `sha256:` and 64 lower-case hexadecimal digits");
        Digest::parse(&text).ok_or_else(wrong)
    }
}

/// Returns the hash of a model, or `None` for a remote model. Each file contributes the data's offset and the
/// header's length (eight bytes each, little-endian), then the header without trailing zeros. A file with only the
/// header may lack this padding.
pub fn of_model(file: &GgufFile) -> Option<Digest> {
    let mut hash = Sha256::new();
    for shard in file.shards() {
        let bytes = shard.header_bytes()?;
        let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
        hash.update(shard.data_offset().to_le_bytes());
        hash.update((end as u64).to_le_bytes());
        hash.update(&bytes[..end]);
    }
    Some(Digest(hash.finalize().into()))
}
