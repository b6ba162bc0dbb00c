//! Downloads into the hub cache, in its own layout.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tpc_diag::{Diagnostic, codes as common};

use super::hub_endpoint::{Hub, RemoteFile, RemoteModel};
use super::lock::Lock;
use super::{codes, space};

/// The number of attempts without progress after which a download ends.
const ATTEMPTS: u32 = 3;
/// The delay before the second attempt; it doubles.
const DELAY: Duration = Duration::from_millis(500);
const BUFFER: usize = 1 << 20;

/// Follows downloads, for example to show a bar.
pub trait Watch {
    /// Starts a file; `at` of its `bytes` are present.
    fn begin(&self, file: &str, at: u64, bytes: u64);
    /// Counts received bytes.
    fn advance(&self, bytes: u64);
    /// Waits for another process that downloads the file.
    fn wait(&self, file: &str);
}

/// A file on its way into the cache.
struct Target<'a> {
    hub: Hub<'a>,
    model: &'a RemoteModel,
    file: &'a RemoteFile,
    /// The repository's folder in the cache.
    folder: PathBuf,
}

fn failed(path: &Path, e: &io::Error) -> Diagnostic {
    let d = Diagnostic::new(
        &common::FILE_ACCESS,
        path.display().to_string(),
        e.to_string(),
    );
    d.help("check permissions and free space, or set HF_HUB_CACHE to another folder")
}

/// Downloads the missing files of a model into the hub cache at `root`. Returns the path of the first file.
///
/// # Errors
/// Returns TPC0451 for a wrong checksum, TPC0452 for a broken connection, TPC0453 if the disk is too small, TPC0402 if
/// the cache cannot be written, and the errors of the connection.
pub fn download(
    hub: Hub<'_>,
    root: &Path,
    model: &RemoteModel,
    watch: &dyn Watch,
) -> Result<PathBuf, Diagnostic> {
    let folder = root.join(model.repository.folder());
    let target = |file| Target {
        hub,
        model,
        file,
        folder: folder.clone(),
    };
    let targets: Vec<Target<'_>> = model.files.iter().map(target).collect();
    enough_space(root, &targets)?;
    for target in &targets {
        if !target.link().is_file() {
            let lock = root
                .join(".locks")
                .join(model.repository.folder())
                .join(format!("{}.lock", target.file.hash));
            let lock = Lock::take(&lock, || watch.wait(&target.file.path))
                .map_err(|e| failed(&lock, &e))?;
            target.fetch(&lock, watch)?;
            target.add_link().map_err(|e| failed(&target.link(), &e))?;
            drop(lock);
        }
    }
    let main = folder.join("refs/main");
    write_whole(&main, model.commit.as_bytes()).map_err(|e| failed(&main, &e))?;
    let first = targets.first().map(Target::link);
    first.ok_or_else(|| {
        Diagnostic::new(
            &codes::NO_SUCH_MODEL,
            model.repository.to_string(),
            "the model has no files",
        )
    })
}

/// Checks that the missing bytes fit on the disk.
fn enough_space(root: &Path, targets: &[Target<'_>]) -> Result<(), Diagnostic> {
    fs::create_dir_all(root).map_err(|e| failed(root, &e))?;
    let missing = targets.iter().map(Target::missing);
    let missing = missing.fold(0u64, u64::saturating_add);
    let Some(free) = space::free(root).filter(|&free| free < missing) else {
        return Ok(());
    };
    let message = format!(
        "{missing} bytes are missing, but only {free} are free at {}",
        root.display()
    );
    let name = targets.first().map_or("", |t| t.file.path.as_str());
    let d = Diagnostic::new(&codes::DISK_SPACE, name.to_owned(), message);
    Err(d.help("free space, or set HF_HUB_CACHE to a folder on another disk"))
}

/// Writes a small file at once, so that readers see the old or the new content.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Two threads may write at once.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let part = path.with_extension(format!("tpc-{}-{n}", std::process::id()));
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}

/// The result of one connection.
enum Attempt {
    Done,
    /// The connection broke after `n` new bytes.
    Broken(u64, Diagnostic),
}

