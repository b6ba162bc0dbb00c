//! Kernel parameters with the layout of C structs.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Params(Vec<u8>);

impl Params {
    pub(super) fn new() -> Params {
        Params::default()
    }

    fn member(mut self, bytes: &[u8]) -> Params {
        self.0.resize(self.0.len().next_multiple_of(bytes.len()), 0);
        self.0.extend_from_slice(bytes);
        self
    }

    #[must_use]
    pub(super) fn aligned(mut self, bytes: usize) -> Params {
        self.0.resize(self.0.len().next_multiple_of(bytes), 0);
        self
    }

    #[must_use]
    pub(super) fn u32(self, x: u32) -> Params {
        self.member(&x.to_ne_bytes())
    }

    #[must_use]
    pub(super) fn u64(self, x: u64) -> Params {
        self.member(&x.to_ne_bytes())
    }

    #[must_use]
    pub(super) fn f32(self, x: f32) -> Params {
        self.member(&x.to_ne_bytes())
    }

    #[must_use]
    pub(super) fn f64(self, x: f64) -> Params {
        self.member(&x.to_ne_bytes())
    }

    /// Appends a size as a 32-bit integer.
    ///
    /// # Errors
    ///
    /// Returns an error if the size exceeds 32 bits.
    pub(super) fn size(self, x: u64) -> Result<Params, &'static str> {
        let x = u32::try_from(x).map_err(|_| "a size exceeds 32 bits")?;
        Ok(self.u32(x))
    }

    #[must_use]
    pub(super) fn append(mut self, more: Params) -> Params {
        self.0.extend(more.0);
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_aligned_as_in_c() {
        let bytes = Params::new().u32(1).f64(2.0).u32(3).u64(4).into_bytes();
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[8..16], 2.0_f64.to_ne_bytes());
        assert_eq!(bytes[24..], 4_u64.to_ne_bytes());
    }
}
