//! Tests of headers read in ranges, and of incomplete files.

use tpc_diag::Diagnostic;
use tpc_ir::DType;

use super::super::{GgufFile, GgufWriter, RangeSource, StrList};
use super::shards::shard;
use super::{Scratch, bytes_of};

struct Shelf {
    name: String,
    files: Vec<(String, Vec<u8>)>,
    says: Option<u64>,
    reads: Vec<u64>,
}

impl Shelf {
    fn new(name: &str, files: &[(&str, Vec<u8>)]) -> Shelf {
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(n, b)| ((*n).to_owned(), b.clone()))
            .collect();
        let says = files
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, b)| b.len() as u64);
        Shelf {
            name: name.to_owned(),
            files,
            says,
            reads: Vec::new(),
        }
    }
}

impl RangeSource for Shelf {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic> {
        let (_, file) = self.files.iter().find(|(n, _)| *n == self.name).unwrap();
        let rest = &file[usize::try_from(from).unwrap().min(file.len())..];
        let part = &rest[..rest.len().min(usize::try_from(len).unwrap())];
        to.extend_from_slice(part);
        self.reads.push(len);
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        self.says
    }

    fn sibling(&self, name: &str) -> Result<Box<dyn RangeSource>, Diagnostic> {
        let files: Vec<(&str, Vec<u8>)> = self
            .files
            .iter()
            .map(|(n, b)| (n.as_str(), b.clone()))
            .collect();
        Ok(Box::new(Shelf::new(name, &files)))
    }
}

