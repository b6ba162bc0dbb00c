//! The host's C++ compiler, and what it compiled before.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::driver::{DriverError, Module};
use crate::kernels::PRELUDE;

/// How kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// To run fast: a fault of a kernel shows in its results, or ends the process.
    Plain,
    /// To find faults: every load and store is checked.
    Checked,
}

/// A C++ compiler.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    program: String,
    version: String,
    cache: PathBuf,
}

/// What is missing, and how to get it.
fn none(tried: &[String]) -> DriverError {
    DriverError::NoCompiler {
        what: format!(
            "emulated devices need a C++20 compiler (GCC 11, Clang 14 or later), and none of {} runs; install one (`apt \
             install g++`, `dnf install gcc-c++`) or name one by the variable CXX",
            tried.join(", ")
        ),
    }
}

impl Compiler {
    /// The compiler that the variable `CXX` names, or else the first of the usual ones that runs. What it compiles is kept
    /// in the folder.
    pub(super) fn find(cache: PathBuf) -> Result<Compiler, DriverError> {
        let named = std::env::var("CXX").ok().filter(|n| !n.is_empty());
        let usual = ["c++", "g++", "clang++"].map(str::to_owned);
        let tried: Vec<String> = named.into_iter().chain(usual).collect();
        let found = tried.iter().find_map(|program| {
            let out = Command::new(program).arg("--version").output().ok()?;
            let version = String::from_utf8_lossy(&out.stdout).into_owned();
            let program = program.clone();
            out.status.success().then_some((program, version))
        });
        let (program, version) = found.ok_or_else(|| none(&tried))?;
        Ok(Compiler {
            program,
            version,
            cache,
        })
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
        if ["avx2", "fma", "bmi2", "f16c"].iter().all(|f| has(f)) {
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

    /// The text that is compiled.
    fn text(module: &Module) -> String {
        let line = |file: &str| format!("\n#line 1 \"{file}\"\n");
        let name: String = module
            .name
            .chars()
            .map(|c| {
                if c.is_control() || c == '"' || c == '\\' {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        let parts = [
            (line("shim.h"), include_str!("shim.h")),
            (line("twins.h"), include_str!("twins.h")),
            (
                "\n#ifdef SHIM_CHECKED".to_owned() + &line("hooks.h"),
                include_str!("hooks.h"),
            ),
            ("\n#endif".to_owned() + &line("prelude.cuh"), PRELUDE),
            (line(&format!("{name}.cu")), &module.source),
        ];
        parts
            .iter()
            .flat_map(|(head, text)| [head.as_str(), *text])
            .collect()
    }

    /// The shared object of a module, compiled unless it was before.
    pub(super) fn compile(&self, module: &Module, build: Build) -> Result<PathBuf, DriverError> {
        let text = Self::text(module);
        let flags = Self::flags(build);
        let mut hash = Sha256::new();
        for part in [
            self.program.as_str(),
            &self.version,
            &flags.join(" "),
            &text,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let key: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        let object = self.cache.join(format!("{key}.so"));
        if object.is_file() {
            return Ok(object);
        }
        let io = |what: &Path| {
            let what = what.display().to_string();
            move |cause| DriverError::Io { what, cause }
        };
        std::fs::create_dir_all(&self.cache).map_err(io(&self.cache))?;
        // Others may compile the same: each writes files of its own, and the last to be renamed stays.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let own = format!(
            "{key}.{}.{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let [source, half, whole] =
            ["cpp", "o", "so"].map(|e| self.cache.join(format!("{own}.{e}")));
        let result = self.build(&text, &flags, module, [&source, &half, &whole]);
        let result = result.and_then(|()| std::fs::rename(&whole, &object).map_err(io(&object)));
        for file in [&source, &half, &whole] {
            let _ = std::fs::remove_file(file);
        }
        result.map(|()| object)
    }

    fn build(
        &self,
        text: &str,
        flags: &[&str],
        module: &Module,
        [source, half, whole]: [&Path; 3],
    ) -> Result<(), DriverError> {
        std::fs::write(source, text).map_err(|cause| DriverError::Io {
            what: source.display().to_string(),
            cause,
        })?;
        let run = |command: &mut Command| {
            let out = command.output().map_err(|cause| DriverError::Io {
                what: self.program.clone(),
                cause,
            })?;
            match out.status.success() {
                true => Ok(()),
                false => Err(DriverError::Compile {
                    module: module.name.clone(),
                    log: String::from_utf8_lossy(&out.stderr).into_owned(),
                }),
            }
        };
        run(Command::new(&self.program)
            .args(flags)
            .arg("-c")
            .arg(source)
            .arg("-o")
            .arg(half))?;
        // Linked without the sanitizers' libraries: what they would supply is in the shim.
        run(Command::new(&self.program)
            .arg("-shared")
            .arg(half)
            .arg("-o")
            .arg(whole)
            .arg("-lm"))
    }
}

#[cfg(target_arch = "x86_64")]
fn has(feature: &str) -> bool {
    match feature {
        "avx2" => is_x86_feature_detected!("avx2"),
        "fma" => is_x86_feature_detected!("fma"),
        "bmi2" => is_x86_feature_detected!("bmi2"),
        "f16c" => is_x86_feature_detected!("f16c"),
        _ => false,
    }
}

/// The folder of what was compiled before: that of the variable `TPC_CUDA_CACHE`, the user's cache, or a temporary one.
pub(super) fn cache() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let home = || Some(set("HOME")?.join(".cache"));
    let user = || set("XDG_CACHE_HOME").or_else(home).map(|c| c.join("tpc"));
    let base = set("TPC_CUDA_CACHE").or_else(user);
    base.unwrap_or_else(|| std::env::temp_dir().join("tpc"))
        .join("emulated-cuda")
}
