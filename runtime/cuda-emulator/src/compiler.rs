use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use sha2::{Digest, Sha256};
use tpc_cuda::DriverError;
use tpc_cuda::kernels::PRELUDE;

/// The build mode of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// A fast build. A fault in a kernel gives wrong results or ends the process.
    Plain,
    /// A build that checks every load and store.
    Checked,
}

/// The error about a compiler that `CXX` names.
fn unusable(value: &str) -> DriverError {
    DriverError::BadCompiler {
        value: value.to_owned(),
    }
}

#[derive(Clone, Debug)]
pub(super) struct Compiler {
    program: String,
    version: String,
    cache: PathBuf,
}

fn no_compiler(tried: &[String]) -> DriverError {
    DriverError::NoCompiler {
        what: format!(
            "emulated devices need a C++20 compiler (GCC 11, Clang 14 or later), not found: {}; install one (`apt \
             install g++`, `dnf install gcc-c++`) or set the variable CXX",
            tried.join(", ")
        ),
    }
}

impl Compiler {
    /// Finds the compiler that `CXX` names. If `CXX` is unset, finds the first known compiler that runs. `cache` is the
    /// output folder.
    pub(super) fn find(cache: PathBuf) -> Result<Compiler, DriverError> {
        let named = std::env::var("CXX").ok().filter(|n| !n.is_empty());
        let usual = ["c++", "g++", "clang++"].map(str::to_owned);
        let tried = match &named {
            Some(named) => vec![named.clone()],
            None => usual.to_vec(),
        };
        let found = tried.iter().find_map(|program| {
            let out = Command::new(program).arg("--version").output().ok()?;
            let version = String::from_utf8_lossy(&out.stdout).into_owned();
            let program = program.clone();
            out.status.success().then_some((program, version))
        });
        let missing = || match &named {
            Some(value) => unusable(value),
            None => no_compiler(&tried),
        };
        let (program, version) = found.ok_or_else(missing)?;
        Ok(Compiler {
            program,
            version,
            cache,
        })
    }

    /// Returns the program and the first line of its version.
    pub(super) fn describe(&self) -> String {
        let first = self.version.lines().next().unwrap_or_default();
        format!("{}: {first}", self.program)
    }

