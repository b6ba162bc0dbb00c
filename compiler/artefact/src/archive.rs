//! A zip archive (PKWARE's APPNOTE.TXT 6.3) in one canonical form, which ordinary tools can read:
//!
//! - entries are stored uncompressed, in the order given to [`write()`];
//! - data begin at multiples of [`ALIGNMENT`], after an extra field of zeros in the local header (0xd935, as in
//!   Android's zipalign);
//! - every entry has the time 1980-01-01 00:00 and the attributes of a plain file of mode 0644;
//! - the central directory follows the last entry, without extra fields, comments or trailing bytes.
//!
//! The reader checks that writing the entries again gives the same file, so all readers see the same entries.

use std::collections::BTreeSet;
use std::io::{self, Write};

use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, crc32};

use crate::entry_defect::{ALIGNMENT, EntryDefect, MAX_NAME};
use crate::error::ArtefactError;

/// The maximum file size, in bytes.
pub const MAX_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 1024;

/// An entry of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name: segments of lower-case letters, digits, `.`, `-` and `_`, separated by `/`.
    pub name: &'a str,
    /// The content.
    pub data: &'a [u8],
}

fn error(name: &[u8], defect: EntryDefect) -> ArtefactError {
    ArtefactError::Entry {
        name: shown(name),
        defect,
    }
}

fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let short: String = name.chars().take(64).collect();
    short.escape_default().to_string()
}

/// Returns the first entry's name in any zip archive, escaped and shortened.
pub(crate) fn first_name(bytes: &[u8]) -> Option<String> {
    let archive = ZipArchive::from_slice(bytes).ok()?;
    let first = archive.entries().next()?.ok()?;
    Some(shown(first.file_path().as_bytes()))
}

fn check_name(name: &[u8]) -> Result<(), EntryDefect> {
    if name.starts_with(b"/") {
        return Err(EntryDefect::Absolute);
    }
    if name
        .split(|&b| b == b'/')
        .any(|s| matches!(s, b"." | b".." | b""))
    {
        return Err(EntryDefect::Leaves);
    }
    let known = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"./-_".contains(b);
    match name.len() <= MAX_NAME && name.iter().all(known) {
        true => Ok(()),
        false => Err(EntryDefect::Characters),
    }
}

/// Returns the entries in file order.
///
/// # Errors
/// Returns [`ArtefactError::Archive`] or [`ArtefactError::Entry`] if [`write()`] would write another file.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry<'_>>, ArtefactError> {
    let broken = |e: rawzip::Error| ArtefactError::Archive(format!("not a zip archive: {e}"));
    if bytes.len() as u64 > MAX_BYTES {
        let what = format!("longer than {MAX_BYTES} bytes");
        return Err(ArtefactError::Archive(what));
    }
    let archive = ZipArchive::from_slice(bytes).map_err(broken)?;
    let mut out: Vec<Entry<'_>> = Vec::new();
    let mut names = BTreeSet::new();
    let mut end = 0;
    for record in archive.entries() {
        let record = record.map_err(broken)?;
        if out.len() == MAX_ENTRIES {
            let what = format!("more than {MAX_ENTRIES} entries");
            return Err(ArtefactError::Archive(what));
        }
        let raw = record.file_path().as_bytes();
        let fail = |defect: EntryDefect| error(raw, defect);
        plain(&record).map_err(fail)?;
        let name = named(bytes, &record).ok_or_else(|| fail(EntryDefect::Beyond))?;
        if !names.insert(name) {
            return Err(fail(EntryDefect::Twice));
        }
        let found = archive.get_entry(record.wayfinder());
        let range = found.map_err(|_| fail(EntryDefect::Beyond))?;
        let (from, to) = range.compressed_data_range();
        if from < end {
            return Err(fail(EntryDefect::Overlaps));
        }
        end = to;
        if !from.is_multiple_of(ALIGNMENT as u64) {
            return Err(fail(EntryDefect::Misaligned));
        }
        let data = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let data = data.and_then(|(from, to)| bytes.get(from..to));
        let data = data.ok_or_else(|| fail(EntryDefect::Beyond))?;
        if crc32(data) != record.crc32() {
            return Err(fail(EntryDefect::Checksum));
        }
        out.push(Entry { name, data });
    }
    let mut same = Same {
        wanted: bytes,
        at: 0,
    };
    let whole = write(&mut same, &out).is_ok() && same.at == bytes.len();
    match whole {
        true => Ok(out),
        false => Err(ArtefactError::Archive(format!(
            "from byte {} on, the file differs from the form that tpc writes ({} entries)",
            same.at,
            out.len()
        ))),
    }
}

fn named<'a>(bytes: &'a [u8], record: &ZipFileHeaderRecord<'_>) -> Option<&'a str> {
    let raw = record.file_path().as_bytes();
    let at = usize::try_from(record.central_directory_offset()).ok()?;
    let at = at.checked_add(CENTRAL_BYTES)?;
    let name = bytes.get(at..at.checked_add(raw.len())?)?;
    std::str::from_utf8(name)
        .ok()
        .filter(|n| n.as_bytes() == raw)
}

