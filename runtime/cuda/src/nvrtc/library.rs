use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::{CompiledModule, NvrtcError, options, report, spills};

type Program = *mut c_void;
type Status = c_int;

/// The functions, with the types of `nvrtc.h`.
#[derive(Clone, Copy)]
struct Calls {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error: unsafe extern "C" fn(Status) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

/// The loaded NVRTC library.
pub struct Nvrtc {
    /// The library stays loaded, because other code in the process may use it.
    _library: ManuallyDrop<Library>,
    calls: Calls,
    path: PathBuf,
    version: (i32, i32),
}

/// CUDA 12 first: code that NVRTC 13 writes needs the newest drivers.
const NAMES: [&str; 3] = ["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"];

/// The first version that compiles for all [`TARGETS`](super::TARGETS).
const ALL_TARGETS: (i32, i32) = (12, 9);

/// Folders that contain the library in a CUDA installation or unpacked wheels.
const SUBFOLDERS: [&str; 6] = [
    "",
    "lib64",
    "lib",
    "targets/x86_64-linux/lib",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
];

impl Nvrtc {
    /// Finds the library: CUDA 12.9 if it is there, else CUDA 13, else the first found. `TPC_NVRTC` names the file, a CUDA
    /// installation, or a folder with the unpacked wheel `nvidia-cuda-nvrtc-cu12`. If unset, tpc searches `CUDA_PATH`,
    /// `CUDA_HOME`, `/usr/local/cuda` and the system's library path.
    ///
    /// # Errors
    ///
    /// Returns an error if the library is missing, does not load, or is off (`TPC_NVRTC=none`).
    pub fn find() -> Result<Nvrtc, NvrtcError> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let named = set("TPC_NVRTC").map(PathBuf::from);
        let usual = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(set);
        let usual = usual.map(PathBuf::from).chain(["/usr/local/cuda".into()]);
        match named {
            Some(named) => Nvrtc::named(named),
            None => Nvrtc::open_first(&usual.collect::<Vec<_>>(), &NAMES),
        }
    }

    /// Opens the library that `TPC_NVRTC` names.
    fn named(value: PathBuf) -> Result<Nvrtc, NvrtcError> {
        if value.as_os_str() == "none" {
            return Err(NvrtcError::Off);
        }
        let opened = Nvrtc::open_first(std::slice::from_ref(&value), &[]);
        opened.map_err(|e| {
            let why = match e {
                NvrtcError::Missing { .. } if value.exists() => {
                    "libnvrtc.so is not in the folder".to_owned()
                }
                NvrtcError::Missing { .. } => "no such file or folder".to_owned(),
                e => e.to_string(),
            };
            NvrtcError::Named { value, why }
        })
    }

    /// Opens the first suitable library in these folders, or else of these names that the loader finds. If no library
    /// compiles for all targets, returns the first found.
    fn open_first(folders: &[PathBuf], names: &[&str]) -> Result<Nvrtc, NvrtcError> {
        let mut tried = Vec::new();
        let mut found: Option<Nvrtc> = None;
        for folder in folders {
            if folder.is_file() {
                return Nvrtc::open(folder);
            }
            let inside = SUBFOLDERS.iter().map(|w| folder.join(w));
            // By name first, then by folder.
            let inside: Vec<PathBuf> = inside.collect();
            let files = NAMES
                .iter()
                .flat_map(|n| inside.iter().map(move |f| f.join(n)));
            let mut files = files.filter(|f| f.is_file()).peekable();
            if files.peek().is_none() {
                tried.push(folder.clone());
            }
            for file in files {
                let opened = Nvrtc::open(&file)?;
                if opened.version >= ALL_TARGETS {
                    return Ok(opened);
                }
                found.get_or_insert(opened);
            }
        }
        for name in names {
            match Nvrtc::open(Path::new(name)) {
                Ok(opened) if opened.version >= ALL_TARGETS => return Ok(opened),
                Ok(opened) => {
                    found.get_or_insert(opened);
                }
                Err(_) => tried.push(PathBuf::from(name)),
            }
        }
        found.ok_or(NvrtcError::Missing { tried })
    }

