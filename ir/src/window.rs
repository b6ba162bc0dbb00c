//! Attention windows: the part of the past that a layer sees.

/// The tokens of a sequence that a token sees: itself and some earlier tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last `n` tokens, including itself.
    Sliding(u64),
    /// The tokens of its chunk of `n`.
    Chunks(u64),
}

impl Window {
    /// Returns the maximum number of tokens seen by a token.
    pub const fn tokens(self) -> u64 {
        match self {
            Window::Sliding(n) | Window::Chunks(n) => n,
        }
    }

    /// True if the token at `from` sees the token at `to ≤ from`.
    pub const fn reaches(self, from: u64, to: u64) -> bool {
        match self {
            Window::Sliding(n) => from.saturating_sub(to) < n,
            Window::Chunks(n) => match (from.checked_div(n), to.checked_div(n)) {
                (Some(from), Some(to)) => from <= to,
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sliding_window_ends_so_many_tokens_back() {
        let seen: Vec<u64> = (0..=9)
            .filter(|&to| Window::Sliding(3).reaches(9, to))
            .collect();
        assert_eq!(seen, [7, 8, 9]);
    }

    #[test]
    fn chunks_begin_at_multiples_of_their_length() {
        let seen = |from: u64| {
            (0..=from)
                .filter(|&to| Window::Chunks(4).reaches(from, to))
                .count()
        };
        let counts: Vec<usize> = (0..10).map(seen).collect();
        assert_eq!(counts, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
    }
}
