//! Files of log-probabilities, in the format of llama-perplexity's `--save-all-logits`.
//!
//! Little-endian: `_logits_`, then as i32 the tokens per window, the vocabulary's size, the number of windows, and all
//! tokens. Then each scored prediction: two f32 (scale, minimum), and a u16 per token of the vocabulary. A vocabulary
//! of odd size is padded.

use std::io::{self, Read, Write};

use tpc_diag::Diagnostic;

use super::divergence::BaseRow;
use super::rows::{Peak, Rows};
use crate::codes::BASE_FILE;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"_logits_";

/// Log-probabilities more than this below the best one are stored as one value.
const RANGE: f32 = 16.0;

/// The tokens and sizes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseHeader {
    /// Tokens per window.
    pub context: usize,
    /// Size of the vocabulary.
    pub n_vocab: usize,
    /// Tokens of all windows, without begin tokens.
    pub tokens: Vec<u32>,
}

impl BaseHeader {
    /// Returns the number of windows.
    pub const fn chunks(&self) -> usize {
        match self.context {
            0 => 0,
            n => self.tokens.len() / n,
        }
    }
}

/// Returns the numbers of a prediction: four for scale and minimum, then the codes.
const fn width(n_vocab: usize) -> usize {
    n_vocab.next_multiple_of(2) + 4
}

/// Writes a file.
pub struct BaseWriter<W> {
    out: W,
}

fn encode(logits: &[f32]) -> Vec<u16> {
    let peak = Peak::of(logits);
    let lowest = logits.iter().copied().fold(f32::INFINITY, f32::min);
    let lowest = lowest.max(peak.max - RANGE);
    let min = lowest - peak.max - peak.log_sum as f32;
    let scale = (peak.max - lowest) / 65535.0;
    let mut out = Vec::with_capacity(width(logits.len()));
    for number in [scale, min] {
        let bits = number.to_bits();
        out.extend([bits as u16, (bits >> 16) as u16]);
    }
    let inverse = match scale {
        0.0 => 0.0,
        scale => 1.0 / scale,
    };
    let code = |&x: &f32| match x > lowest {
        true => (inverse * (x - lowest)).round_ties_even() as u16,
        false => 0,
    };
    out.extend(logits.iter().map(code));
    out.resize(width(logits.len()), 0);
    out
}

impl<W: Write> BaseWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Returns an error of `out`.
    pub fn new(mut out: W, header: &BaseHeader) -> io::Result<BaseWriter<W>> {
        out.write_all(MAGIC)?;
        let sizes = [header.context, header.n_vocab, header.chunks()].map(|n| n as u32);
        for number in sizes.iter().chain(&header.tokens) {
            out.write_all(&number.to_le_bytes())?;
        }
        Ok(BaseWriter { out })
    }

    /// Writes predictions.
    ///
    /// # Errors
    /// Returns an error of the output.
    pub fn write(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        for row in rows.each(|i| encode(rows.row(i))) {
            let bytes: Vec<u8> = row.iter().flat_map(|n| n.to_le_bytes()).collect();
            self.out.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Returns an error of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a file, prediction by prediction.
pub struct BaseReader<R> {
    input: R,
    name: String,
    /// The header.
    pub header: BaseHeader,
    rows: Vec<u16>,
}

fn damaged(name: &str, message: impl Into<String>) -> Error {
    let d = Diagnostic::new(&BASE_FILE, name.to_owned(), message.into());
    Error::usage(d.help(
        "write the base again: `tpc perplexity MODEL -f TEXT --save-all-logits FILE`, or llama-perplexity with the same options",
    ))
}

impl<R: Read> BaseReader<R> {
    /// Reads the header of a file of `size` bytes.
    ///
    /// # Errors
    /// Returns TPC0436 if the file is not a base, is too short, or contradicts itself.
    pub fn new(mut input: R, name: &str, size: u64) -> Result<BaseReader<R>, Error> {
        let mut head = [0; 20];
        let is_base = input.read_exact(&mut head).is_ok() && head.starts_with(MAGIC);
        if !is_base {
            let message =
                "the file does not begin with `_logits_`: it does not hold log-probabilities";
            return Err(damaged(name, message));
        }
        let number = |i: usize| {
            let bytes = [head[i], head[i + 1], head[i + 2], head[i + 3]];
            u64::from(u32::from_le_bytes(bytes))
        };
        let (context, n_vocab, chunks) = (number(8), number(12), number(16));
        // Negative numbers and sizes that overflow are larger than any file.
        if context < 3 || n_vocab == 0 || chunks == 0 {
            let message = format!(
                "the header gives {chunks} windows of {context} tokens and a vocabulary of {n_vocab}"
            );
            return Err(damaged(name, message));
        }
        let row = n_vocab.next_multiple_of(2) + 4;
        let per_window = (context - 1 - context / 2)
            .saturating_mul(row)
            .saturating_mul(2);
        let per_window = per_window.saturating_add(context * 4);
        let whole = chunks.saturating_mul(per_window).saturating_add(20);
        if size < whole {
            let message = format!("the file has {size} bytes, but its header announces {whole}");
            return Err(damaged(name, message));
        }
        let mut bytes = vec![0; (chunks * context * 4) as usize];
        let read = input.read_exact(&mut bytes);
        read.map_err(|e| damaged(name, format!("the tokens cannot be read: {e}")))?;
        let tokens = bytes.chunks_exact(4);
        let tokens = tokens.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Ok(BaseReader {
            header: BaseHeader {
                context: context as usize,
                n_vocab: n_vocab as usize,
                tokens: tokens.collect(),
            },
            input,
            name: name.to_owned(),
            rows: Vec::new(),
        })
    }

    /// Reads the next `n` predictions.
    ///
    /// # Errors
    /// Returns TPC0436 if the file ends.
    pub fn read(&mut self, n: usize) -> Result<(), Error> {
        let mut bytes = vec![0; n * width(self.header.n_vocab) * 2];
        let read = self.input.read_exact(&mut bytes);
        read.map_err(|e| damaged(&self.name, format!("log-probabilities cannot be read: {e}")))?;
        let numbers = bytes.chunks_exact(2);
        self.rows.clear();
        (self.rows).extend(numbers.map(|b| u16::from_le_bytes([b[0], b[1]])));
        Ok(())
    }

    /// Returns prediction `i` of those read last.
    pub fn row(&self, i: usize) -> BaseRow<'_> {
        let width = width(self.header.n_vocab);
        let row = &self.rows[i * width..][..width];
        let real = |at: usize| f32::from_bits(u32::from(row[at]) | u32::from(row[at + 1]) << 16);
        BaseRow::Stored {
            scale: real(0),
            min: real(2),
            codes: &row[4..4 + self.header.n_vocab],
        }
    }
}
