use tpc_runtime::Batch;

use super::pace::Pace;
use super::source::{DraftRequest, DraftSource};
use crate::error::Error;
use crate::generate::confidence::Confidence;
use crate::generate::decoder::Decoder;

/// Sizes of the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NgramSizes {
    /// The fewest tokens that must repeat.
    pub lookup: usize,
    /// Maximum number of drafts.
    pub drafts: usize,
}

impl Default for NgramSizes {
    fn default() -> NgramSizes {
        NgramSizes {
            lookup: 3,
            drafts: 48,
        }
    }
}

/// The longest repetition that counts.
const LONGEST: usize = 32;

/// Drafts that repeat earlier text: the tokens after the longest earlier occurrence of the text's end.
#[derive(Clone, Copy, Debug, Default)]
pub struct NgramDrafts {
    /// The sizes.
    pub sizes: NgramSizes,
}

/// Returns the number of equal tokens before positions `a` and `b`, at most [`LONGEST`].
fn common(text: &[u32], a: usize, b: usize) -> usize {
    let (a, b) = (text[..a].iter().rev(), text[..b].iter().rev());
    let pairs = a.zip(b).take(LONGEST);
    pairs.take_while(|(a, b)| a == b).count()
}

/// Finds the longest earlier occurrence of the text's end; the latest of equally long ones. Returns its end
/// position and its length.
fn find(text: &[u32], fewest: usize) -> Option<(usize, usize)> {
    let (last, earlier) = text.split_last()?;
    let mut best: Option<(usize, usize)> = None;
    for (i, token) in earlier.iter().enumerate().rev() {
        if token != last {
            continue;
        }
        let n = common(text, i + 1, text.len());
        if n >= fewest.max(1) && best.is_none_or(|(_, longest)| n > longest) {
            best = Some((i + 1, n));
            if n == LONGEST {
                break;
            }
        }
    }
    best
}

/// Appends the `n` tokens from position `from` on. After the text's end, the drafts themselves repeat.
fn repeat(text: &[u32], from: usize, n: usize, drafts: &mut Vec<u32>) {
    for i in from..from + n {
        let token = match i.checked_sub(text.len()) {
            None => text[i],
            Some(i) => drafts[i],
        };
        drafts.push(token);
    }
}

impl DraftSource for NgramDrafts {
    fn draft(
        &mut self,
        _: &mut dyn Decoder,
        _: &Batch,
        requests: &mut [DraftRequest<'_>],
        pace: &mut Pace,
    ) -> Result<(), Error> {
        for request in requests.iter_mut().filter(|r| r.is_open() && r.most > 0) {
            let text = request.text();
            let Some((from, length)) = find(&text, self.sizes.lookup) else {
                continue;
            };
            let confidence = Confidence::of_repetition(length);
            let n = pace.length(confidence, request.most.min(self.sizes.drafts));
            repeat(&text, from, n, request.drafts);
            *request.confidence = Some(confidence);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(text: &[u32], n: usize) -> Option<Vec<u32>> {
        let (from, _) = find(text, 2)?;
        let mut out = Vec::new();
        repeat(text, from, n, &mut out);
        Some(out)
    }

    #[test]
    fn the_longest_and_latest_repetition_is_continued() {
        assert_eq!(drafts(&[1, 2, 3, 4, 9, 1, 2], 3), Some(vec![3, 4, 9]));
        // The longer one wins, then the later one.
        assert_eq!(drafts(&[7, 1, 2, 3, 1, 2, 5, 7, 1, 2], 1), Some(vec![3]));
        assert_eq!(drafts(&[1, 2, 3, 1, 2, 5, 1, 2], 1), Some(vec![5]));
        assert_eq!(drafts(&[1, 2, 3, 4], 1), None);
        assert_eq!(drafts(&[2, 2], 1), None);
        assert_eq!(drafts(&[], 1), None);
    }

    #[test]
    fn a_loop_goes_on_beyond_the_text() {
        assert_eq!(drafts(&[1, 2, 1, 2], 5), Some(vec![1, 2, 1, 2, 1]));
        assert_eq!(drafts(&[4, 4, 4], 4), Some(vec![4, 4, 4, 4]));
    }
}
