use crate::refusal::Refusal;
use crate::version::Version;

/// The unread bytes of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    unread: &'a [u8],
    version: Version,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(unread: &'a [u8], version: Version) -> Fields<'a> {
        Fields { unread, version }
    }

    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (head, rest) = self.unread.split_first_chunk::<N>().ok_or_else(short)?;
        self.unread = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Refusal> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Refusal> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Refusal> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Refusal> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) const fn left(&self) -> u64 {
        self.unread.len() as u64
    }

    /// Returns an error if unread bytes remain.
    pub(crate) fn end(&self) -> Result<(), Refusal> {
        match self.unread {
            [] => Ok(()),
            more => Err(Refusal::message(format!(
                "the message has {} bytes too many",
                more.len()
            ))),
        }
    }
}

fn short() -> Refusal {
    Refusal::message("the message is too short")
}
