//! The tokens of an answer that the caches do not hold yet: ids (u32 each), a part after the turns.
//!
//! If a maximum length ends an answer, the model has not read the last token. To continue the text, a later run reads
//! it first.

use super::trailer;

const NAME: &[u8; 8] = b"tpcnext\0";

/// Returns the part, or nothing if the model has read all tokens.
pub(super) fn encode(ids: &[u32]) -> Vec<u8> {
    match ids {
        [] => Vec::new(),
        ids => trailer::encode(NAME, ids.iter().flat_map(|id| id.to_le_bytes()).collect()),
    }
}

/// Splits a file into the bytes before the part, and the tokens. If the part is missing or damaged, all bytes come
/// before it; the checksum of the session then detects the damage.
pub(super) fn split(bytes: &[u8]) -> (&[u8], Vec<u32>) {
    match trailer::split(NAME, bytes) {
        Some((rest, ids)) if ids.len().is_multiple_of(4) => {
            let ids = ids.as_chunks().0.iter();
            (rest, ids.map(|id| u32::from_le_bytes(*id)).collect())
        }
        _ => (bytes, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_restores_encoded_tokens() {
        let session = b"a session".to_vec();
        let file = [session.clone(), encode(&[7, u32::MAX])].concat();
        assert_eq!(split(&file), (&session[..], vec![7, u32::MAX]));
        assert_eq!(split(&session), (&session[..], vec![]));
        assert!(encode(&[]).is_empty());
        for n in 0..file.len() {
            assert_eq!(split(&file[..n]), (&file[..n], vec![]), "cut at {n}");
        }
        let odd = [session, trailer::encode(NAME, vec![1, 2, 3])].concat();
        assert_eq!(split(&odd).0, odd);
    }
}
