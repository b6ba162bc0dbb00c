//! Machine code for cards, compiled ahead of time.
//!
//! `kernels/index.ron` lists the modules; their entries follow in the same order. The loader ignores stale code: it
//! uses a module only if it would compile the same source for the same target.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::Entry;
use crate::digest::Digest;
use crate::error::ArtefactError;

pub(crate) const SECTION: &str = "kernels";
const INDEX: &str = "kernels/index.ron";
/// The maximum size of the index, in bytes.
const MAX_BYTES: usize = 1 << 20;
const MAX_MODULES: usize = 1000;
/// The maximum length of a word in the index, in bytes.
const MAX_WORD: usize = 40;

/// A kernel module for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// The record in the index.
    pub record: KernelRecord,
    /// The machine code.
    pub code: Arc<[u8]>,
}

/// A record of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// The target, such as `sm_90a`.
    pub target: String,
    /// The module's name, unique per target.
    pub module: String,
    /// The compiler with its version.
    pub compiler: String,
    /// The minimum driver, as the CUDA version that it must support, such as `12.0`. Format 1 lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The hash of the complete source.
    pub source: Digest,
    /// The hash of the code.
    pub hash: Digest,
    /// The size of the code in bytes.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    modules: Vec<KernelRecord>,
}

impl KernelModule {
    /// Creates a module. `source` is the hash of the source.
    pub fn new(
        target: &str,
        module: &str,
        compiler: &str,
        source: Digest,
        code: Arc<[u8]>,
    ) -> KernelModule {
        KernelModule {
            record: KernelRecord {
                target: target.to_owned(),
                module: module.to_owned(),
                compiler: compiler.to_owned(),
                driver: None,
                source,
                hash: Digest::of(&code),
                bytes: code.len() as u64,
            },
            code,
        }
    }

    /// Sets the minimum driver.
    #[must_use]
    pub fn with_driver(mut self, driver: Option<String>) -> KernelModule {
        self.record.driver = driver;
        self
    }

    /// Returns the name of the archive entry with the module's code.
    pub fn entry(&self) -> String {
        self.record.entry()
    }
}

impl KernelRecord {
    fn entry(&self) -> String {
        format!("{SECTION}/{}/{}.cubin", self.target, self.module)
    }
}

fn wrong(what: impl Into<String>) -> ArtefactError {
    ArtefactError::Kernels(what.into())
}

fn is_word(word: &str) -> bool {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=MAX_WORD).contains(&word.len()) && word.bytes().all(known)
}

fn index(modules: &[KernelModule]) -> Result<String, ArtefactError> {
    let pretty = ron::ser::PrettyConfig::new()
        .new_line("\n")
        .struct_names(false);
    let index = Index {
        modules: modules.iter().map(|m| m.record.clone()).collect(),
    };
    ron::ser::to_string_pretty(&index, pretty).map_err(|e| wrong(e.to_string()))
}

type Named<'a> = (String, Cow<'a, [u8]>);

/// Returns the entries of the section; empty without modules.
pub(crate) fn entries(modules: &[KernelModule]) -> Result<Vec<Named<'_>>, ArtefactError> {
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let text = index(modules)?;
    records(text.as_bytes())?;
    let mut out = vec![(INDEX.to_owned(), text.into_bytes().into())];
    for module in modules {
        out.push((module.entry(), module.code[..].into()));
    }
    Ok(out)
}

