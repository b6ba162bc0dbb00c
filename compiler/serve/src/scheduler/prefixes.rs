use tpc_engine::generate::{Decoder, Slot, TokenSink};
use tpc_engine::prefix::{BLOCK, PrefixStatistics, PrefixStore};

/// Number of blocks between two stored states of a recurrent model's prompt.
const STATE_BLOCKS: usize = 8;

/// A sequence without a request. Its caches keep the last text.
pub(super) struct IdleSequence {
    pub(super) seq: u32,
    pub(super) text: Vec<u32>,
}

/// The computed texts that new requests can start from: texts of idle sequences and of the store.
pub(super) struct Prefixes {
    store: PrefixStore,
    /// Idle sequences; the longest idle first.
    idle: Vec<IdleSequence>,
    recurrent: bool,
}

impl Prefixes {
    /// Creates `n` idle sequences without texts, and a store of at most `bytes` bytes.
    pub(super) fn new(n: usize, bytes: usize, recurrent: bool) -> Prefixes {
        let idle = (0..n as u32).map(|seq| IdleSequence {
            seq,
            text: Vec::new(),
        });
        Prefixes {
            store: PrefixStore::new(bytes as u64),
            idle: idle.collect(),
            recurrent,
        }
    }

    /// Returns the idle sequences.
    pub(super) fn idle(&self) -> &[IdleSequence] {
        &self.idle
    }

    /// Adds a sequence. If its text is empty, its caches must be empty.
    pub(super) fn give_back(&mut self, seq: u32, text: Vec<u32>) {
        self.idle.push(IdleSequence { seq, text });
    }

    /// Returns the number of a prompt's tokens that need not be computed.
    pub(super) fn longest(&self, model: &dyn Decoder, prompt: &[u32]) -> usize {
        let kept = self.idle.iter().map(|i| kept(model, i, prompt)).max();
        kept.unwrap_or(0).max(self.store.longest(prompt))
    }

    /// Takes an idle sequence for a prompt. Its text afterwards begins the prompt, and its caches hold the text.
    ///
    /// The sequence with the longest common text is truncated; if the store has more tokens, the longest idle sequence
    /// gets them. Without `reuse`, the sequence is empty.
    pub(super) fn take(
        &mut self,
        model: &mut dyn Decoder,
        prompt: &[u32],
        reuse: bool,
    ) -> Option<IdleSequence> {
        let of_idle = |i: &IdleSequence| if reuse { kept(model, i, prompt) } else { 0 };
        let found: Vec<usize> = self.idle.iter().map(of_idle).collect();
        let most = found.iter().copied().max()?;
        let stored = if reuse { self.store.longest(prompt) } else { 0 };
        if most > 0 && most >= stored {
            let mut sequence = self.idle.remove(found.iter().position(|n| *n == most)?);
            let truncated = model.truncate(sequence.seq, most as u64);
            sequence
                .text
                .truncate(if truncated.is_ok() { most } else { 0 });
            if truncated.is_err() {
                model.remove_sequence(sequence.seq);
            }
            return Some(sequence);
        }
        // An empty sequence first, then the longest idle.
        let empty = self.idle.iter().position(|i| i.text.is_empty());
        let mut sequence = self.idle.remove(empty.unwrap_or(0));
        model.remove_sequence(sequence.seq);
        sequence.text.clear();
        if stored > 0 {
            match self.store.restore(model, sequence.seq, prompt) {
                Ok(n) => sequence.text.extend_from_slice(prompt.get(..n)?),
                Err(e) => self.disable(&e),
            }
        }
        Some(sequence)
    }

    /// Stores the tokens that a slot has read. Sets the position of its next state, if the model is recurrent.
    pub(super) fn save<S: TokenSink>(&mut self, model: &dyn Decoder, slot: &mut Slot<'_, S>) {
        if let Err(e) = self.store.save(model, slot.seq, &slot.read) {
            self.disable(&e);
        }
        self.pause(slot);
    }

    /// Sets the next position for storing a recurrent model's states.
    pub(super) fn pause<S: TokenSink>(&self, slot: &mut Slot<'_, S>) {
        let last = slot.prompt.saturating_sub(1) / BLOCK * BLOCK;
        let step = STATE_BLOCKS * BLOCK;
        let next = (slot.read.len() / step + 1) * step;
        slot.pause_at = Some(next.min(last)).filter(|_| self.recurrent && slot.read.len() < last);
    }

    /// Forgets the texts of idle sequences, after an error of the model.
    pub(super) fn forget(&mut self, model: &mut dyn Decoder) {
        for idle in &mut self.idle {
            model.remove_sequence(idle.seq);
            idle.text.clear();
        }
    }

    /// Returns the store's statistics.
    pub(super) fn statistics(&self) -> PrefixStatistics {
        self.store.statistics()
    }

    fn disable(&mut self, e: &tpc_engine::Error) {
        tracing::warn!("the prefix cache is off: {e}");
        self.store = PrefixStore::new(0);
    }
}

/// Returns the number of a prompt's tokens that an idle sequence can keep. The prompt's last token must be computed for
/// its logits.
fn kept(model: &dyn Decoder, idle: &IdleSequence, prompt: &[u32]) -> usize {
    let n = common(&idle.text, prompt).min(prompt.len().saturating_sub(1));
    match model.can_truncate(idle.seq, n as u64) {
        true => n,
        false => 0,
    }
}

/// Returns the number of equal tokens at the start of two texts.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