fn long() -> Vec<u8> {
    let mut w = GgufWriter::new("long");
    let tokens: Vec<String> = (0..400_000).map(|i| format!("token{i}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    w.meta("general.architecture", "llama");
    w.meta(
        "tokenizer.ggml.tokens",
        tokens.into_iter().collect::<StrList>(),
    );
    w.tensor("t", DType::F32, &[1024, 1024]);
    bytes_of(&w)
}

#[test]
fn a_header_elsewhere_is_read_as_far_as_it_goes() {
    let bytes = long();
    for says in [Some(bytes.len() as u64), None] {
        let mut shelf = Shelf::new("m.gguf", &[("m.gguf", bytes.clone())]);
        shelf.says = says;
        let file = GgufFile::open_elsewhere(&mut shelf).unwrap();
        assert!(file.is_elsewhere() && !file.has_data());
        let offset = file.header().data_offset;
        let read: u64 = shelf.reads.iter().sum();
        assert!(
            read >= offset && read < 2 * offset + (2 << 20),
            "{read} of {offset}"
        );
        assert!(shelf.reads.len() > 2, "{:?}", shelf.reads);
        assert!(file.tensor_data(&file.header().tensors()[0]).is_none());
    }
}

#[test]
fn data_that_are_missing_elsewhere_are_told_where_the_length_is_known() {
    let bytes = long();
    let missing = |len: usize, says: Option<u64>| {
        let mut shelf = Shelf::new("m.gguf", &[("m.gguf", bytes[..len].to_vec())]);
        shelf.says = says;
        let file = GgufFile::open_elsewhere(&mut shelf).unwrap();
        file.missing().first().map(|m| (m.tensors, m.bytes))
    };
    let cut = bytes.len() - 1000;
    assert_eq!(missing(cut, Some(cut as u64)), Some((1, 1000)));
    assert_eq!(missing(bytes.len(), Some(bytes.len() as u64)), None);
    assert_eq!(missing(cut, None), None);
}

#[test]
fn what_a_source_says_of_its_length_is_not_believed() {
    let bytes = long();
    // The file ends inside its header, for any reported length.
    for says in [Some(u64::MAX), Some(bytes.len() as u64), None] {
        let mut shelf = Shelf::new("m.gguf", &[("m.gguf", bytes[..1_500_000].to_vec())]);
        shelf.says = says;
        let d = GgufFile::open_elsewhere(&mut shelf).unwrap_err();
        assert!(["TPC0103", "TPC0105"].contains(&d.code.id), "{d}");
    }
    // A count that the file cannot hold is refused before more is read.
    let mut hostile = bytes[..2_000_000].to_vec();
    hostile[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let mut shelf = Shelf::new("m.gguf", &[("m.gguf", hostile)]);
    shelf.says = Some(1 << 40);
    let d = GgufFile::open_elsewhere(&mut shelf).unwrap_err();
    assert_eq!((d.code.id, shelf.reads.len()), ("TPC0105", 1), "{d}");
}

struct Endless;

impl RangeSource for Endless {
    fn name(&self) -> &str {
        "endless.gguf"
    }

    fn read(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic> {
        if from == 0 {
            to.extend_from_slice(b"GGUF\x03\0\0\0");
            to.extend_from_slice(&0u64.to_le_bytes());
            to.extend_from_slice(&1u64.to_le_bytes());
            to.extend_from_slice(&1u64.to_le_bytes());
            to.extend_from_slice(b"k\x08\0\0\0");
            to.extend_from_slice(&(1u64 << 50).to_le_bytes());
        }
        to.resize(usize::try_from(from + len).unwrap(), b'x');
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        None
    }

    fn sibling(&self, _: &str) -> Result<Box<dyn RangeSource>, Diagnostic> {
        Ok(Box::new(Endless))
    }
}

#[test]
fn a_header_that_never_ends_is_given_up() {
    let d = GgufFile::open_elsewhere(&mut Endless).unwrap_err();
    assert_eq!(d.code.id, "TPC0104", "{d}");
    assert!(d.to_string().contains("268435456"), "{d}");
}

#[test]
fn any_shard_elsewhere_opens_the_model() {
    let named: Vec<(String, Vec<u8>)> = (1..=3)
        .map(|n| (format!("m-{n:05}-of-00003.gguf"), bytes_of(&shard(n, 3, 3))))
        .collect();
    let files: Vec<(&str, Vec<u8>)> = named.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    for (name, _) in &files {
        let mut shelf = Shelf::new(name, &files);
        let file = GgufFile::open_elsewhere(&mut shelf).unwrap();
        assert_eq!((file.shards().len(), file.header().tensors().len()), (3, 3));
    }
}

#[test]
fn a_file_that_is_not_whole_says_what_it_lacks() {
    let dir = Scratch::new();
    let mut w = GgufWriter::new("m");
    w.meta("general.architecture", "llama");
    for name in ["a", "b", "c"] {
        w.tensor(name, DType::F32, &[8, 8]);
    }
    let bytes = bytes_of(&w);
    let whole = GgufFile::open_unfinished(dir.file("whole.gguf", &bytes)).unwrap();
    assert!(whole.missing().is_empty() && whole.has_data());
    let start = whole.header().tensors()[1].offset;
    let cut = dir.file("cut.gguf", &bytes[..usize::try_from(start).unwrap() + 1]);
    assert_eq!(GgufFile::open(&cut).unwrap_err().code().id, "TPC0122");
    let cut = GgufFile::open_unfinished(&cut).unwrap();
    let [missing] = cut.missing() else {
        panic!("{:?}", cut.missing())
    };
    assert_eq!(
        (missing.tensors, missing.first.as_str(), missing.bytes),
        (2, "b", 511)
    );
    assert!(!cut.has_data());
    assert!(
        cut.header()
            .tensors()
            .iter()
            .all(|t| cut.tensor_data(t).is_none())
    );
    let offset = usize::try_from(whole.header().data_offset).unwrap();
    let bare = GgufFile::open_unfinished(dir.file("bare.gguf", &bytes[..offset])).unwrap();
    assert!(bare.missing().is_empty());
}

#[test]
fn missing_shards_are_all_named() {
    let dir = Scratch::new();
    let first = dir.file("m-00001-of-00005.gguf", &bytes_of(&shard(1, 5, 5)));
    dir.file("m-00003-of-00005.gguf", &bytes_of(&shard(3, 5, 5)));
    let e = GgufFile::open(&first).unwrap_err();
    assert_eq!(e.code().id, "TPC0123");
    assert!(
        e.to_string().contains("shards 2, 4 and 5 of 5 are missing"),
        "{e}"
    );
}