    /// Opens the library at a path.
    ///
    /// # Errors
    ///
    /// Returns an error if the library does not load or lacks a function.
    pub fn open(path: &Path) -> Result<Nvrtc, NvrtcError> {
        let unusable = |why: String| NvrtcError::Unusable {
            path: path.to_owned(),
            why,
        };
        // The library searches for its builtins by name only, so load them first, with global symbols.
        for builtins in path.parent().map(builtins).unwrap_or_default() {
            // SAFETY: the initialisers of the library have no preconditions, and the library stays loaded.
            let loaded = unsafe { Library::open(Some(&builtins), RTLD_NOW | RTLD_GLOBAL) };
            std::mem::forget(loaded.map_err(|e| unusable(e.to_string()))?);
        }
        // SAFETY: as above.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = ManuallyDrop::new(library.map_err(|e| unusable(e.to_string()))?);
        macro_rules! call {
            ($name:literal) => {
                // SAFETY: `Calls` has the types of `nvrtc.h`.
                *unsafe { library.get($name) }.map_err(|e| unusable(e.to_string()))?
            };
        }
        let calls = Calls {
            version: call!(b"nvrtcVersion\0"),
            error: call!(b"nvrtcGetErrorString\0"),
            create: call!(b"nvrtcCreateProgram\0"),
            destroy: call!(b"nvrtcDestroyProgram\0"),
            compile: call!(b"nvrtcCompileProgram\0"),
            log_size: call!(b"nvrtcGetProgramLogSize\0"),
            log: call!(b"nvrtcGetProgramLog\0"),
            cubin_size: call!(b"nvrtcGetCUBINSize\0"),
            cubin: call!(b"nvrtcGetCUBIN\0"),
        };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for writes.
        let status = unsafe { (calls.version)(&raw mut major, &raw mut minor) };
        if status != 0 {
            return Err(unusable("the library does not report its version".into()));
        }
        Ok(Nvrtc {
            _library: library,
            calls,
            path: path.to_owned(),
            version: (major, minor),
        })
    }

    /// Returns the major and minor version.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Returns the path of the library, or the name that the loader resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles the complete source of a module.
    ///
    /// # Errors
    ///
    /// Returns an error if the source does not compile, the target is unknown, or a kernel spills registers.
    pub fn compile(
        &self,
        module: &str,
        text: &str,
        target: &str,
    ) -> Result<CompiledModule, NvrtcError> {
        let program = ProgramGuard::new(self, module, text, target)?;
        let options = options(target, self.version);
        let options: Vec<CString> = options
            .into_iter()
            .filter_map(|o| CString::new(o).ok())
            .collect();
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is valid, and the options outlive the call.
        let status = unsafe {
            (self.calls.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr())
        };
        // SAFETY: the functions return the size and the text of the same log.
        let log = unsafe { program.bytes(self.calls.log_size, self.calls.log) };
        let log = String::from_utf8_lossy(&log)
            .trim_end_matches(['\0', '\n'])
            .to_owned();
        match status {
            0 => {}
            // NVRTC_ERROR_INVALID_OPTION: every version supports all options except targets.
            5 => {
                return Err(NvrtcError::Target {
                    target: target.to_owned(),
                    version: self.version,
                });
            }
            _ => return Err(self.compile_error(module, target, log, status)),
        }
        let kernels = report::kernels(&log);
        spills(module, target, &kernels)?;
        // SAFETY: as above.
        let cubin = unsafe { program.bytes(self.calls.cubin_size, self.calls.cubin) };
        match cubin.is_empty() {
            true => Err(self.compile_error(module, target, "NVRTC returned no code".into(), 0)),
            false => Ok(CompiledModule { cubin, kernels }),
        }
    }

    fn compile_error(&self, module: &str, target: &str, log: String, status: Status) -> NvrtcError {
        let log = match log.is_empty() {
            // SAFETY: the library returns a constant string for every status.
            true => unsafe { CStr::from_ptr((self.calls.error)(status)) }
                .to_string_lossy()
                .into_owned(),
            false => log,
        };
        NvrtcError::Compile {
            module: module.to_owned(),
            target: target.to_owned(),
            log,
        }
    }
}

fn builtins(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|e| e.path())
        .filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libnvrtc-builtins.so")
        })
        .collect();
    // Several names may link to one file. The longest name is the file itself.
    found.sort_by_key(|p| std::cmp::Reverse(p.as_os_str().len()));
    found.truncate(1);
    found
}

struct ProgramGuard<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl<'a> ProgramGuard<'a> {
    fn new(
        nvrtc: &'a Nvrtc,
        module: &str,
        text: &str,
        target: &str,
    ) -> Result<ProgramGuard<'a>, NvrtcError> {
        let failed =
            |log: &str, status| nvrtc.compile_error(module, target, log.to_owned(), status);
        let text = CString::new(text).map_err(|_| failed("the source has a zero byte", 0))?;
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // The compiled code contains this name, so it must not vary. SAFETY: both strings outlive the call, and the
        // program has no headers.
        let status = unsafe {
            (nvrtc.calls.create)(
                &raw mut handle,
                text.as_ptr(),
                c"kernels.cu".as_ptr(),
                0,
                none,
                none,
            )
        };
        match status {
            0 => Ok(ProgramGuard { nvrtc, handle }),
            status => Err(failed("", status)),
        }
    }

    /// Returns the bytes that `get` writes; empty if a call fails.
    ///
    /// # Safety
    ///
    /// `size` must return the number of bytes that `get` writes.
    unsafe fn bytes(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Vec<u8> {
        let mut n = 0;
        // SAFETY: the program is valid, and `get` writes the number of bytes that `size` returned.
        unsafe {
            if size(self.handle, &raw mut n) != 0 {
                return Vec::new();
            }
            let mut bytes = vec![0_u8; n];
            match get(self.handle, bytes.as_mut_ptr().cast()) {
                0 => bytes,
                _ => Vec::new(),
            }
        }
    }
}

impl Drop for ProgramGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is destroyed once.
        unsafe { (self.nvrtc.calls.destroy)(&raw mut self.handle) };
    }
}
