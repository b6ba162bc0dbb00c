use std::cmp::Ordering;

/// A token that may be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) logit: f32,
    pub(super) id: u32,
}

impl Candidate {
    /// Orders likelier candidates first, then smaller ids. Logits are never NaN.
    pub(super) fn order(&self, other: &Candidate) -> Ordering {
        other
            .logit
            .total_cmp(&self.logit)
            .then(self.id.cmp(&other.id))
    }
}
