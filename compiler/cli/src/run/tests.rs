//! Lanes on a model that is a function of the text: whatever is guessed, shared or taken back, answers are those of each
//! text alone.

use std::collections::BTreeMap;
use std::io::Write;

use tpc_runtime::{Batch, Data, ExecError, KernelTime, SaveError, SequenceText, Tensor};
use tpc_text::{Sampler, Settings};

use super::chat::Conversation;
use super::generate::{Buffers, Generation, WhenFull};
use super::interrupt::Interrupt;
use super::lane::{End, Lane, Share};
use super::speed::{Speed, Step};
use super::stream::{Stream, To};
use crate::engine::Model;

const VOCAB: usize = 31;

/// The token behind a text.
fn behind(text: &[u32]) -> u32 {
    let mixed = text.iter().fold(17_u64, |h, &t| {
        (h ^ u64::from(t)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed >> 20) as u32 % VOCAB as u32
}

/// A model that continues texts by [`behind`], and whose guesses are right but for every third text.
struct Oracle {
    texts: BTreeMap<u32, Vec<u32>>,
    drafts: usize,
    /// Whether it goes back to checkpoints alone.
    recurrent: bool,
    checkpoints: BTreeMap<u32, usize>,
    /// Per token of the last batch the text up to it, and what was said to follow.
    chains: Vec<Vec<u32>>,
    rows: Vec<usize>,
    logits: Option<Tensor>,
}

impl Oracle {
    fn new(drafts: usize, recurrent: bool) -> Oracle {
        Oracle {
            texts: BTreeMap::new(),
            drafts,
            recurrent,
            checkpoints: BTreeMap::new(),
            chains: Vec::new(),
            rows: Vec::new(),
            logits: None,
        }
    }

    fn answer(&mut self, of: impl Fn(&[u32]) -> u32) -> &Tensor {
        let mut out = vec![0.0; VOCAB * self.rows.len()];
        for (i, &row) in self.rows.iter().enumerate() {
            out[i * VOCAB + of(&self.chains[row]) as usize] = 1.0;
        }
        let dims = [VOCAB, self.rows.len(), 1, 1];
        self.logits
            .insert(Tensor::new(dims, Data::F32(out)).unwrap())
    }
}

impl Model for Oracle {
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError> {
        self.chains.clear();
        for i in 0..batch.tokens.len() {
            let text = self.texts.entry(batch.seq_ids[i]).or_default();
            assert_eq!(
                batch.positions[i] as usize,
                text.len(),
                "positions rise by one"
            );
            text.push(batch.tokens[i]);
            self.chains.push(text.clone());
        }
        self.rows = batch.output_rows.iter().map(|&r| r as usize).collect();
        Ok(self.answer(behind))
    }

    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError> {
        assert_eq!(next.len(), self.chains.len());
        for (chain, &next) in self.chains.iter_mut().zip(next) {
            chain.push(next);
        }
        Ok(self.answer(|text| {
            let right = behind(text);
            match text.iter().sum::<u32>() % 3 {
                0 => (right + 1) % VOCAB as u32,
                _ => right,
            }
        }))
    }

    fn n_drafts(&self) -> usize {
        self.drafts
    }

    fn clear(&mut self) -> Result<(), ExecError> {
        self.texts.clear();
        Ok(())
    }

    fn remove_sequence(&mut self, seq: u32) {
        self.texts.remove(&seq);
    }

    fn next_position(&self, seq: u32) -> u64 {
        self.texts.get(&seq).map_or(0, |t| t.len() as u64)
    }

    fn can_truncate(&self, seq: u32, pos: u64) -> bool {
        let kept = self.checkpoints.get(&seq).map(|&n| n as u64);
        !self.recurrent || pos == 0 || pos >= self.next_position(seq) || kept == Some(pos)
    }

    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError> {
        assert!(self.can_truncate(seq, pos));
        if let Some(text) = self.texts.get_mut(&seq) {
            text.truncate(pos as usize);
        }
        Ok(())
    }

    fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError> {
        let n = self.next_position(seq) as usize;
        self.checkpoints.insert(seq, n);
        Ok(())
    }

    fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError> {
        let text = self.texts.get_mut(&seq).unwrap();
        text.drain(from as usize..(from + n) as usize);
        Ok(())
    }

    fn save(&self, _: u64, _: &[SequenceText], _: &mut dyn Write) -> Result<(), SaveError> {
        Ok(())
    }

    fn load(&mut self, _: u64, _: &[u8]) -> Result<Vec<SequenceText>, ExecError> {
        Ok(Vec::new())
    }

    fn take_profile(&mut self) -> Vec<KernelTime> {
        Vec::new()
    }
}

fn lane(seq: u32, prompt: &[u32], most: usize) -> Lane<'static> {
    let greedy = Settings {
        temperature: 0.0,
        ..Settings::default()
    };
    Lane {
        seq,
        read: Vec::new(),
        prompt: prompt.len(),
        pending: prompt.to_vec(),
        drafts: Vec::new(),
        answer: Vec::new(),
        share: Share::default(),
        end: None,
        closed: false,
        sampler: Sampler::new(greedy, VOCAB).unwrap(),
        stream: Stream::ids(To::Memory),
        most,
        ends: None,
    }
}

/// The answers to some prompts, and how many guesses there were and were right.
fn answers(
    model: &mut Oracle,
    prompts: &[Vec<u32>],
    (most, n_ctx, batch): (usize, usize, usize),
    when_full: WhenFull,
) -> (Vec<Lane<'static>>, Speed) {
    let lanes = (0..).zip(prompts).map(|(seq, p)| lane(seq, p, most));
    let mut lanes: Vec<Lane<'_>> = lanes.collect();
    let interrupt = Interrupt::listen();
    let mut generation = Generation {
        model,
        n_ctx,
        batch,
        when_full,
        unshifted: None,
        interrupt: &interrupt,
        speed: Speed::default(),
        buffers: Buffers::default(),
    };
    generation.run(&mut lanes, |_, _| Ok(())).ok().unwrap();
    (lanes, generation.speed)
}

fn texts(lanes: &[Lane<'_>]) -> Vec<Vec<u32>> {
    lanes.iter().map(|l| l.answer.clone()).collect()
}

fn prompts() -> Vec<Vec<u32>> {
    vec![vec![1, 2, 3], (0..13).collect(), vec![9]]
}

/// The text of a prompt and its answer, a token after the other.
fn alone(prompt: &[u32], most: usize) -> Vec<u32> {
    let mut text = prompt.to_vec();
    for _ in 0..most {
        text.push(behind(&text));
    }
    text.split_off(prompt.len())
}

#[test]
fn answers_do_not_depend_on_what_is_guessed_or_runs_beside() {
    let wanted: Vec<Vec<u32>> = prompts().iter().map(|p| alone(p, 40)).collect();
    for drafts in [0, 1, 3] {
        for recurrent in [false, true] {
            for batch in [3, 5, 64] {
                let mut model = Oracle::new(drafts, recurrent);
                let sizes = (40, 100, batch);
                let (lanes, speed) = answers(&mut model, &prompts(), sizes, WhenFull::End);
                assert_eq!(texts(&lanes), wanted, "{drafts} {recurrent} {batch}");
                let (drafted, accepted) = speed.drafts();
                assert!(accepted <= drafted);
                assert_eq!(accepted > 0, drafts > 0);
                assert_eq!(drafted > accepted, drafts > 0);
                for lane in &lanes {
                    let held = model.texts[&lane.seq].as_slice();
                    assert_eq!(held, &lane.read[..held.len()], "what is held is the text");
                }
            }
        }
    }
}

#[test]
fn a_full_context_ends_an_answer_or_is_shifted() {
    let (lanes, _) = answers(
        &mut Oracle::new(2, false),
        &[vec![1, 2, 3]],
        (40, 10, 8),
        WhenFull::End,
    );
    assert_eq!(lanes[0].end, Some(End::Full));
    // The last token comes of the tenth, and has no place.
    assert_eq!(lanes[0].answer, alone(&[1, 2, 3], 8));
    for keep in [Some(0), Some(2), None] {
        let mut model = Oracle::new(2, false);
        let shift = WhenFull::Shift { keep };
        let (lanes, _) = answers(&mut model, &[vec![1, 2, 3]], (40, 10, 8), shift);
        assert_eq!(lanes[0].end, Some(End::Done));
        assert_eq!(lanes[0].answer.len(), 40);
        let kept = keep.unwrap_or(3);
        assert_eq!(model.texts[&0][..kept], [1, 2, 3][..kept]);
        assert!(model.texts[&0].len() <= 10);
    }
}

#[test]
fn drafts_are_counted() {
    let mut speed = Speed::default();
    speed.count(&Step {
        tokens: 4,
        drafted: 3,
        accepted: 2,
        ..Step::default()
    });
    assert_eq!(speed.drafts(), (3, 2));
}

/// A generation on a model, for chats.
fn generation<'m>(
    model: &'m mut Oracle,
    interrupt: &'m Interrupt,
    when_full: WhenFull,
) -> Generation<'m> {
    Generation {
        model,
        n_ctx: 24,
        batch: 5,
        when_full,
        unshifted: None,
        interrupt,
        speed: Speed::default(),
        buffers: Buffers::default(),
    }
}

