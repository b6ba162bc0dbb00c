use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{CompiledModule, Nvrtc, NvrtcError, options, report};

/// A folder of compiled modules. The key is a hash of source, options, target and NVRTC version.
///
/// Truncated or changed files are compiled again. A read-only folder stores no new modules.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The version of NVRTC that compiles for all targets and for drivers of CUDA 12.
const PREFERRED: (i32, i32) = (12, 9);

const MARK: &[u8; 8] = b"tpccub1\n";

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Cache {
    /// Creates a cache. The folder need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache {
            folder: folder.into(),
        }
    }

    /// Returns the code of a module that the preferred version of NVRTC compiled, if the folder has it. The library need
    /// not be installed.
    pub fn find(&self, text: &str, target: &str) -> Option<CompiledModule> {
        read(&self.path(PREFERRED, text, target))
    }

    /// Returns the code of a module from the folder, or compiles and stores it.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nvrtc::compile`].
    pub fn compile(
        &self,
        nvrtc: &Nvrtc,
        module: &str,
        text: &str,
        target: &str,
    ) -> Result<CompiledModule, NvrtcError> {
        let path = self.path(nvrtc.version(), text, target);
        if let Some(kept) = read(&path) {
            return Ok(kept);
        }
        let compiled = nvrtc.compile(module, text, target)?;
        // If writing fails, the next call compiles the module again.
        let _ = self.write(&path, &compiled);
        Ok(compiled)
    }

    fn path(&self, version: (i32, i32), text: &str, target: &str) -> PathBuf {
        let (major, minor) = version;
        let options = options(target, version).join(" ");
        let version = format!("{major}.{minor}");
        let key = digest(&[version.as_bytes(), options.as_bytes(), text.as_bytes()]);
        let hex: String = key.iter().map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("{hex}.cubin"))
    }

    fn write(&self, path: &Path, compiled: &CompiledModule) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let lines = compiled.kernels.iter().map(|k| {
            format!(
                "{} {} {} {} {}\n",
                k.registers, k.spilled, k.stack, k.shared, k.kernel
            )
        });
        let report: String = lines.collect();
        let mut bytes = MARK.to_vec();
        bytes.extend(digest(&[report.as_bytes(), &compiled.cubin]));
        bytes.extend((report.len() as u64).to_le_bytes());
        bytes.extend(report.as_bytes());
        bytes.extend(&compiled.cubin);
        let own = path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&own, bytes)?;
        std::fs::rename(&own, path)
    }
}

fn read(path: &Path) -> Option<CompiledModule> {
    let bytes = std::fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MARK)?;
    let (sum, rest) = rest.split_at_checked(32)?;
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (report, cubin) = rest.split_at_checked(len)?;
    if digest(&[report, cubin]) != sum {
        return None;
    }
    let kernel = |line: &str| {
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next()?.parse().ok();
        Some(report::Resources {
            registers: number()?,
            spilled: number()?,
            stack: number()?,
            shared: number()?,
            kernel: words.next()?.to_owned(),
        })
    };
    let kernels = std::str::from_utf8(report).ok()?.lines().map(kernel);
    Some(CompiledModule {
        cubin: cubin.to_vec(),
        kernels: kernels.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_whole_or_not_used() {
        let folder = std::env::temp_dir().join(format!("tpc-cubins-{}", std::process::id()));
        let cache = Cache::new(&folder);
        let path = cache.path((13, 0), "source", "sm_80");
        let others = [
            cache.path((13, 1), "source", "sm_80"),
            cache.path((13, 0), "sources", "sm_80"),
            cache.path((13, 0), "source", "sm_89"),
        ];
        assert!(others.iter().all(|o| *o != path));
        let compiled = CompiledModule {
            cubin: vec![1, 2, 3],
            kernels: vec![report::Resources {
                kernel: "k".into(),
                registers: 32,
                spilled: 0,
                stack: 16,
                shared: 8,
            }],
        };
        cache.write(&path, &compiled).expect("a folder");
        assert_eq!(read(&path), Some(compiled));
        let bytes = std::fs::read(&path).expect("a file");
        for n in 0..bytes.len() {
            std::fs::write(&path, &bytes[..n]).expect("a file");
            assert_eq!(read(&path), None, "cut at {n}");
            let mut changed = bytes.clone();
            changed[n] ^= 1;
            std::fs::write(&path, changed).expect("a file");
            assert_eq!(read(&path), None, "changed at {n}");
        }
        std::fs::remove_dir_all(&folder).expect("a folder");
    }
}
