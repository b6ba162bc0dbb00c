//! Fuzz targets of tpc's parsers as functions; a target passes if it returns.
//!
//! With a nightly compiler and cargo-fuzz, from the folder `tests`:
//!
//! ```text
//! cargo +nightly fuzz run --features libfuzzer tpir_parse fuzz/corpus/tpir filetests
//! cargo +nightly fuzz run --features libfuzzer gguf_parse fuzz/corpus/gguf
//! cargo +nightly fuzz run --features libfuzzer artefact_read fuzz/corpus/artefact data/artefacts
//! ```
//!
//! On stable, known inputs run through the same functions:
//!
//! ```text
//! cargo run -p tpc-fuzz --bin replay -- tpir tests/filetests
//! ```
#![deny(unsafe_code)]

use tpc_ir::{text, verify};

/// A target's name and function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 3] = [("tpir", tpir), ("gguf", gguf), ("artefact", artefact)];

/// Parses a text. The parser must not panic, and errors must point into the text. A parsed graph must verify or be
/// refused, and its printed text must parse to the same graph.
pub fn tpir(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    match text::parse(source) {
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(source.get(error.span.range()).is_some(), "{error:?}");
                assert!(!error.to_string().is_empty() && !error.help().is_empty());
            }
        }
        Ok(parsed) => {
            let printed = text::print(&parsed.graph);
            let again = text::parse(&printed.text).expect("what was printed parses");
            assert_eq!(text::print(&again.graph), printed);
            match verify::verify(&parsed.graph) {
                Ok(_) => assert_eq!(again.graph, parsed.graph),
                Err(errors) => {
                    for error in errors {
                        assert!(parsed.spans.get(error.entity).is_some(), "{error}");
                    }
                }
            }
        }
    }
}

/// Parses a GGUF header, whole or cut off. The parser must not panic.
pub fn gguf(data: &[u8]) {
    for len in [data.len() as u64, u64::MAX] {
        if let Err(error) = tpc_gguf::parse(data, len, "fuzz.gguf") {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Reads an artefact without panicking. Writing and reading it again must give the same artefact. Texts are easier to
/// mutate than an archive's checksums, so other bytes are split at a line `---` into manifest and program.
pub fn artefact(data: &[u8]) {
    use tpc_artefact::{Artefact, Entry, MAIN, write_archive};
    use tpc_ir::program::StorageFormat;
    let formats = [
        StorageFormat::of_granules("rows16"),
        StorageFormat::of_blocks("planes"),
    ];
    let check = |data: &[u8]| match Artefact::read(data, &formats) {
        Ok(artefact) => {
            let bytes = artefact.to_bytes().expect("what was read can be written");
            assert_eq!(Artefact::read(&bytes, &formats), Ok(artefact));
        }
        Err(e) => assert!(!e.to_string().is_empty() && !e.help().is_empty()),
    };
    check(data);
    let border = b"\n---\n";
    let at = data.windows(border.len()).position(|w| w == border);
    let Some(at) = at else { return };
    let entry = |name, data| Entry { name, data };
    let entries = [
        entry("manifest.ron", &data[..at]),
        entry(MAIN, &data[at + border.len()..]),
    ];
    let mut packed = Vec::new();
    write_archive(&mut packed, &entries).expect("the names are an artefact's");
    check(&packed);
}
