//! Reads headers of remote files, in ranges that double until the header is complete.

use tpc_diag::Diagnostic;

use super::error::GgufErrorKind;
use super::header::Header;
use super::parser::parse_unfinished;

/// Maximum length of a remote header, in bytes: ten times the longest published header.
pub const MAX_ELSEWHERE_BYTES: u64 = 256 << 20;

/// The first range, in bytes: most headers without a token list fit.
const FIRST: u64 = 1 << 20;

/// A remote file, read by range.
///
/// The source is not trusted: its length is compared with the bytes read.
#[expect(
    clippy::len_without_is_empty,
    reason = "an empty file is refused like any file that is too short"
)]
pub trait RangeSource {
    /// Returns the file's name, for messages and names of other shards.
    fn name(&self) -> &str;

    /// Appends `len` bytes from byte `from` to `to`; fewer only at the file's end.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes cannot be read.
    fn read(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic>;

    /// Returns the length in bytes, if a read has reported it.
    fn len(&self) -> Option<u64>;

    /// Opens the file `name` in the same folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot have other files.
    fn sibling(&self, name: &str) -> Result<Box<dyn RangeSource>, Diagnostic>;
}

/// Reads a remote file's header. Returns it and the file's length, `u64::MAX` if unknown.
///
/// Each range doubles the bytes read, so failed attempts parse no more bytes than the successful attempt.
pub(super) fn read_header(source: &mut dyn RangeSource) -> Result<(Header, u64), Diagnostic> {
    let name = source.name().to_owned();
    let mut bytes: Vec<u8> = Vec::new();
    let mut wanted = FIRST;
    loop {
        let have = bytes.len() as u64;
        source.read(have, wanted - have, &mut bytes)?;
        let have = bytes.len() as u64;
        // A short read marks the end of the file, even if the reported length is larger.
        let file_len = match source.len() {
            _ if have < wanted => have,
            Some(len) => len.max(have),
            None => u64::MAX,
        };
        let cut = match parse_unfinished(&bytes, file_len, &name) {
            Ok(header) => return Ok((header, file_len)),
            Err(e) => e,
        };
        // The parser knows the size of the next part, but does not trust the length.
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
