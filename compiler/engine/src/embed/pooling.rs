use tpc_diag::{Diagnostic, codes};
use tpc_gguf::Metadata;

use crate::error::Error;

/// The reduction of the vectors of a text's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// No reduction: a vector per token.
    None,
    /// The mean of all tokens.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
    /// Scores of the text, from the file's classification head.
    Rank,
}

impl Pooling {
    /// All poolings, in the order of their numbers in files.
    pub const ALL: [Pooling; 5] = [
        Pooling::None,
        Pooling::Mean,
        Pooling::Cls,
        Pooling::Last,
        Pooling::Rank,
    ];

    /// Returns the name in `--pooling`.
    pub const fn name(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
            Pooling::Last => "last",
            Pooling::Rank => "rank",
        }
    }

    /// Returns the pooling of a file, or [`Pooling::None`] if the file does not state one.
    ///
    /// # Errors
    /// Returns an error if the file's number is unknown.
    pub(super) fn of_file(metadata: &Metadata, arch: &str) -> Result<Pooling, Error> {
        Ok(read(metadata, &format!("{arch}.pooling_type"))?.unwrap_or(Pooling::None))
    }
}

/// Returns the pooling of a key.
pub(super) fn read(metadata: &Metadata, key: &str) -> Result<Option<Pooling>, Error> {
    let found = metadata.get_u32(key);
    let found = found.map_err(|e| Error::usage(Diagnostic::from(e)))?;
    let Some(n) = found else {
        return Ok(None);
    };
    let known = usize::try_from(n).ok().and_then(|n| Pooling::ALL.get(n));
    known.copied().map(Some).ok_or_else(|| {
        let message = format!("{key} is {n}: expected 0 to 4");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--pooling", message);
        Error::usage(d.help("give a pooling, such as --pooling mean"))
    })
}

/// Returns the mean of vectors of equal length.
pub(super) fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    let mut out = vec![0.0; width];
    for row in rows {
        for (sum, x) in out.iter_mut().zip(row) {
            *sum += x;
        }
    }
    let n = rows.len().max(1) as f64;
    out.iter_mut().for_each(|x| *x /= n);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_weighs_all_tokens_alike() {
        let rows = [vec![1.0, -2.0], vec![3.0, 0.0], vec![2.0, 8.0]];
        assert_eq!(mean(&rows), [2.0, 2.0]);
        assert!(mean(&[]).is_empty());
    }
}
