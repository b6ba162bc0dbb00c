//! Compares the store with a list of prefixes.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;
use tpc_ir::Window;
use tpc_runtime::{Batch, CellKind, ExecError, Prefix, PrefixLayout, Tensor};

use super::tree::NODE_BYTES;
use super::*;
use crate::generate::Decoder;

/// A model whose cells are a hash of the text up to their token.
struct Model {
    layout: PrefixLayout,
    /// Each sequence's tokens, and the first position in its sliding-window caches.
    texts: BTreeMap<u32, (Vec<u32>, usize)>,
}

/// Returns the bytes of a token's cells, or of the states after a token.
fn bytes(kind: CellKind, text: &[u32], layout: &PrefixLayout) -> Vec<u8> {
    let (salt, n) = match kind {
        CellKind::Full => (1, layout.full),
        CellKind::Windowed => (2, layout.windowed),
        CellKind::Sequence => (3, layout.recurrent),
    };
    let hash = text.iter().fold(salt, |h: u64, &t| {
        (h ^ u64::from(t))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(9)
    });
    hash.to_le_bytes().into_iter().cycle().take(n).collect()
}

fn cells(kind: CellKind, text: &[u32], at: Range<usize>, layout: &PrefixLayout) -> Vec<u8> {
    at.flat_map(|pos| bytes(kind, &text[..=pos], layout))
        .collect()
}

impl Model {
    fn new(layout: PrefixLayout) -> Model {
        Model {
            layout,
            texts: BTreeMap::new(),
        }
    }

    fn read(&mut self, seq: u32, text: &[u32]) {
        let (tokens, from) = self.texts.entry(seq).or_default();
        assert!(text.starts_with(tokens));
        *tokens = text.to_vec();
        *from = (*from).max(text.len().saturating_sub(self.layout.window_cells));
    }
}

impl Decoder for Model {
    fn step(&mut self, _batch: &Batch) -> Result<&Tensor, ExecError> {
        Err(ExecError::NothingToDraft)
    }

    fn draft_step(&mut self, _next: &[u32]) -> Result<&Tensor, ExecError> {
        Err(ExecError::NothingToDraft)
    }

    fn n_drafts(&self) -> usize {
        0
    }

    fn remove_sequence(&mut self, seq: u32) {
        self.texts.remove(&seq);
    }

    fn next_position(&self, seq: u32) -> u64 {
        self.texts.get(&seq).map_or(0, |t| t.0.len() as u64)
    }

    fn can_truncate(&self, _seq: u32, _pos: u64) -> bool {
        false
    }

    fn truncate(&mut self, _seq: u32, _pos: u64) -> Result<(), ExecError> {
        Ok(())
    }

    fn checkpoint(&mut self, _seq: u32) -> Result<(), ExecError> {
        Ok(())
    }

    fn shift(&mut self, _seq: u32, _from: u64, _n: u64) -> Result<(), ExecError> {
        Ok(())
    }

    fn prefix_layout(&self) -> Option<PrefixLayout> {
        Some(self.layout)
    }

