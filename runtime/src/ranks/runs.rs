//! A compact form of masks: runs of equal 32-bit words. Masks are rows of few runs, and a prompt's mask may be as large
//! as its weights' activations.

const RAW: u8 = 0;
const RUNS: u8 = 1;

/// Encodes words as runs, or as they are if that is smaller.
pub(super) fn encode(words: impl ExactSizeIterator<Item = u32> + Clone) -> Vec<u8> {
    let most = words.len() / 2;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for word in words.clone() {
        if let Some((count, last)) = runs.last_mut()
            && *last == word
            && *count < u32::MAX
        {
            *count += 1;
            continue;
        }
        if runs.len() == most {
            return raw(words.flat_map(u32::to_le_bytes));
        }
        runs.push((1, word));
    }
    let mut out = vec![RUNS];
    for (count, word) in runs {
        out.extend(count.to_le_bytes());
        out.extend(word.to_le_bytes());
    }
    out
}

/// Encodes bytes as they are.
pub(super) fn raw(bytes: impl IntoIterator<Item = u8>) -> Vec<u8> {
    std::iter::once(RAW).chain(bytes).collect()
}

/// Returns the encoded bytes, at most `most`; `None` if they are malformed or more.
pub(super) fn decode(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (&form, bytes) = bytes.split_first()?;
    match form {
        RAW => (bytes.len() <= most).then(|| bytes.to_vec()),
        RUNS => {
            let (runs, []) = bytes.as_chunks::<8>() else {
                return None;
            };
            let mut out = Vec::new();
            for &[a, b, c, d, w, x, y, z] in runs {
                let count = u32::from_le_bytes([a, b, c, d]) as usize;
                if count > (most - out.len()) / 4 {
                    return None;
                }
                out.extend(std::iter::repeat_n([w, x, y, z], count).flatten());
            }
            Some(out)
        }
        _ => None,
    }
}
