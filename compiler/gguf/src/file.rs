//! Opens a model's files: local files are mapped, headers of remote models are read in ranges (`range`), shards are
//! found by name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use tpc_diag::Diagnostic;

use super::cursor::Endianness;
use super::error::{GgufError, GgufErrorKind};
use super::header::{Header, TensorInfo};
use super::parser;
use super::range::{self, RangeSource};
use super::split::{self, SplitKeys, SplitName};

/// A model: one GGUF file, or all shards of a split model. Local files are mapped read-only.
///
/// Invariant: either every shard with tensors holds all their data, or all shards lack data.
#[derive(Debug)]
pub struct GgufFile {
    header: Header,
    shards: Vec<Shard>,
    has_data: bool,
    missing: Vec<MissingData>,
}

/// One file of a model.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    /// The content; `None` for a remote file, which is read up to its header's end.
    map: Option<Mmap>,
    file_len: u64,
    data_offset: u64,
    has_data: bool,
}

/// Tensor data missing from an unfinished download or copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingData {
    /// The file.
    pub path: PathBuf,
    /// Tensors with missing data.
    pub tensors: usize,
    /// The first such tensor.
    pub first: String,
    /// Missing bytes, including padding.
    pub bytes: u64,
    /// The complete file's length in bytes.
    pub whole: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    /// Either all data or only the header.
    Whole,
    /// Any part of the data.
    Unfinished,
}

impl Shard {
    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes; `u64::MAX` if unknown.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Returns the tensor data's byte offset, which may be the file's end.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Returns the bytes before the tensor data, with padding; `None` for a remote file.
    pub fn header_bytes(&self) -> Option<&[u8]> {
        let map = self.map.as_ref()?;
        let end = usize::try_from(self.data_offset).map_or(map.len(), |n| n.min(map.len()));
        map.get(..end)
    }

    /// True if this file holds tensor data; false for a shard without tensors.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// True if the file continues after the header.
    fn goes_on(&self) -> bool {
        let has_length = self.map.is_none() && self.file_len < u64::MAX;
        self.has_data || (has_length && self.file_len > self.data_offset)
    }

    fn open(path: &Path, data: Data) -> Result<(Shard, Header), GgufError> {
        let name = path.display().to_string();
        let fail = |action, source| GgufError::new(&name, GgufErrorKind::Io { action, source });
        // Opening a pipe would wait for its other end, so check the file type first.
        let attributes = fs::metadata(path).map_err(|e| fail("find the file", e))?;
        if !attributes.is_file() {
            let e = io::Error::new(io::ErrorKind::InvalidInput, kind(&attributes));
            return Err(fail("read the file", e));
        }
        let file = File::open(path).map_err(|e| fail("open the file", e))?;
        let map = map_read_only(&file).map_err(|e| fail("map the file into memory", e))?;
        let file_len = map.len() as u64;
        let header = match data {
            Data::Whole => parser::parse(&map, file_len, &name)?,
            Data::Unfinished => parser::parse_unfinished(&map, file_len, &name)?,
        };
        let has_data = file_len > header.data_offset && !header.tensors().is_empty();
        let shard = Shard {
            path: path.to_owned(),
            map: Some(map),
            file_len,
            data_offset: header.data_offset,
            has_data,
        };
        Ok((shard, header))
    }

    fn open_remote(source: &mut dyn RangeSource) -> Result<(Shard, Header), Diagnostic> {
        let (header, file_len) = range::read_header(source)?;
        let shard = Shard {
            path: PathBuf::from(source.name()),
            map: None,
            file_len,
            data_offset: header.data_offset,
            has_data: false,
        };
        Ok((shard, header))
    }

    fn missing<'t>(&self, tensors: impl Iterator<Item = &'t TensorInfo>) -> Option<MissingData> {
        let (mut count, mut first, mut whole) = (0, None, 0);
        for t in tensors {
            whole = whole.max(t.end());
            if t.end() > self.file_len {
                count += 1;
                first = first.or(Some(&t.name));
            }
        }
        Some(MissingData {
            path: self.path.clone(),
            tensors: count,
            first: first?.clone(),
            bytes: whole - self.file_len,
            whole,
        })
    }
}