#[test]
fn a_chat_goes_on_beyond_its_context() {
    for keep in [Some(0), Some(2), None] {
        let mut model = Oracle::new(0, false);
        let interrupt = Interrupt::listen();
        let mut generation = generation(&mut model, &interrupt, WhenFull::Shift { keep });
        let mut lane = lane(0, &[], 4);
        let mut chat = Conversation::default();
        let mut said = Vec::new();
        for turn in 0..12 {
            let before = lane.read.clone();
            let long: Vec<u32> = said.iter().copied().chain([1; 30]).collect();
            let refused = chat.answer(&mut generation, &mut lane, &long);
            assert_eq!(refused.unwrap_err().status, 2, "it does not fit");
            assert_eq!(lane.read, before, "nothing has changed");
            said.extend([turn, 7, 9]);
            chat.answer(&mut generation, &mut lane, &said).unwrap();
            assert_eq!((lane.answer.len(), lane.end), (4, Some(End::Done)));
            said.extend_from_slice(&lane.answer);
            assert!(lane.read.len() <= 24);
            // What is held is the begin that is kept, and the end of what was said.
            let kept = keep.unwrap_or(3).min(lane.read.len());
            assert_eq!(lane.read[..kept], said[..kept]);
            let tail = &lane.read[kept..];
            // The last token of an answer is read with what follows.
            let read = &said[..said.len() - 1];
            assert!(
                read.ends_with(tail),
                "{keep:?} {turn}: {:?} {read:?}",
                lane.read
            );
        }
        let held = lane.read.clone();
        assert_eq!(model.texts[&0], held);
    }
}

#[test]
fn a_chat_refuses_a_message_that_does_not_fit_and_goes_on() {
    let mut model = Oracle::new(0, false);
    let interrupt = Interrupt::listen();
    let mut generation = generation(&mut model, &interrupt, WhenFull::End);
    let mut lane = lane(0, &[], 4);
    let mut chat = Conversation::default();
    chat.answer(&mut generation, &mut lane, &[1, 2, 3]).unwrap();
    let first = lane.answer.clone();
    let refused = chat.answer(&mut generation, &mut lane, &[1; 25]);
    assert_eq!(refused.unwrap_err().status, 2);
    chat.answer(&mut generation, &mut lane, &[1, 2, 3]).unwrap();
    assert_eq!(lane.answer, first);
}