    fn read_cells(
        &self,
        seq: u32,
        kind: CellKind,
        positions: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExecError> {
        let (text, from) = &self.texts[&seq];
        let at = positions.start as usize..positions.end as usize;
        if kind == CellKind::Windowed && at.start < *from {
            return Ok(false);
        }
        out.extend(cells(kind, text, at, &self.layout));
        Ok(true)
    }

    fn read_recurrent(&self, seq: u32, out: &mut Vec<u8>) -> Result<bool, ExecError> {
        let text = &self.texts[&seq].0;
        out.extend(bytes(CellKind::Sequence, text, &self.layout));
        Ok(true)
    }

    /// Finds the prefix's tokens by the text in `texts` that the test gives `u32::MAX`.
    fn restore_prefix(&mut self, seq: u32, prefix: &Prefix<'_>) -> Result<(), ExecError> {
        let layout = self.layout;
        let text = self.texts[&u32::MAX].0[..prefix.full.len() * prefix.block].to_vec();
        let from = text.len() - prefix.windowed.len() * prefix.block;
        assert_eq!(
            prefix.full.concat(),
            cells(CellKind::Full, &text, 0..text.len(), &layout)
        );
        assert_eq!(
            prefix.windowed.concat(),
            cells(CellKind::Windowed, &text, from..text.len(), &layout)
        );
        assert!(layout.window.is_none() || from as u64 <= layout.seen_from(text.len() as u64));
        let states = (layout.recurrent > 0).then(|| bytes(CellKind::Sequence, &text, &layout));
        assert_eq!(prefix.recurrent, states.as_deref());
        let from = from.max(text.len().saturating_sub(layout.window_cells));
        assert!(self.texts.insert(seq, (text, from)).is_none());
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct Known {
    windowed: bool,
    states: bool,
    used: u64,
}

/// The store as a list of prefixes.
struct Naive {
    layout: PrefixLayout,
    limit: u64,
    known: BTreeMap<Vec<u32>, Known>,
    time: u64,
    evictions: u64,
}

impl Naive {
    fn bytes_of(&self, known: &Known) -> u64 {
        let l = &self.layout;
        let windowed = usize::from(known.windowed) * l.windowed * BLOCK;
        let states = usize::from(known.states) * l.recurrent;
        NODE_BYTES + (l.full * BLOCK + windowed + states) as u64
    }

    fn bytes(&self) -> u64 {
        self.known.values().map(|k| self.bytes_of(k)).sum()
    }

    fn prefixes(text: &[u32]) -> impl Iterator<Item = &[u32]> {
        (BLOCK..=text.len()).step_by(BLOCK).map(|n| &text[..n])
    }

    fn longest(&self, text: &[u32]) -> usize {
        let mut best = 0;
        let within = &text[..text.len().saturating_sub(1)];
        for prefix in Naive::prefixes(within) {
            let Some(known) = self.known.get(prefix) else {
                break;
            };
            let first = self.layout.seen_from(prefix.len() as u64) as usize / BLOCK;
            let mut seen = Naive::prefixes(prefix).skip(first);
            let cells = self.layout.window.is_none() || seen.all(|p| self.known[p].windowed);
            if cells && (self.layout.recurrent == 0 || known.states) {
                best = prefix.len();
            }
        }
        best
    }

    fn touch(&mut self, text: &[u32]) {
        self.time += 1;
        for prefix in Naive::prefixes(text) {
            match self.known.get_mut(prefix) {
                Some(known) => known.used = self.time,
                None => break,
            }
        }
    }

    fn make_room(&mut self, needed: u64) -> bool {
        let used = self.known.values().filter(|k| k.used == self.time);
        let used: u64 = used.map(|k| self.bytes_of(k)).sum();
        if used + needed > self.limit {
            return false;
        }
        while self.bytes() + needed > self.limit {
            let is_leaf = |p: &&Vec<u32>| {
                !self
                    .known
                    .keys()
                    .any(|k| k.len() > p.len() && k.starts_with(p))
            };
            let leaves = self.known.keys().filter(is_leaf);
            let oldest = leaves.min_by_key(|p| self.known[*p].used).cloned();
            self.known.remove(&oldest.expect("a leaf"));
            self.evictions += 1;
        }
        true
    }

    fn save(&mut self, model: &Model, seq: u32, text: &[u32]) -> usize {
        self.touch(text);
        let layout = self.layout;
        let (read, from) = &model.texts[&seq];
        let held = |p: &[u32]| layout.windowed > 0 && p.len() - BLOCK >= *from;
        for prefix in Naive::prefixes(text) {
            let known = self.known.get(prefix);
            if known.is_some_and(|k| !k.windowed)
                && held(prefix)
                && self.make_room((layout.windowed * BLOCK) as u64)
            {
                self.known.get_mut(prefix).expect("known").windowed = true;
            }
        }
        let mut stored = 0;
        for prefix in Naive::prefixes(text) {
            if !self.known.contains_key(prefix) {
                let needed = NODE_BYTES + ((layout.full + layout.windowed) * BLOCK) as u64;
                if !self.make_room(needed) {
                    break;
                }
                let new = Known {
                    windowed: held(prefix),
                    states: false,
                    used: self.time,
                };
                self.known.insert(prefix.to_vec(), new);
            }
            stored = prefix.len();
        }
        if stored == read.len()
            && layout.recurrent > 0
            && stored > 0
            && !self.known[text].states
            && self.make_room(layout.recurrent as u64)
        {
            self.known.get_mut(text).expect("known").states = true;
        }
        stored
    }
}

/// Returns a text of whole blocks, named by small numbers, and a rest.
fn text(blocks: &[u8], rest: usize) -> Vec<u32> {
    // Blocks with an equal first half are different blocks.
    let block = |b: u8| (0..BLOCK as u32).map(move |i| i * u32::from(i >= 16) * u32::from(b));
    let rest = (0..rest as u32).map(|i| i + 1);
    blocks.iter().flat_map(|&b| block(b)).chain(rest).collect()
}

#[derive(Clone, Debug)]
enum Action {
    /// Read up to this text in a sequence, and save it after each chunk, or only at the end.
    Read(u32, Vec<u32>, usize, bool),
    Restore(u32, Vec<u32>),
}

fn any_text() -> impl Strategy<Value = Vec<u32>> {
    (prop::collection::vec(1_u8..3, 0..6), 0..3_usize)
        .prop_map(|(blocks, rest)| text(&blocks, [0, 1, 20][rest]))
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (
            0..3_u32,
            any_text(),
            prop_oneof![Just(16), Just(32), Just(50)],
            any::<bool>()
        )
            .prop_map(|(seq, text, chunk, each)| Action::Read(seq, text, chunk, each)),
        (0..3_u32, any_text()).prop_map(|(seq, text)| Action::Restore(seq, text)),
    ]
}

fn any_layout() -> impl Strategy<Value = PrefixLayout> {
    let window = prop_oneof![
        Just(None),
        Just(Some(Window::Sliding(40))),
        Just(Some(Window::Chunks(48))),
        Just(Some(Window::Chunks(64))),
    ];
    let recurrent = prop_oneof![Just(0), Just(40)];
    (window, 0..3_usize, recurrent).prop_map(|(window, full, recurrent)| PrefixLayout {
        full,
        windowed: window.map_or(0, |_| 3),
        recurrent,
        window,
        window_cells: window.map_or(0, |_| 90),
    })
}

fn run(layout: PrefixLayout, limit: u64, actions: Vec<Action>) {
    let mut model = Model::new(layout);
    let mut store = PrefixStore::new(limit);
    let mut naive = Naive {
        layout,
        limit,
        known: BTreeMap::new(),
        time: 0,
        evictions: 0,
    };
    let mut texts = Vec::new();
    for action in actions {
        match action {
            Action::Read(seq, text, chunk, each) => {
                texts.push(text.clone());
                let at = model.next_position(seq) as usize;
                let held = model.texts.get(&seq);
                let at = match held.is_some_and(|t| text.starts_with(&t.0)) {
                    true => at,
                    false => {
                        model.remove_sequence(seq);
                        0
                    }
                };
                for end in (at..text.len()).step_by(chunk) {
                    let end = (end + chunk).min(text.len());
                    model.read(seq, &text[..end]);
                    if each || end == text.len() {
                        let found = store.save(&model, seq, &text[..end]).expect("saved");
                        assert_eq!(found, naive.save(&model, seq, &text[..end]));
                    }
                }
            }
            Action::Restore(seq, text) => {
                model.remove_sequence(seq);
                model.texts.insert(u32::MAX, (text.clone(), 0));
                let n = store.restore(&mut model, seq, &text).expect("restored");
                assert_eq!(n, naive.longest(&text));
                if n > 0 {
                    naive.touch(&text[..n]);
                }
                texts.push(text);
            }
        }
        for text in &texts {
            assert_eq!(store.longest(text), naive.longest(text));
        }
        let counts = store.statistics();
        assert_eq!(counts.bytes, naive.bytes());
        assert_eq!(counts.blocks, naive.known.len() as u64);
        assert_eq!(counts.evictions, naive.evictions);
        assert!(counts.bytes <= limit);
    }
}

proptest! {
    #[test]
    fn the_tree_is_a_list_of_prefixes(
        layout in any_layout(),
        blocks in 1_u64..12,
        actions in prop::collection::vec(any_action(), 1..24),
    ) {
        run(layout, blocks * (NODE_BYTES + 120), actions);
    }
}

const PLAIN: PrefixLayout = PrefixLayout {
    full: 2,
    windowed: 0,
    recurrent: 0,
    window: None,
    window_cells: 0,
};

#[test]
fn a_limit_of_zero_disables_the_store() {
    let mut model = Model::new(PLAIN);
    let long = text(&[1, 2], 1);
    model.read(0, &long);
    let mut store = PrefixStore::new(0);
    assert_eq!(store.save(&model, 0, &long).expect("nothing to do"), 0);
    assert_eq!(store.longest(&long), 0);
    assert_eq!(store.restore(&mut model, 1, &long).expect("empty"), 0);
    assert_eq!(store.statistics(), PrefixStatistics::default());
}

#[test]
fn the_last_token_is_computed() {
    let mut model = Model::new(PLAIN);
    let long = text(&[1, 2, 1], 0);
    model.read(0, &long);
    let mut store = PrefixStore::new(1 << 20);
    assert_eq!(store.save(&model, 0, &long).expect("saved"), 96);
    assert_eq!(store.longest(&long), 64);
    assert_eq!(store.longest(&text(&[1, 2, 1], 1)), 96);
    assert_eq!(store.longest(&text(&[1, 1, 1], 1)), 32);
    assert_eq!(store.longest(&[]), 0);
    let longer = text(&[1, 2, 1], 1);
    let e = store.save(&model, 0, &longer).expect_err("not read yet");
    assert_eq!(e.diagnostics[0].code.id, "TPC0524");
}

#[test]
fn recurrent_states_are_at_boundaries() {
    let boundaries = [0, 1, 31, 32, 33, usize::MAX];
    let next = boundaries.map(PrefixStore::next_state_boundary);
    assert_eq!(next[..5], [32, 32, 32, 64, 64]);
    let mut model = Model::new(PrefixLayout {
        recurrent: 9,
        ..PLAIN
    });
    let long = text(&[1, 2, 2], 1);
    let mut store = PrefixStore::new(1 << 20);
    for n in [20, 64, 97] {
        model.read(0, &long[..n]);
        store.save(&model, 0, &long[..n]).expect("saved");
    }
    assert_eq!(store.longest(&long), 64, "no state after 32 and 96 tokens");
    assert_eq!(store.longest(&long[..64]), 0);
}
