//! Guesses the format of files that are not GGUF.

const UNKNOWN: &str = "convert the model to GGUF (llama.cpp's convert_hf_to_gguf.py), or download the .gguf file again";
const CONVERT: &str = "convert the model to GGUF: python convert_hf_to_gguf.py DIRECTORY (of llama.cpp), or download a \
                       published .gguf file";
const OLD: &str = "llama.cpp no longer converts files from before August 2023: convert the original model, or download \
                   a published .gguf file";
const UNPACK: &str = "unpack the archive, and give the .gguf file inside";
const AGAIN: &str = "download the file from its own address, not from its page: on Hugging Face the address contains \
                     /resolve/main/, and gated models need a token (HF_TOKEN)";
const POINTER: &str = "fetch the file itself: git lfs pull, or download it from its page";

/// A format other than GGUF, recognised by its first bytes.
struct Lookalike {
    magic: &'static [u8],
    what: &'static str,
    cure: &'static str,
}

const fn looks(magic: &'static [u8], what: &'static str, cure: &'static str) -> Lookalike {
    Lookalike { magic, what, cure }
}

const PAGE: &str = "a web page, probably an error page saved in place of the download";
const SAFETENSORS: &str = "a safetensors file";
const JSON: &str = "JSON, such as a model's configuration or index";
const CAPTURE: &str = "a captured graph in JSON lines";
const TEXT: &str = "text, such as a server's message saved in place of the download";
const EMPTY: &str = "an empty or unfinished download (it begins with zeros)";
const ONNX: &str = "an ONNX model";

const MAGICS: &[Lookalike] = &[
    looks(b"lmgg", "a GGML file from before GGUF (magic `ggml`)", OLD),
    looks(b"fmgg", "a GGMF file from before GGUF (magic `ggmf`)", OLD),
    looks(b"tjgg", "a GGJT file from before GGUF (magic `ggjt`)", OLD),
    looks(b"algg", "a GGLA LoRA adapter from before GGUF", OLD),
    looks(
        b"PK\x03\x04",
        "a zip archive, such as a PyTorch checkpoint",
        "for a PyTorch checkpoint (.bin, .pt, .pth), convert the model: python convert_hf_to_gguf.py DIRECTORY (of llama.cpp); for another archive, unpack it and give the .gguf file",
    ),
    looks(
        b"\x80\x02",
        "a Python pickle, such as an old PyTorch checkpoint",
        CONVERT,
    ),
    looks(b"\x1f\x8b", "a gzip archive", UNPACK),
    looks(b"\x28\xb5\x2f\xfd", "a zstd archive", UNPACK),
    looks(b"\xfd7zXZ\0", "an xz archive", UNPACK),
    looks(b"BZh", "a bzip2 archive", UNPACK),
    looks(b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    looks(b"Rar!", "a rar archive", UNPACK),
    looks(b"\x89HDF", "an HDF5 file", CONVERT),
    looks(
        b"version https://git-lfs",
        "a Git LFS pointer: the file itself was not downloaded",
        POINTER,
    ),
    looks(
        b"FUGG",
        "a GGUF file whose magic was byte-swapped",
        "download or copy the file again: its words are byte-swapped",
    ),
    looks(b"\x7fELF", "a program", "give the model's .gguf file"),
    looks(b"%PDF", "a PDF document", "give the model's .gguf file"),
    looks(
        b"\0\0\0\0",
        EMPTY,
        "wait for the download to finish, or start it again: download programs may reserve the file's space first",
    ),
];

const OTHERS: &[(&str, &str)] = &[
    (PAGE, AGAIN),
    (TEXT, AGAIN),
    (SAFETENSORS, CONVERT),
    (
        ONNX,
        "tpc reads only GGUF: convert the original model with convert_hf_to_gguf.py (of llama.cpp)",
    ),
    (
        JSON,
        "give the model's .gguf file; convert a folder of safetensors with convert_hf_to_gguf.py (of llama.cpp)",
    ),
    (CAPTURE, "plan it as a graph: tpc plan --graph FILE"),
];

pub(super) fn describe(bytes: &[u8]) -> Option<&'static str> {
    if is_safetensors(bytes) {
        return Some(SAFETENSORS);
    }
    if let Some(known) = MAGICS.iter().find(|m| bytes.starts_with(m.magic)) {
        return Some(known.what);
    }
    // An ONNX model is a protobuf message that begins with its version and producer.
    if let [8, 1..=20, 0x12, ..] = bytes {
        return Some(ONNX);
    }
    let head = bytes.get(..512).unwrap_or(bytes);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let head = head.trim_ascii_start().to_ascii_lowercase();
    if [&b"<!doctype"[..], b"<html", b"<?xml", b"<head", b"<error"]
        .iter()
        .any(|m| head.starts_with(m))
    {
        return Some(PAGE);
    }
    if head.starts_with(b"{\"id\":") || head.starts_with(b"{ \"id\":") {
        return Some(CAPTURE);
    }
    if head.starts_with(b"{") || head.starts_with(b"[") {
        return Some(JSON);
    }
    let is_text = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
    (head.len() >= 8 && head.iter().all(is_text)).then_some(TEXT)
}

pub(super) fn cure(looks_like: Option<&str>) -> &'static str {
    let Some(what) = looks_like else {
        return UNKNOWN;
    };
    let magic = MAGICS.iter().find(|m| m.what == what).map(|m| m.cure);
    let other = || {
        OTHERS
            .iter()
            .find(|(w, _)| *w == what)
            .map(|(_, cure)| *cure)
    };
    magic.or_else(other).unwrap_or(UNKNOWN)
}

/// Recognises safetensors: a little-endian u64 length of at most 100 MB, then a JSON object.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    (2..=100_000_000).contains(&u64::from_le_bytes(*length)) && rest.first() == Some(&b'{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guess_has_a_cure() {
        let first: Vec<&[u8]> = vec![
            b"<!DOCTYPE html><html>",
            b"\n  <HTML>",
            b"\xef\xbb\xbf<?xml version=\"1.0\"?><Error/>",
            b"Entry not found, sorry",
            b"{\"metadata\": {}}",
            b"{\"id\":0,\"name\":\"a\"}",
            b"\x08\x07\x12\x07pytorch",
            b"\x10\0\0\0\0\0\0\0{\"a\":1}",
        ];
        for bytes in first.into_iter().chain(MAGICS.iter().map(|m| m.magic)) {
            let what = describe(bytes);
            assert!(what.is_some(), "{bytes:02x?}");
            assert!(cure(what) != UNKNOWN, "{what:?}");
        }
        assert_eq!(describe(b"\x01\x02\x03\x04\x05\x06\x07\x08"), None);
    }
}