fn kind(attributes: &fs::Metadata) -> &'static str {
    if attributes.is_dir() {
        return "it is a directory";
    }
    "it is a pipe or a device"
}

#[expect(
    unsafe_code,
    reason = "mapping a file is unsafe because other processes can change it"
)]
fn map_read_only(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is private to this module and read-only. Model files are written once. If another process
    // changes a mapped file, two reads of the same bytes may differ. The parser tolerates this because it copies the
    // bytes that it checks, and tensor data are plain numbers without invariants. If another process truncates the
    // file, a bus error ends this process, as in every program that maps its input.
    unsafe { Mmap::map(file) }
}

#[cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the same advice on other maps would lose their content"
    )
)]
#[cfg_attr(not(unix), expect(unused_variables, reason = "Unix alone can"))]
fn drop_pages(map: &Mmap, start: usize, len: usize) {
    // SAFETY: the map is never written, so dropped pages are read again from the file with the same content. An error
    // is ignored: the pages then stay in memory.
    #[cfg(unix)]
    let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
}

impl GgufFile {
    /// Opens a model, given its file or any shard.
    ///
    /// Data are mapped, and read on first use.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, a header has a defect ([`super::parse`]), or the shards do not
    /// match (TPC0123 to TPC0127).
    pub fn open(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        GgufFile::open_local(path.as_ref(), Data::Whole)
    }

    /// Opens a model that may be incomplete. A model with [missing data](GgufFile::missing) counts as a bare header.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`GgufFile::open`], except for missing data.
    pub fn open_unfinished(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        GgufFile::open_local(path.as_ref(), Data::Unfinished)
    }

    /// Reads the headers of a remote model, given its file or any shard.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`GgufFile::open`] and of the source.
    pub fn open_elsewhere(source: &mut dyn RangeSource) -> Result<GgufFile, Diagnostic> {
        let path = PathBuf::from(source.name());
        let given = Shard::open_remote(source)?;
        let mut sibling = |name: &str, _: u32| {
            let mut sibling = source.sibling(name)?;
            Shard::open_remote(sibling.as_mut())
        };
        let mut out: GgufFile = GgufFile::join(&path, given, Data::Whole, &mut sibling)?;
        out.missing = missing(&out.shards, &out.header);
        Ok(out)
    }

    fn open_local(path: &Path, data: Data) -> Result<GgufFile, GgufError> {
        let given = Shard::open(path, data)?;
        let mut sibling = |name: &str, count: u32| {
            let sibling = path.with_file_name(name);
            Shard::open(&sibling, data).map_err(|e| match e.kind() {
                GgufErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                    missing_shards(path, count)
                }
                _ => e,
            })
        };
        GgufFile::join(path, given, data, &mut sibling)
    }

    fn join<E: From<GgufError>>(
        path: &Path,
        (shard, header): (Shard, Header),
        data: Data,
        sibling: &mut Sibling<'_, E>,
    ) -> Result<GgufFile, E> {
        let file = header.metadata().file();
        let keys = SplitKeys::read(header.metadata())?;
        match (SplitName::of_path(path), keys) {
            (Some(name), None) if name.count > 1 => Err(split::missing_keys(file, &name).into()),
            (_, None) => GgufFile::new(vec![shard], header, data).map_err(E::from),
            (None, Some(keys)) => Err(split::bad_name(file, path, keys).into()),
            (Some(name), Some(keys)) => {
                keys.check_name(file, &name)?;
                open_split(&name, keys, (shard, header), data, sibling)
            }
        }
    }

    fn new(shards: Vec<Shard>, header: Header, data: Data) -> Result<GgufFile, GgufError> {
        let missing = match data {
            Data::Whole => Vec::new(),
            Data::Unfinished => missing(&shards, &header),
        };
        let has_data = missing.is_empty() && check_data_presence(&shards, &header)?;
        Ok(GgufFile {
            header,
            shards,
            has_data,
            missing,
        })
    }

    /// Returns the header. For a split model: shard 1's header with the tensors of all shards.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the byte order of headers and tensor data.
    pub fn endianness(&self) -> Endianness {
        self.header.endianness
    }

    /// Returns the files, ordered by shard number.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// True if the files hold all tensor data; false for a bare header.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// Returns the files with missing tensor data.
    pub fn missing(&self) -> &[MissingData] {
        &self.missing
    }

    /// True if the model is remote: its data cannot be read.
    pub fn is_elsewhere(&self) -> bool {
        self.shards.iter().any(|s| s.map.is_none())
    }

    /// Returns a tensor's data: [`TensorInfo::bytes`] bytes in the file's byte order; `None` if the model is a bare
    /// header or incomplete.
    pub fn tensor_data(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        let shard = self.shards.get(tensor.shard).filter(|_| self.has_data)?;
        let start = usize::try_from(tensor.offset).ok()?;
        let end = usize::try_from(tensor.end()).ok()?;
        shard.map.as_ref()?.get(start..end)
    }

    /// Drops [`GgufFile::tensor_data`] from this process's memory until the next read, if the system supports it.
    pub fn release(&self, data: &[u8]) {
        for map in self.shards.iter().filter_map(|s| s.map.as_ref()) {
            let start = (data.as_ptr() as usize).wrapping_sub(map.as_ptr() as usize);
            if start < map.len() {
                drop_pages(map, start, data.len().min(map.len() - start));
            }
        }
    }

    /// Drops all data like [`GgufFile::release`].
    pub fn release_all(&self) {
        for map in self.shards.iter().filter_map(|s| s.map.as_ref()) {
            drop_pages(map, 0, map.len());
        }
    }
}

