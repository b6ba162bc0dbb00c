//! Runs slots on a deterministic model. Drafts, batches and removals must not change any answer.

use std::collections::BTreeMap;

use tpc_runtime::{Batch, BestLogits, Data, ExecError, Predicted, Tensor};
use tpc_text::{Sampler, Settings};

use super::*;
use crate::error::{Error, ErrorKind};

const VOCAB: usize = 31;

fn next_token(text: &[u32]) -> u32 {
    let mixed = text.iter().fold(17_u64, |h, &t| {
        (h ^ u64::from(t)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed >> 20) as u32 % VOCAB as u32
}

/// Continues texts with [`next_token`]. Drafts a wrong token in a third of all cases.
struct Oracle {
    texts: BTreeMap<u32, Vec<u32>>,
    drafts: usize,
    /// True if sequences can only be truncated to a checkpoint.
    recurrent: bool,
    checkpoints: BTreeMap<u32, usize>,
    /// If above 0, every token at a multiple of this position is wrong.
    wrong: usize,
    /// Repeats the text's token this many positions before.
    period: Option<usize>,
    /// The text up to each token of the last batch, with the token's drafts.
    chains: Vec<Vec<u32>>,
    rows: Vec<usize>,
    logits: Option<Tensor>,
    best: BestLogits,
}

impl Oracle {
    fn new(drafts: usize, recurrent: bool) -> Oracle {
        Oracle {
            texts: BTreeMap::new(),
            drafts,
            recurrent,
            checkpoints: BTreeMap::new(),
            wrong: 0,
            period: None,
            chains: Vec::new(),
            rows: Vec::new(),
            logits: None,
            best: BestLogits::default(),
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

impl Decoder for Oracle {
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
        let (wrong, period) = (self.wrong, self.period);
        Ok(self.answer(|text| {
            let repeated = period.and_then(|n| text.len().checked_sub(n));
            let right = repeated.map_or_else(|| next_token(text), |at| text[at]);
            match wrong > 0 && text.len().is_multiple_of(wrong) {
                true => (right + 1) % VOCAB as u32,
                false => right,
            }
        }))
    }

    /// Returns only the largest logits of batches with an odd number of tokens.
    fn step_best(&mut self, batch: &Batch, wanted: usize) -> Result<Predicted<'_>, ExecError> {
        assert_eq!(wanted, 1, "the samplers are greedy");
        let logits = self.step(batch)?.reals()?.to_vec();
        if batch.tokens.len().is_multiple_of(2) {
            return Ok(Predicted::All(self.logits.as_ref().unwrap()));
        }
        self.best.clear();
        for row in logits.chunks(VOCAB) {
            let id = row.iter().position(|x| *x == 1.0).unwrap();
            self.best.push_row([(id as u32, 1.0)]);
        }
        Ok(Predicted::Best(&self.best))
    }

    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError> {
        assert_eq!(next.len(), self.chains.len());
        for (chain, &next) in self.chains.iter_mut().zip(next) {
            chain.push(next);
        }
        Ok(self.answer(|text| {
            let right = next_token(text);
            match text.iter().sum::<u32>() % 3 {
                0 => (right + 1) % VOCAB as u32,
                _ => right,
            }
        }))
    }

    fn n_drafts(&self) -> usize {
        self.drafts
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
}

type Ids = Slot<'static, Vec<u32>>;

fn slot(seq: u32, prompt: &[u32], most: usize) -> Ids {
    let greedy = Settings {
        temperature: 0.0,
        ..Settings::default()
    };
    let mut slot = Slot::new(seq, Sampler::new(greedy, VOCAB).unwrap(), Vec::new());
    slot.max_tokens = most;
    slot.begin(prompt);
    slot
}

fn answers(
    model: &mut Oracle,
    prompts: &[Vec<u32>],
    (most, n_ctx, batch): (usize, usize, usize),
    when_full: WhenFull,
) -> (Vec<Ids>, Speed) {
    let slots = (0..).zip(prompts).map(|(seq, p)| slot(seq, p, most));
    let mut slots: Vec<Ids> = slots.collect();
    let mut generator = Generator {
        when_full,
        ..Generator::new(model, n_ctx, batch)
    };
    generator
        .run(&mut slots, |_, _| Ok::<(), Error>(()))
        .ok()
        .unwrap();
    (slots, generator.speed)
}

fn texts(slots: &[Ids]) -> Vec<Vec<u32>> {
    slots.iter().map(|l| l.answer.clone()).collect()
}

fn prompts() -> Vec<Vec<u32>> {
    vec![vec![1, 2, 3], (0..13).collect(), vec![9]]
}

fn expected_answer(prompt: &[u32], most: usize) -> Vec<u32> {
    let mut text = prompt.to_vec();
    for _ in 0..most {
        text.push(next_token(&text));
    }
    text.split_off(prompt.len())
}

#[test]
fn answers_do_not_depend_on_drafts_or_other_slots() {
    let wanted: Vec<Vec<u32>> = prompts().iter().map(|p| expected_answer(p, 40)).collect();
    for drafts in [0, 1, 3] {
        for recurrent in [false, true] {
            for batch in [3, 5, 64] {
                let mut model = Oracle::new(drafts, recurrent);
                let sizes = (40, 100, batch);
                let (slots, speed) = answers(&mut model, &prompts(), sizes, WhenFull::End);
                assert_eq!(texts(&slots), wanted, "{drafts} {recurrent} {batch}");
                let (drafted, accepted) = (speed.drafted, speed.accepted);
                assert!(accepted <= drafted);
                assert_eq!(accepted > 0, drafts > 0);
                assert_eq!(drafted > accepted, drafts > 0);
                for slot in &slots {
                    let held = model.texts[&slot.seq].as_slice();
                    assert_eq!(held, &slot.read[..held.len()], "the cache holds the text");
                }
            }
        }
    }
}

#[test]
fn a_full_context_ends_an_answer_or_is_shifted() {
    let (slots, _) = answers(
        &mut Oracle::new(2, false),
        &[vec![1, 2, 3]],
        (40, 10, 8),
        WhenFull::End,
    );
    assert_eq!(slots[0].end, Some(End::Full));
    // The tenth token still yields logits, but the next does not fit.
    assert_eq!(slots[0].answer, expected_answer(&[1, 2, 3], 8));
    for keep in [Some(0), Some(2), None] {
        let mut model = Oracle::new(2, false);
        let shift = WhenFull::Shift { keep };
        let (slots, _) = answers(&mut model, &[vec![1, 2, 3]], (40, 10, 8), shift);
        assert_eq!(slots[0].end, Some(End::Done));
        assert_eq!(slots[0].answer.len(), 40);
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
    assert_eq!((speed.drafted, speed.accepted), (3, 2));
}

fn generator<'m>(model: &'m mut Oracle, when_full: WhenFull) -> Generator<'m> {
    Generator {
        when_full,
        ..Generator::new(model, 24, 5)
    }
}

#[test]
fn a_chat_goes_on_beyond_its_context() {
    for keep in [Some(0), Some(2), None] {
        let mut model = Oracle::new(0, false);
        let mut generator = self::generator(&mut model, WhenFull::Shift { keep });
        let mut slot = self::slot(0, &[], 4);
        let mut chat = Conversation::default();
        let mut said = Vec::new();
        for turn in 0..12 {
            let before = slot.read.clone();
            let long: Vec<u32> = said.iter().copied().chain([1; 30]).collect();
            let refused = chat.answer(&mut generator, &mut slot, &long);
            assert_eq!(
                refused.unwrap_err().kind,
                ErrorKind::Usage,
                "the message is too long"
            );
            assert_eq!(slot.read, before, "the slot is unchanged");
            said.extend([turn, 7, 9]);
            chat.answer(&mut generator, &mut slot, &said).unwrap();
            assert_eq!((slot.answer.len(), slot.end), (4, Some(End::Done)));
            said.extend_from_slice(&slot.answer);
            assert!(slot.read.len() <= 24);
            // The slot holds the kept tokens and the end of the conversation.
            let kept = keep.unwrap_or(3).min(slot.read.len());
            assert_eq!(slot.read[..kept], said[..kept]);
            let tail = &slot.read[kept..];
            // The model reads an answer's last token with the next message.
            let read = &said[..said.len() - 1];
            assert!(
                read.ends_with(tail),
                "{keep:?} {turn}: {:?} {read:?}",
                slot.read
            );
        }
        drop(generator);
        assert_eq!(model.texts[&0], slot.read);
    }
}

#[test]
fn a_chat_refuses_a_message_that_does_not_fit_and_goes_on() {
    let mut model = Oracle::new(0, false);
    let mut generator = self::generator(&mut model, WhenFull::End);
    let mut slot = self::slot(0, &[], 4);
    let mut chat = Conversation::default();
    chat.answer(&mut generator, &mut slot, &[1, 2, 3]).unwrap();
    let first = slot.answer.clone();
    let refused = chat.answer(&mut generator, &mut slot, &[1; 25]);
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Usage);
    chat.answer(&mut generator, &mut slot, &[1, 2, 3]).unwrap();
    assert_eq!(slot.answer, first);
}

/// Runs the prompts with more sources of drafts.
fn with_sources(
    model: &mut Oracle,
    sources: Vec<Box<dyn DraftSource + '_>>,
    least: usize,
    most: usize,
) -> (Vec<Vec<u32>>, Speed) {
    let slots = (0..).zip(prompts()).map(|(seq, p)| slot(seq, &p, most));
    let mut slots: Vec<Ids> = slots.collect();
    let mut generator = Generator::new(model, 400, 64);
    generator.drafts.extend(sources);
    generator.pace.least = least;
    generator
        .run(&mut slots, |_, _| Ok::<(), Error>(()))
        .ok()
        .unwrap();
    (texts(&slots), generator.speed)
}

#[test]
fn a_second_model_changes_no_answer() {
    let wanted: Vec<Vec<u32>> = prompts().iter().map(|p| expected_answer(p, 40)).collect();
    for recurrent in [false, true] {
        for (wrong, least) in [(0, 4), (3, 4), (3, 0), (1, 4)] {
            let mut second = Oracle {
                wrong,
                ..Oracle::new(0, recurrent)
            };
            let drafts = ModelDrafts::new(&mut second, [300, 5], VOCAB, 6);
            let mut model = Oracle::new(0, recurrent);
            let (found, speed) = with_sources(&mut model, vec![Box::new(drafts)], least, 40);
            assert_eq!(found, wanted, "{recurrent} {wrong} {least}");
            match (wrong, least) {
                (0, _) => assert_eq!(speed.accepted, speed.drafted),
                (1, _) => assert_eq!(speed.accepted, 0),
                _ => assert!(speed.accepted <= speed.drafted),
            }
            assert!(least == 0 || speed.drafted > 20, "{speed:?}");
        }
    }
}

#[test]
fn repeated_text_changes_no_answer() {
    let mut loops = Oracle {
        period: Some(7),
        ..Oracle::new(0, false)
    };
    let (plain, _) = with_sources(&mut loops, Vec::new(), 0, 60);
    for (recurrent, least) in [(false, 0), (false, 5), (true, 5)] {
        let mut model = Oracle {
            period: Some(7),
            ..Oracle::new(0, recurrent)
        };
        let ngram: Box<dyn DraftSource> = Box::new(NgramDrafts::default());
        let (found, speed) = with_sources(&mut model, vec![ngram], least, 60);
        assert_eq!(found, plain, "{recurrent} {least}");
        assert!(least == 0 || speed.accepted > 60, "{speed:?}");
    }
}

#[test]
fn drafts_end_with_the_answer() {
    let mut model = Oracle {
        period: Some(3),
        ..Oracle::new(0, false)
    };
    for most in [0, 1, 2, 10] {
        let ngram: Box<dyn DraftSource> = Box::new(NgramDrafts::default());
        let mut model_of = Oracle {
            period: Some(3),
            ..Oracle::new(0, false)
        };
        let (found, speed) = with_sources(&mut model_of, vec![ngram], 48, most);
        let (plain, _) = with_sources(&mut model, Vec::new(), 0, most);
        assert_eq!(found, plain);
        assert!(speed.drafted <= most * found.len(), "{most}: {speed:?}");
        (0..3).for_each(|seq| model.remove_sequence(seq));
    }
}