fn records(bytes: &[u8]) -> Result<Vec<KernelRecord>, ArtefactError> {
    if bytes.len() > MAX_BYTES {
        return Err(wrong(format!("the index is longer than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        wrong(format!("byte {at} of the index is not UTF-8 text"))
    })?;
    let index: Index = ron::from_str(text).map_err(|e| {
        let shown: String = e.to_string().escape_default().take(200).collect();
        wrong(format!("the index: {shown}"))
    })?;
    if index.modules.is_empty() || index.modules.len() > MAX_MODULES {
        return Err(wrong(format!(
            "the index has {} modules: 1 to {MAX_MODULES} are allowed",
            index.modules.len()
        )));
    }
    let mut seen = BTreeSet::new();
    for record in &index.modules {
        if !is_word(&record.target) || !is_word(&record.module) {
            return Err(wrong(
                "a target or module has an invalid name: use lower-case letters, digits and underscores",
            ));
        }
        let plain = |c: char| c.is_ascii_graphic() || c == ' ';
        if record.compiler.len() > MAX_WORD || !record.compiler.chars().all(plain) {
            return Err(wrong(format!(
                "{} has an invalid compiler name",
                record.entry()
            )));
        }
        let version =
            |d: &String| d.len() <= 8 && d.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !record.driver.iter().all(version) {
            return Err(wrong(format!(
                "{} has an invalid minimum driver",
                record.entry()
            )));
        }
        if !seen.insert(record.entry()) {
            return Err(wrong(format!("{} is in the index twice", record.entry())));
        }
    }
    Ok(index.modules)
}

/// Reads the modules from `entries`: all entries after the programs.
pub(crate) fn read(entries: &[Entry<'_>]) -> Result<Vec<KernelModule>, ArtefactError> {
    let Some((first, rest)) = entries.split_first().filter(|(e, _)| e.name == INDEX) else {
        return Err(wrong(format!("{INDEX} is missing before the modules")));
    };
    let records = records(first.data)?;
    if records.len() != rest.len() {
        return Err(wrong(format!(
            "the index has {} modules, and the file has {}",
            records.len(),
            rest.len()
        )));
    }
    let module = |(record, entry): (KernelRecord, &Entry<'_>)| {
        let name = record.entry();
        if entry.name != name {
            return Err(wrong(format!("found {}, expected {name}", entry.name)));
        }
        if entry.data.len() as u64 != record.bytes {
            return Err(wrong(format!(
                "{name} has {} bytes, but the index says {}",
                entry.data.len(),
                record.bytes
            )));
        }
        if Digest::of(entry.data) != record.hash {
            return Err(wrong(format!("the hash of {name} differs from the index")));
        }
        if !is_code(entry.data) {
            return Err(wrong(format!("{name} is not machine code for cards")));
        }
        Ok(KernelModule {
            record,
            code: Arc::from(entry.data),
        })
    };
    records.into_iter().zip(rest).map(module).collect()
}

/// True if the bytes begin like a CUDA ELF file: 64 bits, little-endian, machine 190.
fn is_code(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01") && bytes.get(18..20) == Some(&[190, 0])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn code(n: u8) -> Arc<[u8]> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 190;
        bytes[63] = n;
        bytes.into()
    }

    pub(crate) fn modules() -> Vec<KernelModule> {
        let of = |target: &str, module: &str, n| {
            KernelModule::new(target, module, "NVRTC 13.0", Digest::of(b"source"), code(n))
        };
        vec![
            of("sm_80", "matmul", 1),
            of("sm_80", "norm", 2),
            of("sm_90a", "matmul", 3),
        ]
    }

    fn refused(entries: &[(String, Vec<u8>)]) -> String {
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|(name, data)| Entry { name, data })
            .collect();
        match read(&entries) {
            Err(ArtefactError::Kernels(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_section_is_read_as_it_was_written_or_not_at_all() {
        let modules = modules();
        let written = entries(&modules).expect("a section");
        let owned: Vec<(String, Vec<u8>)> = (written.into_iter())
            .map(|(n, d)| (n, d.into_owned()))
            .collect();
        let all: Vec<Entry<'_>> = owned
            .iter()
            .map(|(name, data)| Entry { name, data })
            .collect();
        assert_eq!(read(&all).expect("the same"), modules);

        let text = String::from_utf8(owned[0].1.clone()).expect("text");
        let with = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}: {text}");
            let mut changed = owned.clone();
            changed[0].1 = text.replacen(from, to, 1).into_bytes();
            refused(&changed)
        };
        assert!(with("\"norm\"", "\"../norm\"").contains("invalid name"));
        assert!(with("\"norm\"", "\"matmul\"").contains("twice"));
        assert!(with("\"norm\"", "\"rope\"").contains("expected kernels/sm_80/rope.cubin"));
        assert!(with("bytes: 64", "bytes: 65").contains("the index says 65"));
        assert!(with("NVRTC 13.0", "NVRTC \\u{1b}[31m").contains("compiler"));
        assert!(with("modules", "modulos").contains("the index"));
        assert!(with("(", "(colour: 1,").contains("the index"));

        let mut other = owned.clone();
        other[2].1[63] ^= 1;
        assert!(refused(&other).contains("the hash of"));
        assert!(refused(&owned[..3]).contains("and the file has 2"));
        assert!(refused(&owned[1..]).contains("kernels/index.ron is missing"));
        let mut swapped = owned;
        swapped.swap(1, 2);
        assert!(refused(&swapped).contains("expected kernels/"));
        let text = KernelModule::new("sm_80", "m", "x", Digest::of(b""), Arc::from(&b"text"[..]));
        let written = entries(std::slice::from_ref(&text)).expect("a section");
        let written: Vec<_> = written
            .into_iter()
            .map(|(n, d)| (n, d.into_owned()))
            .collect();
        assert!(refused(&written).contains("not machine code"));
        assert!(entries(&[]).expect("none").is_empty());
        entries(&[text.clone(), text]).expect_err("two of one name");
    }
}
