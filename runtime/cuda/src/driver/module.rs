use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Kernels that are compiled together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name of the module in diagnostics.
    pub name: String,
    /// CUDA C++ without includes, to follow the [prelude](crate::kernels::PRELUDE). `KERNEL(name, parameters)` declares
    /// a kernel.
    pub source: Arc<str>,
    /// For each kernel, the source with only this kernel, so that drivers can compile only kernels in use. Empty if the
    /// source is not split.
    pub kernel_sources: BTreeMap<String, Arc<str>>,
    /// Precompiled code.
    pub cubins: Vec<Cubin>,
}

impl Module {
    /// Returns a module without precompiled code.
    pub fn new(name: impl Into<String>, source: impl Into<Arc<str>>) -> Module {
        Module {
            name: name.into(),
            source: source.into(),
            kernel_sources: BTreeMap::new(),
            cubins: Vec::new(),
        }
    }
}

/// Machine code for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// The NVRTC name of the target, such as `sm_90a`.
    pub target: String,
    /// The code.
    pub code: Arc<[u8]>,
}

/// A version of CUDA, as drivers and compilers report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl CudaVersion {
    /// Returns a version.
    pub const fn new(major: u32, minor: u32) -> CudaVersion {
        CudaVersion { major, minor }
    }

    /// Returns the driver branch that first supports this version, if known. Source: the CUDA toolkit's release notes.
    pub fn driver_branch(self) -> Option<u32> {
        Some(match (self.major, self.minor) {
            (12, 0) => 525,
            (12, 1) => 530,
            (12, 2) => 535,
            (12, 3) => 545,
            (12, 4) => 550,
            (12, 5) => 555,
            (12, 6) => 560,
            (12, 8) => 570,
            (12, 9) => 575,
            (13, 0) => 580,
            _ => return None,
        })
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The ELF ABI version of code that all drivers of its toolkit's major version load.
const STABLE_ABI: u8 = 7;

impl Cubin {
    /// Returns the minimum driver: the CUDA version that it must support. `None` if the code is not a cubin.
    ///
    /// Code with ELF ABI version 7 runs on every driver of the toolkit's major version. Newer ABI versions need a driver
    /// of the toolkit's version; NVRTC 13 writes them for all targets, NVRTC 12.9 only for `sm_100f` and `sm_120f`.
    pub fn min_driver(&self) -> Option<CudaVersion> {
        let code = self.code.strip_prefix(b"\x7fELF")?;
        let abi = *code.get(4)?;
        if abi <= STABLE_ABI {
            // `e_version` is ten times the toolkit's version.
            let version = u32::from_le_bytes(code.get(16..20)?.try_into().ok()?);
            return Some(CudaVersion::new(version / 10, 0)).filter(|v| v.major >= 10);
        }
        // The assembler's note: `Cuda compilation tools, release 12.9, V12.9.86`.
        const RELEASE: &[u8] = b"release ";
        let at = code.windows(RELEASE.len()).position(|w| w == RELEASE)?;
        let rest = &code[at + RELEASE.len()..];
        let end = rest.iter().position(|b| *b == b',')?;
        let (major, minor) = std::str::from_utf8(&rest[..end]).ok()?.split_once('.')?;
        Some(CudaVersion::new(major.parse().ok()?, minor.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cubin(code: Vec<u8>) -> Cubin {
        Cubin {
            target: "sm_80".to_owned(),
            code: code.into(),
        }
    }

    fn elf(abi: u8, version: u32, note: &str) -> Cubin {
        let mut code = b"\x7fELF\x02\x01\x01\x33".to_vec();
        code.push(abi);
        code.resize(20, 0);
        code.extend(version.to_le_bytes());
        code.extend(note.as_bytes());
        cubin(code)
    }

    #[test]
    fn cubins_state_their_minimum_driver() {
        let tools = |v: &str| format!("ptxas\0Cuda compilation tools, release {v}, V{v}.86\0");
        let found = |abi, version, note: &str| elf(abi, version, note).min_driver();
        assert_eq!(found(7, 129, ""), Some(CudaVersion::new(12, 0)));
        assert_eq!(found(8, 1, &tools("12.9")), Some(CudaVersion::new(12, 9)));
        assert_eq!(found(8, 1, &tools("13.0")), Some(CudaVersion::new(13, 0)));
        assert_eq!(found(8, 1, "no note"), None);
        assert_eq!(found(8, 1, "release 13"), None);
        assert_eq!(found(7, 1, ""), None);
        assert_eq!(cubin(b"code".to_vec()).min_driver(), None);
        assert_eq!(cubin(b"\x7fELF\x02".to_vec()).min_driver(), None);
        assert_eq!(CudaVersion::new(13, 0).driver_branch(), Some(580));
    }
}
