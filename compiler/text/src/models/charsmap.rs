//! SentencePiece's precompiled character map, which replaces prefixes of a text.
//!
//! `tokenizer.ggml.precompiled_charsmap` is the blob of SentencePiece's `normalizer.cc`: a double array's length in
//! bytes (u32), the array of u32, then zero-terminated texts.
//!
//! The array is a darts-clone trie (Yata). In a unit `u`, the offset of the children is `(u >> 10) << ((u & 0x200) >>
//! 6)` and the label is `u & 0x800000ff`. Bit 8 is set if a value follows: `u & 0x7fffffff`. The child of node `i` for
//! byte `b` is at `i ^ offset ^ b`.

use tpc_diag::Diagnostic;
use tpc_gguf::{MetaArray, MetaValue, Metadata};

use crate::vocabulary::unusable;

const KEY: &str = "tokenizer.ggml.precompiled_charsmap";

/// The maximum replacement length, in bytes. Unicode's longest has 33; the limit bounds the expansion by a crafted
/// file.
const LONGEST: usize = 128;

/// A character map. An empty map does not change text.
#[derive(Clone, Debug, Default)]
pub(crate) struct CharsMap {
    units: Vec<u32>,
    texts: Vec<u8>,
}

impl CharsMap {
    pub(crate) fn read(metadata: &Metadata) -> Result<CharsMap, Diagnostic> {
        let blob: Vec<u8> = match metadata.value(KEY) {
            None => return Ok(CharsMap::default()),
            Some(MetaValue::Array(MetaArray::U8(bytes))) => bytes.clone(),
            Some(MetaValue::Array(MetaArray::I8(bytes))) => {
                bytes.iter().map(|&b| b.cast_unsigned()).collect()
            }
            Some(other) => {
                let message = format!(
                    "{KEY} is of type {}: expected an array of bytes",
                    other.describe()
                );
                return Err(unusable(metadata, message));
            }
        };
        if blob.is_empty() {
            return Ok(CharsMap::default());
        }
        let parts = blob.split_first_chunk::<4>().and_then(|(length, rest)| {
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            rest.split_at_checked(length)
        });
        let Some((units, texts)) = parts else {
            let message = format!(
                "{KEY} has {} bytes, fewer than its header states",
                blob.len()
            );
            return Err(unusable(metadata, message));
        };
        let (units, _) = units.as_chunks::<4>();
        Ok(CharsMap {
            units: units.iter().map(|&u| u32::from_le_bytes(u)).collect(),
            texts: texts.to_vec(),
        })
    }

    /// Returns the length of the longest replaceable prefix, in bytes, and its replacement.
    fn find(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let unit = |i: u32| self.units.get(i as usize).copied();
        let offset = |u: u32| (u >> 10) << ((u & 0x200) >> 6);
        let mut node = offset(unit(0)?);
        let mut found = None;
        for (i, &byte) in text.iter().enumerate() {
            node ^= u32::from(byte);
            let Some(u) = unit(node).filter(|u| byte != 0 && u & 0x8000_00ff == u32::from(byte))
            else {
                break;
            };
            node ^= offset(u);
            if u >> 8 & 1 == 1 {
                found = unit(node).map(|value| (i + 1, value & 0x7fff_ffff));
            }
        }
        let (length, at) = found?;
        let text = self.texts.get(at as usize..)?;
        let end = text.iter().take(LONGEST).position(|&b| b == 0)?;
        Some((length, &text[..end]))
    }

    /// Calls `emit` with each byte after replacement.
    pub(crate) fn each(&self, text: &str, mut emit: impl FnMut(u8)) {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let (length, bytes) = match self.find(&text.as_bytes()[at..]) {
                // A damaged map may match part of a character.
                Some((length, bytes)) if text.is_char_boundary(at + length) => (length, bytes),
                _ => (c.len_utf8(), &text.as_bytes()[at..at + c.len_utf8()]),
            };
            bytes.iter().copied().for_each(&mut emit);
            at += length;
        }
    }
}
