//! Golden logits: reference logits of a model for given tokens.
//!
//! The file is little-endian: `i32` magic 0x4C4F4731, `i32` n_tokens, `i32` n_vocab, `i32` seed; `n_tokens` × `i32`
//! token ids; `n_tokens · n_vocab` × `f32` logits, one row per position. The tokens are one sequence from position 0.

use tpc_diag::{Diagnostic, codes};

/// The magic number, `1GOL` read as bytes.
pub const MAGIC: i32 = 0x4C4F_4731;

/// The contents of a golden-logits file.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Vocabulary size.
    pub n_vocab: usize,
    /// The seed of random tokens, or else 0.
    pub seed: i32,
    /// Logits, `[n_vocab]` per token.
    pub logits: Vec<f32>,
}

/// A distance between logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// `Σ(a − b)² / Σa²`.
    pub nmse: f64,
    /// The largest `|a − b|`.
    pub max_abs: f64,
}

impl Distance {
    /// A distance above every tolerance.
    pub const INFINITE: Distance = Distance {
        nmse: f64::INFINITY,
        max_abs: f64::INFINITY,
    };
}

impl Golden {
    /// Parses the bytes of the file `name`.
    ///
    /// # Errors
    /// Returns TPC0404 if the magic number, a size or the length is wrong.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Golden, Diagnostic> {
        let wrong = |what: String| {
            Diagnostic::new(&codes::GOLDEN_FILE, name, what)
                .help("give a golden-logits file written by `tpc eval --logits`")
        };
        let word = |i: usize| -> Result<i32, Diagnostic> {
            let b: [u8; 4] = bytes
                .get(i * 4..i * 4 + 4)
                .and_then(|b| b.try_into().ok())
                .ok_or_else(|| {
                    wrong(format!(
                        "the file ends at byte {}, within its header",
                        bytes.len()
                    ))
                })?;
            Ok(i32::from_le_bytes(b))
        };
        if word(0)? != MAGIC {
            let magic = word(0)?;
            return Err(wrong(format!(
                "byte 0: the magic number is {magic:#010x}, not {MAGIC:#010x}"
            )));
        }
        let size = |i: usize, what: &str| {
            let n = word(i)?;
            usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
                wrong(format!(
                    "byte {}: {what} is {n}, not a positive number",
                    i * 4
                ))
            })
        };
        let (n_tokens, n_vocab) = (size(1, "n_tokens")?, size(2, "n_vocab")?);
        let expected = n_tokens
            .checked_mul(n_vocab)
            .and_then(|n| n.checked_add(n_tokens)?.checked_add(4)?.checked_mul(4))
            .ok_or_else(|| wrong("n_tokens times n_vocab overflows".to_owned()))?;
        if bytes.len() != expected {
            return Err(wrong(format!(
                "the file has {} bytes, but its header requires {expected}",
                bytes.len()
            )));
        }
        let tokens = (0..n_tokens)
            .map(|i| {
                let id = word(4 + i)?;
                u32::try_from(id).map_err(|_| {
                    wrong(format!(
                        "byte {}: token {i} is {id}, which is negative",
                        16 + 4 * i
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        let logits = bytes[16 + 4 * n_tokens..]
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        Ok(Golden {
            tokens,
            n_vocab,
            seed: word(3)?,
            logits,
        })
    }

    /// Serialises the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + 4 * (self.tokens.len() + self.logits.len()));
        let sizes = [self.tokens.len() as i32, self.n_vocab as i32, self.seed];
        out.extend(MAGIC.to_le_bytes());
        out.extend(sizes.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.tokens.iter().flat_map(|t| (*t as i32).to_le_bytes()));
        out.extend(self.logits.iter().flat_map(|x| x.to_le_bytes()));
        out
    }
}

/// Computes the distance of `got` from `want` up to the shorter length. NaN or infinity gives [`Distance::INFINITE`], as
/// does the lowest f32 in only one of the two: it hides a token. Where both hide a token, the distance is 0.
pub fn distance(
    want: impl IntoIterator<Item = f64>,
    got: impl IntoIterator<Item = f64>,
) -> Distance {
    let (mut num, mut den, mut max) = (0.0, 0.0, 0.0_f64);
    let hidden = f64::from(f32::MIN);
    for (a, b) in want.into_iter().zip(got) {
        if a == hidden || b == hidden {
            num += if a == b { 0.0 } else { f64::INFINITY };
            continue;
        }
        num += (a - b) * (a - b);
        den += a * a;
        max = max.max((a - b).abs());
    }
    let nmse = if num == 0.0 { 0.0 } else { num / den };
    if nmse.is_finite() {
        Distance { nmse, max_abs: max }
    } else {
        Distance::INFINITE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_defects() {
        let g = Golden {
            tokens: vec![3, 1],
            n_vocab: 3,
            seed: 7,
            logits: vec![0.5; 6],
        };
        let bytes = g.to_bytes();
        assert_eq!(Golden::parse("x", &bytes), Ok(g));
        for n in 0..bytes.len() {
            assert_eq!(
                Golden::parse("x", &bytes[..n]).expect_err("cut").code,
                "TPC0404"
            );
        }
        let mut negative = bytes.clone();
        negative[4..8].copy_from_slice(&(-1_i32).to_le_bytes());
        assert!(Golden::parse("x", &negative).is_err());
    }

    #[test]
    fn nan_is_infinitely_far() {
        assert_eq!(distance([1.0, f64::NAN], [1.0, 1.0]).nmse, f64::INFINITY);
        let hidden = f64::from(f32::MIN);
        assert_eq!(distance([1.0, hidden], [1.0, 1.0]).nmse, f64::INFINITY);
        assert_eq!(distance([1.0, 0.0], [1.0, hidden]).nmse, f64::INFINITY);
        assert_eq!(distance([2.0, hidden], [1.0, hidden]).nmse, 0.25);
        assert_eq!(
            distance([1.0, 2.0], [1.0, 2.0]),
            Distance {
                nmse: 0.0,
                max_abs: 0.0
            }
        );
    }
}
