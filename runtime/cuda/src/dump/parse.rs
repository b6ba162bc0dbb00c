use sha2::{Digest, Sha256};

use super::check::check;
use super::error::DumpError;
use super::format::{MAGIC, MAX_HEADER, MAX_LINE, MAX_SAVED, MAX_SOURCE, VERSION, from_hex};
use super::header::DumpHeader;
use super::launch_dump::LaunchDump;

/// The first line of a dump.
struct FirstLine {
    /// The bytes of the header, of the source and of the data.
    lengths: [u64; 3],
    sha256: Vec<u8>,
    /// The bytes of the line.
    bytes: usize,
}

fn first_line(bytes: &[u8]) -> Result<FirstLine, DumpError> {
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return Err(DumpError::NotADump);
    }
    let end = bytes.iter().take(MAX_LINE).position(|b| *b == b'\n');
    let line = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
    let line = line.ok_or(DumpError::FirstLine)?;
    let words: Vec<&str> = line.split(' ').collect();
    if words.len() > 1 && words[0] == MAGIC && words[1] != VERSION.to_string() {
        return Err(DumpError::Version {
            found: words[1].to_owned(),
            known: VERSION,
        });
    }
    let [MAGIC, _, lengths @ .., sha256] = words.as_slice() else {
        return Err(DumpError::FirstLine);
    };
    let lengths: Option<Vec<u64>> = lengths.iter().map(|n| n.parse().ok()).collect();
    let lengths = lengths.and_then(|n| <[u64; 3]>::try_from(n).ok());
    let sha256 = from_hex(sha256).filter(|h| h.len() == 32);
    match (lengths, sha256) {
        (Some(lengths), Some(sha256)) => Ok(FirstLine {
            lengths,
            sha256,
            bytes: line.len() + 1,
        }),
        _ => Err(DumpError::FirstLine),
    }
}

fn text<'a>(bytes: &'a [u8], (what, start): (&'static str, usize)) -> Result<&'a str, DumpError> {
    std::str::from_utf8(bytes).map_err(|e| DumpError::Text {
        what,
        at: (start + e.valid_up_to()) as u64,
    })
}

/// Reads a dump.
///
/// # Errors
///
/// Returns an error if the file is not a dump, is damaged, or a field is out of its range.
pub fn parse(mut bytes: Vec<u8>) -> Result<LaunchDump, DumpError> {
    let first = first_line(&bytes)?;
    let limits = [
        ("the header", MAX_HEADER),
        ("the source", MAX_SOURCE),
        ("the data", MAX_SAVED),
    ];
    for (found, (what, most)) in first.lengths.into_iter().zip(limits) {
        if found > most {
            return Err(DumpError::TooLong { what, found, most });
        }
    }
    let [header, source, data] = first.lengths.map(|n| n as usize);
    let expected = first.bytes + header + source + data;
    if bytes.len() != expected {
        return Err(DumpError::Length {
            found: bytes.len() as u64,
            expected: expected as u64,
        });
    }
    if Sha256::digest(&bytes[first.bytes..]).as_slice() != first.sha256 {
        return Err(DumpError::Checksum {
            after: first.bytes as u64,
        });
    }
    let at_source = first.bytes + header;
    let at_data = at_source + source;
    let header = text(&bytes[first.bytes..at_source], ("the header", first.bytes))?;
    let header: DumpHeader =
        ron::from_str(header).map_err(|e| DumpError::Header { at: e.to_string() })?;
    let source = text(&bytes[at_source..at_data], ("the source", at_source))?.to_owned();
    check(&header, data as u64)?;
    bytes.drain(..at_data);
    Ok(LaunchDump {
        header,
        source,
        data: bytes,
    })
}