fn plain(record: &ZipFileHeaderRecord<'_>) -> Result<(), EntryDefect> {
    let raw = record.file_path();
    if record.mode().is_symlink() {
        return Err(EntryDefect::Link);
    }
    if record.flags().is_encrypted() {
        return Err(EntryDefect::Encrypted);
    }
    if record.compression_method() != CompressionMethod::STORE {
        return Err(EntryDefect::Compressed);
    }
    if record.compressed_size_hint() != record.uncompressed_size_hint() {
        return Err(EntryDefect::Sizes);
    }
    if record.is_dir() && check_name(raw.as_bytes()) == Err(EntryDefect::Leaves) {
        let inside = raw.as_bytes().strip_suffix(b"/").unwrap_or_default();
        return Err(match check_name(inside) {
            Ok(()) => EntryDefect::Folder,
            Err(defect) => defect,
        });
    }
    check_name(raw.as_bytes())
}

/// A writer that fails at the first difference from `wanted`.
struct Same<'a> {
    wanted: &'a [u8],
    at: usize,
}

impl Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.wanted.get(self.at..).unwrap_or_default();
        let alike = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        self.at += alike;
        match alike == bytes.len() {
            true => Ok(alike),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn four(n: usize) -> io::Result<u32> {
    u32::try_from(n).map_err(|_| io::Error::other("an archive has at most 4 GiB"))
}

fn two(n: usize) -> io::Result<u16> {
    u16::try_from(n).map_err(|_| io::Error::other("a name has at most 64 KiB"))
}

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// The version that a reader needs: 1.0, for stored entries.
const NEEDED: u16 = 10;
/// The version that wrote the archive: 1.0 on Unix.
const MADE_BY: u16 = 3 << 8 | NEEDED;
/// A plain file of mode 0644, in the upper 16 bits.
const ATTRIBUTES: u32 = 0o100_644 << 16;
/// The first date of the format: 1 January 1980.
const DATE: u16 = 1 << 5 | 1;
/// The extra field of zipalign.
const PADDING: u16 = 0xd935;
/// The size of a local header before the name, in bytes.
const LOCAL_BYTES: usize = 30;
/// The size of a central header before the name, in bytes.
const CENTRAL_BYTES: usize = 46;
/// The size of the extra field's id, length and alignment, in bytes.
const EXTRA_BYTES: usize = 6;

fn common(entry: &Entry<'_>, extra: usize) -> io::Result<Vec<u8>> {
    let size = four(entry.data.len())?;
    let mut out = Vec::new();
    for short in [NEEDED, 0, CompressionMethod::STORE.as_u16(), 0, DATE] {
        out.extend(u16::to_le_bytes(short));
    }
    for long in [crc32(entry.data), size, size] {
        out.extend(u32::to_le_bytes(long));
    }
    out.extend(two(entry.name.len())?.to_le_bytes());
    out.extend(two(extra)?.to_le_bytes());
    Ok(out)
}

/// Writes an archive.
///
/// # Errors
/// Returns an error if `out` fails, a name is invalid, or a size exceeds the limits of zip archives.
pub fn write(out: &mut dyn Write, entries: &[Entry<'_>]) -> io::Result<()> {
    let mut at = 0;
    let mut directory = Vec::new();
    for entry in entries {
        check_name(entry.name.as_bytes()).map_err(io::Error::other)?;
        let begin = at + LOCAL_BYTES + entry.name.len();
        let data = (begin + EXTRA_BYTES).next_multiple_of(ALIGNMENT);
        let extra = data - begin;
        out.write_all(&LOCAL_HEADER.to_le_bytes())?;
        out.write_all(&common(entry, extra)?)?;
        out.write_all(entry.name.as_bytes())?;
        out.write_all(&PADDING.to_le_bytes())?;
        out.write_all(&two(extra - 4)?.to_le_bytes())?;
        out.write_all(&two(ALIGNMENT)?.to_le_bytes())?;
        out.write_all(&vec![0; extra - EXTRA_BYTES])?;
        out.write_all(entry.data)?;
        directory.extend(CENTRAL_HEADER.to_le_bytes());
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(common(entry, 0)?);
        // No comment, disk 0, no internal attributes.
        directory.extend([0; 6]);
        directory.extend(ATTRIBUTES.to_le_bytes());
        directory.extend(four(at)?.to_le_bytes());
        directory.extend(entry.name.as_bytes());
        at = data + entry.data.len();
    }
    out.write_all(&directory)?;
    let count = two(entries.len())?;
    let mut end = END.to_le_bytes().to_vec();
    // Disk 0, for the archive and the directory.
    end.extend([0; 4]);
    end.extend(count.to_le_bytes());
    end.extend(count.to_le_bytes());
    end.extend(four(directory.len())?.to_le_bytes());
    end.extend(four(at)?.to_le_bytes());
    end.extend([0; 2]);
    out.write_all(&end)
}
