//! Sets of tokens.

/// A set of tokens that may come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenMask {
    /// One bit per token, the lowest bit first. Unused bits are zero.
    words: Vec<u32>,
    len: usize,
}

impl TokenMask {
    /// Creates a mask that allows all of `len` tokens.
    pub fn all(len: usize) -> TokenMask {
        let mut out = TokenMask::default();
        out.allow_all(len);
        out
    }

    /// Allows all of `len` tokens.
    pub fn allow_all(&mut self, len: usize) {
        self.len = len;
        self.words.clear();
        self.words.resize(len.div_ceil(32), u32::MAX);
        let used = len % 32;
        if let Some(last) = self.words.last_mut().filter(|_| used > 0) {
            *last = (1 << used) - 1;
        }
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the vocabulary is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the mask allows the token. Tokens outside the vocabulary are banned.
    pub fn allows(&self, id: u32) -> bool {
        let word = self.words.get(id as usize / 32);
        word.is_some_and(|w| w >> (id % 32) & 1 == 1)
    }

    /// Returns the number of allowed tokens.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Bans a token.
    pub fn ban(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }

    /// Bans all tokens that are not in `allowed`: one bit per token, the lowest bit first. Tokens after the last bit
    /// are banned too.
    pub fn intersect(&mut self, allowed: &[u32]) {
        let rest = allowed.iter().copied().chain(std::iter::repeat(0));
        for (word, allowed) in self.words.iter_mut().zip(rest) {
            *word &= allowed;
        }
    }
}
