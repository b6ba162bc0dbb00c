//! The number of tokens to draft, from measured acceptance and measured times.
//!
//! A batch of one token and `k` drafts takes longer than a batch of one token, and yields more tokens if drafts are
//! accepted. [`Pace`] chooses the `k` with the highest expected speed. Drafts that do not pay are tried again after
//! ever longer pauses.

use std::time::Duration;

use crate::generate::confidence::Confidence;

/// Older measurements lose this part of their weight with each new one.
const DECAY: f64 = 0.06;

#[derive(Clone, Copy, Debug)]
struct Acceptance {
    accepted: f64,
    tried: f64,
    /// Drafts that were possible since the last try.
    skipped: usize,
    /// Possible drafts before the next try.
    pause: usize,
}

const PAUSE: usize = 16;
const LONGEST_PAUSE: usize = 256;

impl Acceptance {
    fn of(confidence: Confidence) -> Acceptance {
        let [accepted, tried] = confidence.prior();
        Acceptance {
            accepted,
            tried,
            skipped: 0,
            pause: PAUSE,
        }
    }

    /// Returns the probability that a draft is accepted if the drafts before it are.
    fn rate(&self) -> f64 {
        (self.accepted / self.tried).clamp(0.0, 0.995)
    }
}

/// Recent times of batches of about the same number of tokens.
#[derive(Clone, Debug, Default)]
struct Times {
    recent: Vec<(usize, f64)>,
    next: usize,
}

/// Number of recent batches that count.
const RECENT: usize = 7;
/// Batches before a time is known.
const FEWEST: usize = 3;
/// Batches with drafts before the time without drafts is measured again.
const STALE: usize = 32;

impl Times {
    fn add(&mut self, tokens: usize, seconds: f64) {
        match self.recent.len() < RECENT {
            true => self.recent.push((tokens, seconds)),
            false => self.recent[self.next % RECENT] = (tokens, seconds),
        }
        self.next = (self.next + 1) % RECENT;
    }

    /// Returns the median time, with the mean number of tokens; `None` before enough batches.
    fn median(&self) -> Option<[f64; 2]> {
        if self.recent.len() < FEWEST {
            return None;
        }
        let mut times: Vec<f64> = self.recent.iter().map(|t| t.1).collect();
        times.sort_by(f64::total_cmp);
        let median = *times.get(times.len() / 2)?;
        let tokens: usize = self.recent.iter().map(|t| t.0).sum();
        Some([tokens as f64 / times.len() as f64, median])
    }
}

/// Batches of 1, 2, 3 to 4, 5 to 8, … tokens have common times.
const WIDTHS: usize = 8;

const fn width(tokens: usize) -> usize {
    let class = tokens.next_power_of_two().trailing_zeros() as usize;
    if class < WIDTHS { class } else { WIDTHS - 1 }
}

/// The additional time per token before the first measurement, in times of one token.
const SLOPE: f64 = 0.4;

/// Minimum expected gain. Below it, no tokens are drafted.
const GAIN: f64 = 1.05;

/// The lengths to choose from.
const LENGTHS: [usize; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48];

/// Measures drafts, and decides how many tokens to draft.
#[derive(Clone, Debug)]
pub struct Pace {
    classes: [Acceptance; Confidence::COUNT],
    times: [Times; WIDTHS],
    /// Seconds per drafted token of a second model.
    draft_seconds: f64,
    /// True if rejected drafts make the model read accepted ones again.
    rereads: bool,
    /// Tokens per batch without drafts: the number of slots.
    plain: usize,
    /// Batches since the last one without drafts.
    since_plain: usize,
    /// Minimum number of drafts, even if they do not pay.
    pub least: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        use Confidence::{Blocks, Long, Medium, Model, Short};
        Pace {
            classes: [Blocks, Model, Short, Medium, Long].map(Acceptance::of),
            times: Default::default(),
            draft_seconds: 0.0,
            rereads: false,
            plain: 1,
            since_plain: 0,
            least: 0,
        }
    }
}

impl Pace {
    /// Sets the number of slots that continue.
    pub fn slots(&mut self, n: usize) {
        self.plain = n.max(1);
    }

    /// Adds the time of a batch without prompts.
    pub fn batch(&mut self, tokens: usize, time: Duration) {
        self.since_plain = match tokens <= self.plain {
            true => 0,
            false => self.since_plain + 1,
        };
        self.times[width(tokens.max(1))].add(tokens, time.as_secs_f64());
    }

    /// Adds the time that a second model took for `n` drafts.
    pub fn drafted(&mut self, n: usize, time: Duration) {
        let each = time.as_secs_f64() / n.max(1) as f64;
        self.draft_seconds = match self.draft_seconds {
            0.0 => each,
            before => 0.8 * before + 0.2 * each,
        };
    }

    /// Adds the verdict on drafts.
    pub fn judged(&mut self, confidence: Confidence, drafted: usize, accepted: usize) {
        if drafted == 0 {
            return;
        }
        let class = &mut self.classes[confidence as usize];
        let tried = accepted + usize::from(accepted < drafted);
        let decay = (1.0 - DECAY).powi(tried as i32);
        class.accepted = class.accepted * decay + accepted as f64;
        class.tried = class.tried * decay + tried as f64;
        class.skipped = 0;
    }

