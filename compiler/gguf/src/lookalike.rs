//! Guesses at the format of files that are not GGUF, for messages.

/// The format that the first bytes of a file suggest; `None` if no known format begins so.
pub(super) fn describe(bytes: &[u8]) -> Option<&'static str> {
    const MAGICS: &[(&[u8], &str)] = &[
        (b"lmgg", "a GGML file from before GGUF (magic `ggml`)"),
        (b"fmgg", "a GGMF file from before GGUF (magic `ggmf`)"),
        (b"tjgg", "a GGJT file from before GGUF (magic `ggjt`)"),
        (b"algg", "a GGLA LoRA adapter from before GGUF"),
        (b"PK\x03\x04", "a zip archive, as PyTorch checkpoints are"),
        (
            b"\x80\x02",
            "a Python pickle, as old PyTorch checkpoints are",
        ),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x89HDF", "an HDF5 file"),
        (
            b"version https://git-lfs",
            "a Git LFS pointer: the file itself was not downloaded",
        ),
        (
            b"<!DOCTYPE",
            "a web page, probably an error page saved in place of the download",
        ),
        (
            b"<html",
            "a web page, probably an error page saved in place of the download",
        ),
        (b"FUGG", "a GGUF file whose magic was byte-swapped"),
        (
            b"\0\0\0\0",
            "an empty or unfinished download (it begins with zeros)",
        ),
    ];
    if is_safetensors(bytes) {
        return Some("a safetensors file");
    }
    MAGICS
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|&(_, what)| what)
}

/// safetensors: a little-endian u64 length of at most 100 MB, then a JSON object.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    (2..=100_000_000).contains(&u64::from_le_bytes(*length)) && rest.first() == Some(&b'{')
}
