//! Headers of files elsewhere, read in ranges that grow as far as the header goes.

use tpc_diag::Diagnostic;

use super::error::GgufErrorKind;
use super::header::Header;
use super::parser::parse_unfinished;

/// The longest header that is read from elsewhere, in bytes: ten times the longest published.
pub const MAX_ELSEWHERE_BYTES: u64 = 256 << 20;

/// The first range, in bytes: most headers without a token list fit.
const FIRST: u64 = 1 << 20;

/// A file elsewhere whose bytes are had by range, such as one on a server.
///
/// What a source says is not believed: lengths are compared with what is read, and the header is checked as that of any
/// file.
#[expect(
    clippy::len_without_is_empty,
    reason = "a file of no bytes is like any other that is too short"
)]
pub trait RangeSource {
    /// The file's name, for messages and for the names of its siblings.
    fn name(&self) -> &str;

    /// Appends at most `len` bytes from `from` on to `to`; fewer only where the file ends.
    ///
    /// # Errors
    /// When the bytes cannot be had.
    fn read(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic>;

    /// The file's length in bytes, where a read has told it.
    fn len(&self) -> Option<u64>;

    /// The file of that name beside this one.
    ///
    /// # Errors
    /// When there cannot be one.
    fn sibling(&self, name: &str) -> Result<Box<dyn RangeSource>, Diagnostic>;
}

/// Reads the header of a file elsewhere; with it the file's length, which is `u64::MAX` where nothing says it.
///
/// Each range doubles what is there, so that what is parsed in vain is no more than what is parsed.
pub(super) fn read_header(source: &mut dyn RangeSource) -> Result<(Header, u64), Diagnostic> {
    let name = source.name().to_owned();
    let mut bytes: Vec<u8> = Vec::new();
    let mut wanted = FIRST;
    loop {
        let have = bytes.len() as u64;
        source.read(have, wanted - have, &mut bytes)?;
        let have = bytes.len() as u64;
        // A short read is the end, whatever the source has said.
        let file_len = match source.len() {
            _ if have < wanted => have,
            Some(len) => len.max(have),
            None => u64::MAX,
        };
        let cut = match parse_unfinished(&bytes, file_len, &name) {
            Ok(header) => return Ok((header, file_len)),
            Err(e) => e,
        };
        // The parser knows how many bytes the next part needs, but believes no length.
        let GgufErrorKind::TruncatedHeader { reading, .. } = cut.kind() else {
            return Err(cut.into());
        };
        if have >= file_len {
            return Err(cut.into());
        }
        if have >= MAX_ELSEWHERE_BYTES {
            let kind = GgufErrorKind::HeaderTooLarge {
                reading,
                limit: MAX_ELSEWHERE_BYTES,
            };
            return Err(super::GgufError::new(&name, kind).at(have).into());
        }
        wanted = (have * 2).clamp(FIRST, MAX_ELSEWHERE_BYTES);
    }
}