    /// Notes that a rejected draft made the model read accepted tokens again.
    pub const fn reread(&mut self) {
        self.rereads = true;
    }

    /// Returns the expected time of a batch, in seconds or, before the first measurement, in times of one token.
    fn seconds(&self, tokens: f64) -> f64 {
        let known: Vec<[f64; 2]> = self.times.iter().filter_map(Times::median).collect();
        let one = known.first().map_or(1.0, |first| first[1]);
        let slope = SLOPE * one;
        let above = known.iter().position(|k| k[0] >= tokens);
        match above {
            Some(0) => known[0][1],
            Some(i) => {
                let ([a, ta], [b, tb]) = (known[i - 1], known[i]);
                ta + (tb - ta) * (tokens - a) / (b - a)
            }
            None => match known.as_slice() {
                [.., [a, ta], [b, tb]] => {
                    // Wide batches may be cheaper per token: try them.
                    let measured = ((tb - ta) / (b - a)).clamp(0.0, slope);
                    tb + measured * (tokens - b)
                }
                [[a, ta]] => ta + slope * (tokens - a),
                [] => one + slope * (tokens - 1.0),
            },
        }
    }

    /// Returns the expected tokens per second with `n` drafts.
    fn speed(&self, confidence: Confidence, n: usize) -> f64 {
        let p = self.classes[confidence as usize].rate();
        let all = p.powi(n as i32);
        let accepted = p * (1.0 - all) / (1.0 - p);
        let plain = self.plain as f64;
        let mut time = self.seconds(plain * (1.0 + n as f64));
        if confidence == Confidence::Model {
            time += self.draft_seconds * plain * n as f64;
        }
        if self.rereads {
            let again = self.seconds(plain * (1.0 + accepted)) - self.seconds(plain);
            time += (1.0 - all) * again.max(0.0);
        }
        (1.0 + accepted) / time
    }

    /// Returns the number of tokens to draft, at most `most`.
    pub fn length(&mut self, confidence: Confidence, most: usize) -> usize {
        let least = self.least.min(most);
        let known = self.times[width(self.plain)].recent.len() >= FEWEST;
        if !known || self.since_plain >= STALE {
            return least;
        }
        let mut best = (0, GAIN * self.speed(confidence, 0));
        for n in LENGTHS.into_iter().filter(|&n| n <= most) {
            let speed = self.speed(confidence, n);
            if speed > best.1 {
                best = (n, speed);
            }
        }
        let class = &mut self.classes[confidence as usize];
        if best.0 > 0 {
            class.pause = PAUSE;
        }
        let asked = best.0.max(least);
        if asked > 0 {
            return asked;
        }
        class.skipped += 1;
        if class.skipped <= class.pause {
            return 0;
        }
        // Even accepted drafts may not pay, so each try makes the next one rarer.
        class.skipped = 0;
        class.pause = (class.pause * 2).min(LONGEST_PAUSE);
        most.min(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns a pace on a machine whose batches of `n` tokens take `1 + slope * (n - 1)` ms.
    fn pace(slope: f64) -> Pace {
        let mut pace = Pace::default();
        for tokens in [49, 32, 16, 8, 4, 2, 1] {
            let time = MS.mul_f64(1.0 + slope * (tokens as f64 - 1.0));
            (0..RECENT).for_each(|_| pace.batch(tokens, time));
        }
        pace
    }

    fn after(mut pace: Pace, accepted: usize, rejected: usize) -> Pace {
        for _ in 0..40 {
            pace.judged(Confidence::Long, accepted + rejected, accepted);
        }
        pace
    }

    #[test]
    fn cheap_and_good_drafts_are_long_and_others_are_not() {
        let long = |mut pace: Pace| pace.length(Confidence::Long, 48);
        assert!(long(after(pace(0.1), 16, 0)) >= 24);
        assert!(long(after(pace(0.1), 3, 1)) <= 8);
        assert_eq!(long(after(pace(0.1), 0, 4)), 0);
        // If each token costs a batch, drafts cannot pay.
        assert_eq!(long(after(pace(1.0), 16, 0)), 0);
        let mut few = after(pace(0.1), 16, 0);
        assert_eq!(few.length(Confidence::Long, 0), 0);
        assert!(few.length(Confidence::Long, 5) <= 5);
    }

    #[test]
    fn rejected_drafts_are_tried_again_ever_more_rarely() {
        let mut pace = pace(0.1);
        let mut tries = Vec::new();
        for i in 0..2000 {
            let n = pace.length(Confidence::Short, 48);
            if n > 0 {
                tries.push(i);
                pace.judged(Confidence::Short, n, 0);
            }
        }
        assert!((4..40).contains(&tries.len()), "{tries:?}");
        let last: Vec<usize> = tries.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(last.last().is_some_and(|n| *n > 200), "{last:?}");
        // They come back when the text repeats itself.
        for _ in 0..40 {
            pace.judged(Confidence::Short, 2, 2);
        }
        assert!(pace.length(Confidence::Short, 48) > 2);
    }

    #[test]
    fn one_slow_batch_does_not_count() {
        let mut pace = after(pace(0.1), 16, 0);
        let before = pace.length(Confidence::Long, 48);
        pace.batch(49, MS * 1000);
        assert_eq!(pace.length(Confidence::Long, 48), before);
    }
}