type Sibling<'a, E> = dyn FnMut(&str, u32) -> Result<(Shard, Header), E> + 'a;

fn open_split<E: From<GgufError>>(
    name: &SplitName,
    keys: SplitKeys,
    given: (Shard, Header),
    data: Data,
    sibling: &mut Sibling<'_, E>,
) -> Result<GgufFile, E> {
    let endianness = given.1.endianness;
    let mut given = Some(given);
    let mut shards = Vec::new();
    let mut headers = Vec::new();
    for number in 1..=name.count {
        let already_open = match number == name.number {
            true => given.take(),
            false => None,
        };
        let (shard, header) = match already_open {
            Some(opened) => opened,
            None => {
                let opened = sibling(&name.sibling(number), name.count)?;
                check_sibling(&opened.1, name, number, keys)?;
                opened
            }
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
        return Err(GgufError::new(header.metadata().file(), kind).into());
    }
    GgufFile::new(shards, header, data).map_err(E::from)
}

fn check_sibling(
    header: &Header,
    name: &SplitName,
    number: u32,
    keys: SplitKeys,
) -> Result<(), GgufError> {
    let file = header.metadata().file();
    let name = SplitName {
        number,
        ..name.clone()
    };
    let Some(found) = SplitKeys::read(header.metadata())? else {
        return Err(split::missing_keys(file, &name));
    };
    found.check_name(file, &name)?;
    split::expect_equal(file, "split.tensors.count", &keys.tensors, &found.tensors)
}

fn missing_shards(path: &Path, count: u32) -> GgufError {
    let name = SplitName::of_path(path);
    let siblings =
        (1..=count).filter_map(|n| Some((n, path.with_file_name(name.as_ref()?.sibling(n)))));
    let absent: Vec<(u32, PathBuf)> = siblings.filter(|(_, p)| !p.exists()).collect();
    let kind = GgufErrorKind::MissingShard {
        expected: absent
            .first()
            .map_or_else(String::new, |(_, p)| p.display().to_string()),
        numbers: absent.iter().map(|(n, _)| *n).collect(),
        count,
    };
    GgufError::new(&path.display().to_string(), kind)
}

fn missing(shards: &[Shard], header: &Header) -> Vec<MissingData> {
    if !shards.iter().any(Shard::goes_on) {
        return Vec::new();
    }
    let of = |shard: usize| header.tensors().iter().filter(move |t| t.shard == shard);
    let all = shards.iter().enumerate();
    all.filter_map(|(i, s)| s.missing(of(i))).collect()
}

/// True if the shards hold their data; an error if only some shards with tensors do.
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
