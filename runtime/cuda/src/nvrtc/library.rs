//! The library: where it is, and its calls.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::{CompiledModule, NvrtcError, options, report, spills};

type Program = *mut c_void;
type Status = c_int;

/// Its calls, as they are declared in `nvrtc.h`.
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

/// NVRTC.
pub struct Nvrtc {
    /// It cannot be unloaded safely: others may have loaded it, too.
    _library: ManuallyDrop<Library>,
    calls: Calls,
    path: PathBuf,
    version: (i32, i32),
}

/// The names of the library, the newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Folders within an installation or a folder of unpacked wheels that hold it.
const WITHIN: [&str; 6] = [
    "",
    "lib64",
    "lib",
    "targets/x86_64-linux/lib",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
];

impl Nvrtc {
    /// The library that the variable `TPC_NVRTC` names: the file, the folder of a CUDA installation, or one into which the wheel
    /// `nvidia-cuda-nvrtc` was unpacked. Without the variable, that of `CUDA_PATH`, `CUDA_HOME` or `/usr/local/cuda`, or
    /// what the system's loader finds.
    ///
    /// # Errors
    /// When there is none, or it does not load.
    pub fn find() -> Result<Nvrtc, NvrtcError> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let named = set("TPC_NVRTC").map(PathBuf::from);
        let usual = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(set);
        let usual = usual.map(PathBuf::from).chain(["/usr/local/cuda".into()]);
        match named {
            Some(named) => Nvrtc::within(&[named], &[]),
            None => Nvrtc::within(&usual.collect::<Vec<_>>(), &NAMES),
        }
    }

    /// The first library in folders, or else the first of these names that the loader finds.
    fn within(folders: &[PathBuf], names: &[&str]) -> Result<Nvrtc, NvrtcError> {
        let mut tried = Vec::new();
        for folder in folders {
            if folder.is_file() {
                return Nvrtc::open(folder);
            }
            let inside = WITHIN.iter().map(|w| folder.join(w));
            let files = inside.flat_map(|f| NAMES.map(|n| f.join(n)));
            if let Some(file) = files.into_iter().find(|f| f.is_file()) {
                return Nvrtc::open(&file);
            }
            tried.push(folder.clone());
        }
        for name in names {
            match Nvrtc::open(Path::new(name)) {
                Ok(found) => return Ok(found),
                Err(_) => tried.push(PathBuf::from(name)),
            }
        }
        Err(NvrtcError::Missing { tried })
    }

    /// The library of that path.
    ///
    /// # Errors
    /// When it does not load, or lacks a call.
    pub fn open(path: &Path) -> Result<Nvrtc, NvrtcError> {
        let unusable = |why: String| NvrtcError::Unusable {
            path: path.to_owned(),
            why,
        };
        // The library finds its builtins by name only: they must be there before it, for all to see.
        for builtins in path.parent().map(builtins).unwrap_or_default() {
            // SAFETY: a library without initialisers that matter, which stays loaded.
            let loaded = unsafe { Library::open(Some(&builtins), RTLD_NOW | RTLD_GLOBAL) };
            std::mem::forget(loaded.map_err(|e| unusable(e.to_string()))?);
        }
        // SAFETY: as above.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = ManuallyDrop::new(library.map_err(|e| unusable(e.to_string()))?);
        macro_rules! call {
            ($name:literal) => {
                // SAFETY: the types of `Calls` are those of `nvrtc.h`.
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
        // SAFETY: both are there to be written.
        let status = unsafe { (calls.version)(&raw mut major, &raw mut minor) };
        if status != 0 {
            return Err(unusable("it does not tell its version".into()));
        }
        Ok(Nvrtc {
            _library: library,
            calls,
            path: path.to_owned(),
            version: (major, minor),
        })
    }

    /// The version: major and minor.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// The library's file, or the name by which the loader found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles the whole text of a module.
    ///
    /// # Errors
    /// When the source is wrong, the target is not known, or a kernel spills.
    pub fn compile(
        &self,
        module: &str,
        text: &str,
        target: &str,
    ) -> Result<CompiledModule, NvrtcError> {
        let program = Running::new(self, module, text, target)?;
        let options = options(target, self.version);
        let options: Vec<CString> = options
            .into_iter()
            .filter_map(|o| CString::new(o).ok())
            .collect();
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is there, the options live through the call.
        let status = unsafe {
            (self.calls.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr())
        };
        // SAFETY: the size and the text of one program go together.
        let log = unsafe { program.bytes(self.calls.log_size, self.calls.log) };
        let log = String::from_utf8_lossy(&log)
            .trim_end_matches(['\0', '\n'])
            .to_owned();
        match status {
            0 => {}
            // NVRTC_ERROR_INVALID_OPTION: all options but the target are known to every version.
            5 => {
                return Err(NvrtcError::Target {
                    target: target.to_owned(),
                    version: self.version,
                });
            }
            _ => return Err(self.failed(module, target, log, status)),
        }
        let kernels = report::kernels(&log);
        spills(module, target, &kernels)?;
        // SAFETY: as above.
        let cubin = unsafe { program.bytes(self.calls.cubin_size, self.calls.cubin) };
        match cubin.is_empty() {
            true => Err(self.failed(module, target, "it gives no code".into(), 0)),
            false => Ok(CompiledModule { cubin, kernels }),
        }
    }

    fn failed(&self, module: &str, target: &str, log: String, status: Status) -> NvrtcError {
        let log = match log.is_empty() {
            // SAFETY: the library gives a constant text for every status.
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

/// The libraries of builtins in a folder. There is another set, for a variant of the library.
fn builtins(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|e| e.path())
        .filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libnvrtc-builtins.so")
        })
        .collect();
    // One of several names of the same file is enough: the longest, which is no link.
    found.sort_by_key(|p| std::cmp::Reverse(p.as_os_str().len()));
    found.truncate(1);
    found
}

/// A program, destroyed when it is dropped.
struct Running<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl<'a> Running<'a> {
    fn new(
        nvrtc: &'a Nvrtc,
        module: &str,
        text: &str,
        target: &str,
    ) -> Result<Running<'a>, NvrtcError> {
        let failed = |log: &str, status| nvrtc.failed(module, target, log.to_owned(), status);
        let text = CString::new(text).map_err(|_| failed("the source has a zero byte", 0))?;
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // The name enters the code: it is the same for all.
        // SAFETY: both texts live through the call; there are no headers.
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
            0 => Ok(Running { nvrtc, handle }),
            status => Err(failed("", status)),
        }
    }

    /// Bytes that the library tells in two calls; none where it tells none.
    ///
    /// # Safety
    /// The calls are of a pair.
    unsafe fn bytes(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Vec<u8> {
        let mut n = 0;
        // SAFETY: the program is there; the second call writes as many bytes as the first one says.
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

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is destroyed once.
        unsafe { (self.nvrtc.calls.destroy)(&raw mut self.handle) };
    }
}