    fn flags(build: Build) -> Vec<&'static str> {
        let mut flags = vec![
            "-std=c++20",
            "-fPIC",
            "-fvisibility=hidden",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-strict-aliasing",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-stack-protector",
            "-gdwarf-4",
            "-g1",
            "-w",
        ];
        #[cfg(target_arch = "x86_64")]
        if ["avx2", "fma", "bmi2", "f16c"]
            .iter()
            .all(|f| has_cpu_feature(f))
        {
            flags.push("-march=x86-64-v3");
        }
        match build {
            Build::Plain => flags.push("-O2"),
            Build::Checked => flags.extend([
                "-O1",
                "-DSHIM_CHECKED",
                "-fno-tree-vectorize",
                "-fsanitize=thread,alignment",
            ]),
        }
        flags
    }

    fn prefix() -> String {
        let line = |file: &str| format!("\n#line 1 \"{file}\"\n");
        let parts = [
            (line("shim.h"), include_str!("shim.h")),
            (line("intrinsics.h"), include_str!("intrinsics.h")),
            (
                "\n#ifdef SHIM_CHECKED".to_owned() + &line("hooks.h"),
                include_str!("hooks.h"),
            ),
            ("\n#endif".to_owned() + &line("prelude.cuh"), PRELUDE),
        ];
        parts
            .iter()
            .flat_map(|(head, text)| [head.as_str(), *text])
            .collect()
    }

    fn text(name: &str, source: &str) -> String {
        let forbidden = |c: char| c.is_control() || c == '"' || c == '\\';
        let name = name.replace(forbidden, "_");
        format!("#line 1 \"{name}.cu\"\n{source}")
    }

    fn key(&self, parts: &[&str]) -> String {
        let mut hash = Sha256::new();
        for part in [self.program.as_str(), &self.version].iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Returns the path of a cached file; `write` creates a missing file. Concurrent writers use separate temporary
    /// files; the last rename wins.
    fn cached(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), DriverError>,
    ) -> Result<PathBuf, DriverError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = self.cache.join(name);
        if path.is_file() {
            return Ok(path);
        }
        std::fs::create_dir_all(&self.cache).map_err(io_error(&self.cache))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = self
            .cache
            .join(format!("{}.{number}.{name}", std::process::id()));
        let result = write(&own);
        let result = result.and_then(|()| std::fs::rename(&own, &path).map_err(io_error(&path)));
        // The file exists only after a failure.
        let _ = std::fs::remove_file(&own);
        result.map(|()| path)
    }

    /// Returns the path of the prefix header, precompiled if the compiler supports this.
    fn prefix_header(&self, flags: &[&str]) -> Result<PathBuf, DriverError> {
        let head = Self::prefix();
        let key = self.key(&["head", &flags.join(" "), &head]);
        let path = self.cached(&format!("{key}.h"), |own| {
            std::fs::write(own, &head).map_err(io_error(own))
        })?;
        let ready = self.cached(&format!("{key}.h.gch"), |own| {
            let mut command = Command::new(&self.program);
            command
                .args(flags)
                .args(["-x", "c++-header"])
                .arg(&path)
                .arg("-o")
                .arg(own);
            self.run(&mut command, "the prefix header")
        });
        drop(ready);
        Ok(path)
    }

    fn run(&self, command: &mut Command, module: &str) -> Result<(), DriverError> {
        let out = command
            .output()
            .map_err(io_error(Path::new(&self.program)))?;
        match out.status.success() {
            true => Ok(()),
            false => Err(DriverError::Compile {
                module: module.to_owned(),
                log: String::from_utf8_lossy(&out.stderr).into_owned(),
            }),
        }
    }

    /// Compiles sources of a module at once, on all cores. [`compile`](Self::compile) then finds them, or reports what is
    /// wrong with them.
    pub(super) fn compile_ahead(&self, name: &str, sources: &[Arc<str>], build: Build) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(sources.len());
        if threads < 2 || self.prefix_header(&Self::flags(build)).is_err() {
            return;
        }
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let _ = self.compile(name, source, build);
                    }
                });
            }
        });
    }

    pub(super) fn compile(
        &self,
        name: &str,
        source: &str,
        build: Build,
    ) -> Result<PathBuf, DriverError> {
        let text = Self::text(name, source);
        let flags = Self::flags(build);
        let key = self.key(&[&flags.join(" "), &Self::prefix(), &text]);
        self.cached(&format!("{key}.so"), |whole| {
            let head = self.prefix_header(&flags)?;
            let [source, half] = ["cpp", "o"].map(|e| whole.with_extension(e));
            std::fs::write(&source, &text).map_err(io_error(&source))?;
            let mut command = Command::new(&self.program);
            command
                .args(&flags)
                .arg("-include")
                .arg(&head)
                .arg("-c")
                .arg(&source);
            let result = self.run(command.arg("-o").arg(&half), name);
            // Do not link the sanitizers' libraries: the shim defines their functions.
            let mut command = Command::new(&self.program);
            command
                .arg("-shared")
                .arg(&half)
                .arg("-o")
                .arg(whole)
                .arg("-lm");
            let result = result.and_then(|()| self.run(&mut command, name));
            for file in [&source, &half] {
                let _ = std::fs::remove_file(file);
            }
            result
        })
    }
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> DriverError + use<> {
    let what = path.display().to_string();
    move |cause| DriverError::Io { what, cause }
}

#[cfg(target_arch = "x86_64")]
fn has_cpu_feature(feature: &str) -> bool {
    match feature {
        "avx2" => is_x86_feature_detected!("avx2"),
        "fma" => is_x86_feature_detected!("fma"),
        "bmi2" => is_x86_feature_detected!("bmi2"),
        "f16c" => is_x86_feature_detected!("f16c"),
        _ => false,
    }
}