impl Target<'_> {
    fn blob(&self) -> PathBuf {
        self.folder.join("blobs").join(&self.file.hash)
    }

    fn incomplete(&self) -> PathBuf {
        self.folder
            .join("blobs")
            .join(format!("{}.incomplete", self.file.hash))
    }

    fn link(&self) -> PathBuf {
        let snapshot = self.folder.join("snapshots").join(&self.model.commit);
        snapshot.join(&self.file.path)
    }

    fn has_blob(&self) -> bool {
        fs::metadata(self.blob()).is_ok_and(|m| m.is_file() && m.len() == self.file.bytes)
    }

    fn missing(&self) -> u64 {
        if self.link().is_file() || self.has_blob() {
            return 0;
        }
        let present = fs::metadata(self.incomplete()).map_or(0, |m| m.len());
        self.file.bytes.saturating_sub(present)
    }

    /// Adds the link of the snapshot to the blob. Without support for links, the blob moves to the snapshot.
    fn add_link(&self) -> io::Result<()> {
        let link = self.link();
        if link.is_file() {
            return Ok(());
        }
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        let up = "../".repeat(2 + self.file.path.matches('/').count());
        // A link to a missing blob may be there.
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        match symlink(&format!("{up}blobs/{}", self.file.hash), &link) {
            Ok(()) => Ok(()),
            Err(_) => fs::rename(self.blob(), &link),
        }
    }

    /// Downloads the blob, if it is missing. Without a lock, the partial file is this process's own.
    fn fetch(&self, lock: &Lock, watch: &dyn Watch) -> Result<(), Diagnostic> {
        if self.has_blob() {
            return Ok(());
        }
        let path = match lock.is_held() {
            true => self.incomplete(),
            false => self
                .incomplete()
                .with_extension(format!("{}.incomplete", std::process::id())),
        };
        let wrote = |e: io::Error| failed(&path, &e);
        fs::create_dir_all(self.folder.join("blobs")).map_err(wrote)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path);
        let mut part = Part::resume(file.map_err(wrote)?, self.file.bytes).map_err(wrote)?;
        watch.begin(&self.file.path, part.len, self.file.bytes);
        let mut fruitless = 0;
        while let Attempt::Broken(got, why) = self.attempt(&mut part, watch)? {
            fruitless = if got > 0 { 1 } else { fruitless + 1 };
            if fruitless >= ATTEMPTS {
                return Err(self.cut(&part, &why));
            }
            sleep(DELAY * (1 << (fruitless - 1)));
        }
        self.finish(part, &path)
    }

    fn finish(&self, part: Part, path: &Path) -> Result<(), Diagnostic> {
        let hash = part.hash.finalize();
        let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
        if self.file.has_sha256() && hash != self.file.hash {
            let _ = fs::remove_file(path);
            let message = format!(
                "the SHA-256 is {hash}, but the hub names {}",
                self.file.hash
            );
            let d = Diagnostic::new(&codes::CHECKSUM, self.file.path.clone(), message);
            return Err(
                d.help("try again; if it fails again, a proxy or the disk changes the bytes")
            );
        }
        let stored = part.file.sync_all();
        let stored = stored.and_then(|()| fs::rename(path, self.blob()));
        stored.map_err(|e| failed(path, &e))
    }

    fn cut(&self, part: &Part, why: &Diagnostic) -> Diagnostic {
        let message = format!(
            "the download stopped at {} of {} bytes: {}",
            part.len, self.file.bytes, why.message
        );
        let d = Diagnostic::new(&codes::CUT, self.file.path.clone(), message);
        d.help("run the command again: it continues at the last byte")
    }

    /// Receives bytes until the file is complete or the connection breaks.
    ///
    /// # Errors
    /// Returns refusals of the server, changed files, and failed writes.
    fn attempt(&self, part: &mut Part, watch: &dyn Watch) -> Result<Attempt, Diagnostic> {
        if part.len == self.file.bytes {
            return Ok(Attempt::Done);
        }
        let address = self.hub.address(self.model, self.file)?;
        let mut stream = match self.hub.client.stream(&address, part.len) {
            Ok(stream) => stream,
            Err(d) if tpc_fetch::is_interruption(&d) => {
                return Ok(Attempt::Broken(0, d));
            }
            Err(d) => return Err(d),
        };
        let other =
            |etag: &String| self.file.has_sha256() && !etag.eq_ignore_ascii_case(&self.file.hash);
        let other = stream.hub.etag.as_ref().is_some_and(other);
        if other || stream.whole.is_some_and(|n| n != self.file.bytes) {
            let d = Diagnostic::new(
                &codes::CHECKSUM,
                address.display_name(),
                "the server sends another file than the hub lists",
            );
            return Err(d.help("try again; the repository may have changed just now"));
        }
        let wrote = |e: io::Error| failed(&self.incomplete(), &e);
        if stream.first != part.len {
            part.restart().map_err(wrote)?;
            watch.begin(&self.file.path, 0, self.file.bytes);
        }
        let before = part.len;
        let mut buffer = vec![0; BUFFER];
        while part.len < self.file.bytes {
            let most = (self.file.bytes - part.len).min(BUFFER as u64);
            let broken = match stream.read(&mut buffer[..usize::try_from(most).unwrap_or(BUFFER)]) {
                Ok(0) => io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ),
                Ok(n) => {
                    part.add(&buffer[..n]).map_err(wrote)?;
                    watch.advance(n as u64);
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            let d = Diagnostic::new(&codes::CUT, address.display_name(), broken.to_string());
            return Ok(Attempt::Broken(part.len - before, d));
        }
        Ok(Attempt::Done)
    }
}

/// A partial file with the hash of its bytes.
struct Part {
    file: File,
    len: u64,
    hash: Sha256,
}

impl Part {
    /// Reads the bytes that are present. A longer file is emptied.
    fn resume(mut file: File, whole: u64) -> io::Result<Part> {
        let mut hash = Sha256::new();
        let len = file.metadata()?.len();
        if len > whole {
            file.set_len(0)?;
        }
        let mut buffer = vec![0; BUFFER];
        let mut read = 0u64;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => {
                    hash.update(&buffer[..n]);
                    read += n as u64;
                }
            }
        }
        Ok(Part {
            file,
            len: read,
            hash,
        })
    }

    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hash = Sha256::new();
        self.len = 0;
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_: &str, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
