//! Reads whole files and refuses endless ones.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::output::Failure;

/// True if reading ends: a file, or a pipe of this command (`<(…)`, standard input).
fn ends(path: &Path, attributes: &Metadata) -> bool {
    let piped = ["/dev/fd/", "/dev/stdin", "/proc/self/fd/"];
    let is_piped = path
        .to_str()
        .is_some_and(|p| piped.iter().any(|prefix| p.starts_with(prefix)));
    attributes.is_file() || (is_piped && !attributes.is_dir() && !is_character_device(attributes))
}

#[cfg(unix)]
fn is_character_device(attributes: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    attributes.file_type().is_char_device()
}

#[cfg(not(unix))]
fn is_character_device(_: &Metadata) -> bool {
    false
}

/// Reads a file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let failed = |e: io::Error| Failure::file(path, &e);
    let invalid = |what: String| failed(io::Error::new(io::ErrorKind::InvalidInput, what));
    // Opening a named pipe would block until a writer opens it, so check first.
    let attributes = fs::metadata(path).map_err(failed)?;
    if attributes.is_dir() {
        return Err(invalid("the path is a directory".to_owned()));
    }
    if !ends(path, &attributes) {
        return Err(invalid(
            "the path is a pipe or a device, which may never end".to_owned(),
        ));
    }
    let mut out = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(most + 1).read_to_end(&mut out).map_err(failed)?;
    if out.len() as u64 > most {
        return Err(invalid(format!(
            "the file is longer than the limit of {most} bytes"
        )));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let here = std::env::temp_dir();
        for path in [
            here.as_path(),
            Path::new("/dev/zero"),
            Path::new("/nonexistent"),
        ] {
            assert_eq!(read(path, 10).expect_err("refused").status, 2);
        }
        let path = here.join(format!("tpc-regular-{}", std::process::id()));
        fs::write(&path, b"0123456789").expect("a scratch file");
        assert_eq!(read(&path, 10).map(|b| b.len()).ok(), Some(10));
        assert!(read(&path, 9).is_err());
        fs::remove_file(&path).expect("the scratch file");
    }
}
