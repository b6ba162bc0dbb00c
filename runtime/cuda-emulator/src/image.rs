use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;

use libloading::Library;
use tpc_cuda::{Args, DriverError};

use super::abi::{Calls, RawKernel};

pub(super) struct Image {
    name: String,
    path: PathBuf,
    library: Library,
    /// The addresses of code and data.
    pub(super) range: std::ops::Range<usize>,
}

pub(super) struct Kernel {
    pub(super) run: unsafe extern "C" fn(*const *const c_void),
    pub(super) arguments: Vec<*const c_void>,
}

impl Image {
    pub(super) fn load(name: &str, path: &Path, table: Calls) -> Result<Image, DriverError> {
        let failed = |e: libloading::Error| DriverError::Driver {
            what: format!("loading {}", path.display()),
            error: e.to_string(),
        };
        // SAFETY: the compiler built the file from the shim and the module. Their only initialisers set up tables.
        let library = unsafe { Library::new(path) }.map_err(failed)?;
        // SAFETY: the shim declares both symbols with these types. The table is zero until it is written.
        let range = unsafe {
            let calls = library.get::<*mut Calls>(b"tpc_calls\0").map_err(failed)?;
            // Another driver may already use the module.
            if (*calls).cast::<usize>().read() == 0 {
                (*calls).write(table);
            }
            let image = library
                .get::<*const [usize; 2]>(b"tpc_image\0")
                .map_err(failed)?;
            let [from, to] = (*image).read();
            from..to
        };
        Ok(Image {
            name: name.to_owned(),
            path: path.to_owned(),
            library,
            range,
        })
    }

    fn raw_kernel(&self, name: &str) -> Result<&RawKernel, DriverError> {
        let symbol = format!("tpc_kernel_{name}\0");
        // SAFETY: the shim declares kernel symbols with this type. The value lives as long as the library.
        let found = unsafe {
            self.library
                .get::<*const RawKernel>(symbol.as_bytes())
                .map(|k| &**k)
        };
        found.map_err(|_| DriverError::NoFunction {
            module: self.name.clone(),
            name: name.to_owned(),
        })
    }

    pub(super) fn check_kernel(&self, name: &str) -> Result<(), DriverError> {
        self.raw_kernel(name).map(|_| ())
    }

    /// Returns a kernel for launches with `threads` threads per block. The arguments must not move.
    pub(super) fn kernel(
        &self,
        name: &str,
        args: &Args,
        threads: u64,
    ) -> Result<Kernel, DriverError> {
        let raw = self.raw_kernel(name)?;
        let malformed = |what: String| Err(DriverError::Malformed { what });
        let given: Vec<usize> = args.iter().map(<[u8]>::len).collect();
        let wanted: Vec<usize> = raw.sizes().iter().map(|&n| n as usize).collect();
        if given != wanted {
            return malformed(format!(
                "kernel {name} takes arguments of {wanted:?} bytes, not {given:?}"
            ));
        }
        if threads > u64::from(raw.bound) {
            return malformed(format!(
                "kernel {name} takes {} threads per block, not {threads}",
                raw.bound
            ));
        }
        Ok(Kernel {
            run: raw.run,
            arguments: argument_addresses(args),
        })
    }

    /// Returns the file and line of a code address, using the compiler's tools.
    pub(super) fn source_line(&self, pc: usize) -> Option<String> {
        // A return address points after the call instruction.
        let offset = format!("{:#x}", pc.checked_sub(self.range.start)? - 1);
        let ask = |program: &str, more: &[&str]| {
            let mut command = Command::new(program);
            command.args(more).arg("-e").arg(&self.path).arg(&offset);
            let out = command.output().ok().filter(|o| o.status.success())?;
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let line = text.lines().next()?.split(" (").next()?.trim();
            let file = line.rsplit('/').next()?;
            (!file.starts_with('?')).then(|| file.to_owned())
        };
        ask("addr2line", &[]).or_else(|| ask("llvm-symbolizer", &["--output-style=GNU"]))
    }
}

fn argument_addresses(args: &Args) -> Vec<*const c_void> {
    args.iter().map(|a| a.as_ptr().cast()).collect()
}
