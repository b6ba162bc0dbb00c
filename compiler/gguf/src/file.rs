//! Opening the file or files of a model.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::cursor::Endianness;
use super::error::{GgufError, GgufErrorKind};
use super::header::{Header, TensorInfo};
use super::parser;
use super::split::{self, SplitKeys, SplitName};

/// A model on disk: one GGUF file, or all the shards of a split one, mapped read-only.
///
/// Invariant: either no shard with tensors has data, or each has all of its data.
#[derive(Debug)]
pub struct GgufFile {
    header: Header,
    shards: Vec<Shard>,
    has_data: bool,
}

/// One file of a model.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    map: Mmap,
    data_offset: u64,
    has_data: bool,
}

impl Shard {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length in bytes.
    pub fn file_len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes from the file's start to its tensor data section, which may be the file's end.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Whether this file holds tensor data. A shard without tensors holds none.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    fn open(path: &Path) -> Result<(Shard, Header), GgufError> {
        let name = path.display().to_string();
        let fail = |action, source| GgufError::new(&name, GgufErrorKind::Io { action, source });
        // Opening a pipe would wait for its other end, so look before opening.
        let attributes = fs::metadata(path).map_err(|e| fail("find the file", e))?;
        if !attributes.is_file() {
            let e = io::Error::new(io::ErrorKind::InvalidInput, "it is a directory or a device");
            return Err(fail("read the file", e));
        }
        let file = File::open(path).map_err(|e| fail("open the file", e))?;
        let map = map_read_only(&file).map_err(|e| fail("map the file into memory", e))?;
        let header = parser::parse(&map, map.len() as u64, &name)?;
        let has_data = map.len() as u64 > header.data_offset && !header.tensors().is_empty();
        let shard = Shard {
            path: path.to_owned(),
            map,
            data_offset: header.data_offset,
            has_data,
        };
        Ok((shard, header))
    }
}

#[expect(
    unsafe_code,
    reason = "mapping a file is unsafe because other processes can change it"
)]
fn map_read_only(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is private to this module and read-only. Model files are written once; should another process
    // change one while it is mapped, the bytes read may differ between reads, which the parser tolerates because it
    // copies what it checks, and tensor data are plain numbers without invariants. Truncation meanwhile ends the
    // process with a bus error, as with every program that maps its input.
    unsafe { Mmap::map(file) }
}

impl GgufFile {
    /// Opens a model, given the path of its file or of any of its shards.
    ///
    /// Only headers are read. The data are mapped, and read when used.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, a defect of a header ([`super::parse`]), or shards that are missing, misnamed or do
    /// not belong together (TPC0123 to TPC0127).
    pub fn open(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        let path = path.as_ref();
        let (shard, header) = Shard::open(path)?;
        let file = header.metadata().file();
        let keys = SplitKeys::read(header.metadata())?;
        match (SplitName::of_path(path), keys) {
            (Some(name), None) if name.count > 1 => Err(split::missing_keys(file, &name)),
            (_, None) => Ok(GgufFile {
                has_data: shard.has_data,
                header,
                shards: vec![shard],
            }),
            (None, Some(keys)) => Err(split::bad_name(file, path, keys)),
            (Some(name), Some(keys)) => {
                keys.check_name(file, &name)?;
                open_split(path, &name, keys, shard, header)
            }
        }
    }

    /// The header. That of a split model is the header of shard 1 with the tensors of all shards.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The byte order of the headers and of the tensor data.
    pub fn endianness(&self) -> Endianness {
        self.header.endianness
    }

    /// The files, in the order of their numbers.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Whether the files hold the tensor data; `false` for a bare header.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// The data of a tensor of this model, [`TensorInfo::bytes`] long, in the file's byte order.
    ///
    /// `None` when the model is a bare header.
    pub fn tensor_data(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        let shard = self.shards.get(tensor.shard)?;
        let start = usize::try_from(tensor.offset).ok()?;
        let end = usize::try_from(tensor.end()).ok()?;
        shard.map.get(start..end)
    }
}

/// Opens the other shards of a model, given one of them at `path`, and joins all.
fn open_split(
    path: &Path,
    name: &SplitName,
    keys: SplitKeys,
    given: Shard,
    given_header: Header,
) -> Result<GgufFile, GgufError> {
    let endianness = given_header.endianness;
    let mut given = Some((given, given_header));
    let mut shards = Vec::new();
    let mut headers = Vec::new();
    for number in 1..=name.count {
        let already_open = if number == name.number {
            given.take()
        } else {
            None
        };
        let (shard, header) = match already_open {
            Some(opened) => opened,
            None => open_sibling(path, name, number, keys)?,
        };
        split::expect_equal(
            header.metadata().file(),
            "byte order",
            order(endianness),
            order(header.endianness),
        )?;
        shards.push(shard);
        headers.push(header);
    }
    let mut headers = headers.into_iter();
    let first = headers
        .next()
        .expect("invariant: a split name counts at least one shard");
    let header = Header::join(first, headers)?;
    let found = header.tensors().len() as u64;
    if found != keys.tensors {
        let kind = GgufErrorKind::SplitTensorCount {
            expected: keys.tensors,
            found,
        };
        return Err(GgufError::new(header.metadata().file(), kind));
    }
    let has_data = check_data_presence(&shards, &header)?;
    Ok(GgufFile {
        header,
        shards,
        has_data,
    })
}

fn open_sibling(
    path: &Path,
    name: &SplitName,
    number: u32,
    keys: SplitKeys,
) -> Result<(Shard, Header), GgufError> {
    let sibling = path.with_file_name(name.sibling(number));
    let (shard, header) = Shard::open(&sibling).map_err(|e| match e.kind() {
        GgufErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let expected = sibling.display().to_string();
            let kind = GgufErrorKind::MissingShard {
                expected,
                number,
                count: name.count,
            };
            GgufError::new(&path.display().to_string(), kind)
        }
        _ => e,
    })?;
    let file = header.metadata().file();
    let sibling_name = SplitName {
        number,
        ..name.clone()
    };
    let Some(found) = SplitKeys::read(header.metadata())? else {
        return Err(split::missing_keys(file, &sibling_name));
    };
    found.check_name(file, &sibling_name)?;
    split::expect_equal(file, "split.tensors.count", &keys.tensors, &found.tensors)?;
    Ok((shard, header))
}

/// Whether the shards hold their data; an error if only some of those with tensors do.
fn check_data_presence(shards: &[Shard], header: &Header) -> Result<bool, GgufError> {
    let Some(with) = shards.iter().find(|s| s.has_data) else {
        return Ok(false);
    };
    let mut has_tensors = vec![false; shards.len()];
    for tensor in header.tensors() {
        has_tensors[tensor.shard] = true;
    }
    match shards
        .iter()
        .zip(has_tensors)
        .find(|(s, has_tensors)| *has_tensors && !s.has_data)
    {
        None => Ok(true),
        Some((without, _)) => {
            let kind = GgufErrorKind::MixedShardData {
                with: with.path.display().to_string(),
            };
            Err(GgufError::new(&without.path.display().to_string(), kind))
        }
    }
}

fn order(endianness: Endianness) -> &'static str {
    match endianness {
        Endianness::Little => "little-endian",
        Endianness::Big => "big-endian",
    }
}
