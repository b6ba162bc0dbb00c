/// A sequence's recurrent states after some tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoint {
    pub(super) seq: u32,
    pub(super) pos: u64,
    pub(super) bytes: Vec<u8>,
}
