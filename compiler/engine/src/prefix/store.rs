use tpc_runtime::{CellKind, ExecError, Prefix, PrefixLayout};

use super::statistics::PrefixStatistics;
use super::tree::{BLOCK, Content, NODE_BYTES, Tree};
use crate::error::Error;
use crate::generate::Decoder;

/// A store of computed prefixes in host memory, for one loaded model. A full store evicts the least recently used
/// blocks.
#[derive(Clone, Debug)]
pub struct PrefixStore {
    limit: u64,
    /// The sizes of the model's cells; `None` before the first text.
    layout: Option<PrefixLayout>,
    tree: Tree,
    counts: PrefixStatistics,
}

/// A sequence and the model that has read it.
#[derive(Clone, Copy)]
struct Source<'d> {
    decoder: &'d dyn Decoder,
    layout: PrefixLayout,
    seq: u32,
}

impl PrefixStore {
    /// Returns an empty store of at most `limit_bytes` bytes. A limit of 0 disables the store.
    pub fn new(limit_bytes: u64) -> PrefixStore {
        PrefixStore {
            limit: limit_bytes,
            layout: None,
            tree: Tree::default(),
            counts: PrefixStatistics::default(),
        }
    }

    /// Returns the number of blocks and bytes, and counts of hits and evictions.
    pub fn statistics(&self) -> PrefixStatistics {
        PrefixStatistics {
            blocks: self.tree.blocks() as u64,
            bytes: self.tree.bytes(),
            ..self.counts
        }
    }

    /// Returns the smallest multiple of [`BLOCK`] above `len`. [`Self::save`] stores recurrent states only after such a
    /// number of tokens.
    pub const fn next_state_boundary(len: usize) -> usize {
        (len / BLOCK).saturating_add(1).saturating_mul(BLOCK)
    }

    /// Returns the number of a text's first tokens that [`Self::restore`] can restore: whole blocks, without the last
    /// token, whose logits a model must compute.
    pub fn longest(&self, tokens: &[u32]) -> usize {
        self.restorable(tokens).len() * BLOCK
    }

    /// Returns the blocks of the longest prefix that can be restored.
    fn restorable(&self, tokens: &[u32]) -> Vec<usize> {
        let Some(layout) = self.layout else {
            return Vec::new();
        };
        let mut path = self.tree.path(&tokens[..tokens.len().saturating_sub(1)]);
        let (mut best, mut windowed_from) = (0, 0);
        for (i, &node) in path.iter().enumerate() {
            let content = self.tree.content(node);
            let len = (i as u64 + 1) * BLOCK as u64;
            if content.windowed.is_none() {
                windowed_from = len;
            }
            let has_cells = layout.window.is_none() || windowed_from <= layout.seen_from(len);
            let has_states = layout.recurrent == 0 || content.recurrent.is_some();
            if has_cells && has_states {
                best = i + 1;
            }
        }
        path.truncate(best);
        path
    }

    /// Gives an empty sequence the longest stored prefix of a text. Returns the number of tokens.
    ///
    /// # Errors
    /// Returns the errors of [`Decoder::restore_prefix`]. The sequence is then empty.
    pub fn restore(
        &mut self,
        decoder: &mut dyn Decoder,
        seq: u32,
        tokens: &[u32],
    ) -> Result<usize, Error> {
        let path = self.restorable(tokens);
        let Some(last) = path.last() else {
            return Ok(0);
        };
        if decoder.prefix_layout() != self.layout {
            return Err(other_model(seq));
        }
        let contents = || path.iter().map(|&node| self.tree.content(node));
        let windowed = contents().rev().map_while(|c| c.windowed.as_deref());
        let mut prefix = Prefix {
            block: BLOCK,
            full: contents().map(|c| &*c.full).collect(),
            windowed: windowed.collect(),
            recurrent: self.tree.content(*last).recurrent.as_deref(),
        };
        prefix.windowed.reverse();
        decoder.restore_prefix(seq, &prefix)?;
        self.tree.touch(&path);
        let restored = path.len() * BLOCK;
        self.counts.hits += 1;
        self.counts.tokens_restored += restored as u64;
        Ok(restored)
    }

