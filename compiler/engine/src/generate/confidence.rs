/// The origin of drafts. Each has its own acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The model's drafting blocks.
    Blocks,
    /// A second model.
    Model,
    /// Repetition of a few tokens.
    Short,
    /// Repetition of more tokens.
    Medium,
    /// Repetition of many tokens.
    Long,
}

impl Confidence {
    /// Number of confidences.
    pub(super) const COUNT: usize = 5;

    /// Returns the confidence in text after a repetition of `n` tokens.
    pub const fn of_repetition(n: usize) -> Confidence {
        match n {
            0..=4 => Confidence::Short,
            5..=11 => Confidence::Medium,
            _ => Confidence::Long,
        }
    }

    /// Returns accepted and tried drafts before the first measurement.
    pub(super) const fn prior(self) -> [f64; 2] {
        match self {
            Confidence::Blocks | Confidence::Model => [3.0, 4.0],
            Confidence::Short => [1.0, 2.0],
            Confidence::Medium => [1.4, 2.0],
            Confidence::Long => [1.8, 2.0],
        }
    }
}