    /// Stores the whole blocks of a sequence's text, `tokens`, that the store does not have yet. Returns the number of
    /// the text's tokens in the store.
    ///
    /// Stores recurrent states if the text is the whole sequence and ends at a multiple of [`BLOCK`]. Call this method
    /// after every chunk of a prompt and at the end of an answer, because sliding-window caches lose cells. If the model
    /// drafts, call it after [`Decoder::draft_step`].
    ///
    /// # Errors
    /// Returns the errors of [`Decoder::read_cells`] and [`Decoder::read_recurrent`], and [`ExecError::Prefix`] if the
    /// sequence is shorter than the text.
    pub fn save(
        &mut self,
        decoder: &dyn Decoder,
        seq: u32,
        tokens: &[u32],
    ) -> Result<usize, Error> {
        let Some(layout) = decoder.prefix_layout().filter(|_| self.limit > 0) else {
            return Ok(0);
        };
        if *self.layout.get_or_insert(layout) != layout {
            return Err(other_model(seq));
        }
        let read = decoder.next_position(seq);
        let text = tokens.len() as u64;
        if text > read {
            return Err(refused(
                seq,
                format!("the sequence has {read} of the {text} tokens"),
            ));
        }
        let source = Source {
            decoder,
            layout,
            seq,
        };
        let mut path = self.tree.path(tokens);
        self.tree.touch(&path);
        self.add_windowed(source, &path)?;
        let mut path_bytes: u64 = path.iter().map(|&node| self.tree.bytes_of(node)).sum();
        let (blocks, _) = tokens.as_chunks::<BLOCK>();
        for block in &blocks[path.len()..] {
            let at = (path.len() * BLOCK) as u64;
            let cells = source.layout.full as u64 + source.layout.windowed as u64;
            let needed = NODE_BYTES + cells * BLOCK as u64;
            if !self.make_room(needed, path_bytes) {
                break;
            }
            let Some(content) = source.block(at)? else {
                break;
            };
            let node = self.tree.insert(path.last().copied(), block, content);
            path_bytes += self.tree.bytes_of(node);
            path.push(node);
        }
        if text == read && (path.len() * BLOCK) as u64 == text {
            self.add_recurrent(source, &path)?;
        }
        Ok(path.len() * BLOCK)
    }

    /// Adds missing sliding-window cells to the blocks of a path.
    fn add_windowed(&mut self, source: Source<'_>, path: &[usize]) -> Result<(), Error> {
        let needed = (source.layout.windowed * BLOCK) as u64;
        let mut path_bytes: u64 = path.iter().map(|&node| self.tree.bytes_of(node)).sum();
        for (i, &node) in path.iter().enumerate() {
            if needed == 0 || self.tree.content(node).windowed.is_some() {
                continue;
            }
            let windowed = source.cells(CellKind::Windowed, (i * BLOCK) as u64)?;
            if windowed.is_some() && self.make_room(needed, path_bytes) {
                self.tree.update(node, |c| c.windowed = windowed);
                path_bytes += needed;
            }
        }
        Ok(())
    }

    /// Adds recurrent states to the last block of a path.
    fn add_recurrent(&mut self, source: Source<'_>, path: &[usize]) -> Result<(), Error> {
        let needed = source.layout.recurrent;
        let last = path.last();
        let last = last.filter(|&&node| self.tree.content(node).recurrent.is_none());
        let path_bytes = path.iter().map(|&node| self.tree.bytes_of(node)).sum();
        if let Some(&node) = last
            && needed > 0
            && self.make_room(needed as u64, path_bytes)
        {
            let mut bytes = Vec::with_capacity(needed);
            if source.decoder.read_recurrent(source.seq, &mut bytes)? {
                self.tree
                    .update(node, |c| c.recurrent = Some(bytes.into_boxed_slice()));
            }
        }
        Ok(())
    }

    /// Evicts blocks until `needed` bytes are free. Returns false without a change if the blocks in use, of `in_use`
    /// bytes, leave too little memory.
    fn make_room(&mut self, needed: u64, in_use: u64) -> bool {
        if in_use.saturating_add(needed) > self.limit {
            return false;
        }
        while self.tree.bytes() + needed > self.limit {
            if !self.tree.evict() {
                return false;
            }
            self.counts.evictions += 1;
        }
        true
    }
}

impl Source<'_> {
    /// Reads the cells of the block at position `at`; `None` if they cannot be copied.
    fn block(&self, at: u64) -> Result<Option<Content>, Error> {
        let Some(full) = self.cells(CellKind::Full, at)? else {
            return Ok(None);
        };
        let windowed = match self.layout.windowed {
            0 => None,
            _ => self.cells(CellKind::Windowed, at)?,
        };
        Ok(Some(Content {
            full,
            windowed,
            recurrent: None,
        }))
    }

    fn cells(&self, kind: CellKind, at: u64) -> Result<Option<Box<[u8]>>, Error> {
        let each = match kind {
            CellKind::Windowed => self.layout.windowed,
            _ => self.layout.full,
        };
        let mut bytes = Vec::with_capacity(each.saturating_mul(BLOCK));
        let positions = at..at + BLOCK as u64;
        let read = self
            .decoder
            .read_cells(self.seq, kind, positions, &mut bytes)?;
        Ok(read.then(|| bytes.into_boxed_slice()))
    }
}

fn other_model(seq: u32) -> Error {
    refused(
        seq,
        "the store has prefixes of a model with other caches".into(),
    )
}

fn refused(seq: u32, what: String) -> Error {
    ExecError::Prefix { seq, what }.into()
}
