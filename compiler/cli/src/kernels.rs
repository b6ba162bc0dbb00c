//! Compiles an artefact's kernels ahead of time.

use std::thread;

use tpc_artefact::{Digest, KernelModule};
use tpc_cuda::executor::modules;
use tpc_cuda::nvrtc::{BuildOutput, Cache, Nvrtc, NvrtcError, TARGETS, build};
use tpc_cuda::{Cubin, cache_dir};
use tpc_diag::{Diagnostic, Severity, codes};
use tpc_ir::program::Program;
use tpc_runtime::Options;

use crate::output::{self, Failure};
use crate::progress::Progress;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Cpu,
    /// Compute capabilities of cards, in the order of [`TARGETS`].
    Cuda(Vec<String>),
}

impl Target {
    pub(super) fn cards() -> Target {
        Target::Cuda(TARGETS.map(str::to_owned).to_vec())
    }
}

/// Parses `cpu`, `cuda`, or `cuda:sm_90a,sm_120f`.
pub(super) fn target(text: &str) -> Result<Target, Diagnostic> {
    let refused = |message: String| {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--target", message);
        Err(d.help(format!(
            "give cpu, cuda, or kinds of cards among these: cuda:{}",
            TARGETS.join(",")
        )))
    };
    let list = match text.split_once(':') {
        None if text == "cpu" => return Ok(Target::Cpu),
        None if text == "cuda" => return Ok(Target::cards()),
        Some(("cuda", list)) => list,
        _ => return refused(format!("unknown target `{text}`")),
    };
    let mut asked = Vec::new();
    for word in list.split(',').map(str::trim) {
        let found = TARGETS.iter().find(|t| {
            let rest = t.strip_prefix(word);
            rest.is_some_and(|r| matches!(r, "" | "a" | "f"))
        });
        match found {
            Some(found) => asked.push(*found),
            None => return refused(format!("unknown kind of card `{word}`")),
        }
    }
    let all = TARGETS.iter().filter(|t| asked.contains(t));
    Ok(Target::Cuda(all.map(|t| (*t).to_owned()).collect()))
}

pub(super) struct Kernels {
    pub(super) modules: Vec<KernelModule>,
    built: Vec<BuildOutput>,
}

/// Compiles a program's kernels. Without NVRTC, prints a note and returns an empty result.
pub(super) fn compiled(program: &Program, targets: &[String]) -> Result<Kernels, Failure> {
    let modules = modules(program, Options::default())?;
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(e) if e.is_absent() => {
            let message = format!("the artefact does not hold kernels: {e}");
            let d = Diagnostic::new(e.code(), "NVRTC", message);
            output::diagnostic(&Diagnostic {
                severity: Severity::Note,
                ..d.help(e.code().cure)
            });
            let (modules, built) = (Vec::new(), Vec::new());
            return Ok(Kernels { modules, built });
        }
        Err(e) => return Err(failure(&e)),
    };
    // Without a cache folder, kernels are compiled each time.
    let cache = cache_dir("cubins").ok().map(Cache::new);
    let steps = modules.len() * targets.len();
    let progress = Progress::with_steps("compiling kernels", steps);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let done = || progress.advance(1);
    let built = build(
        (&modules, targets),
        (&nvrtc, cache.as_ref()),
        threads,
        &done,
    );
    let built = built.map_err(|e| failure(&e))?;
    let (major, minor) = nvrtc.version();
    let compiler = format!("NVRTC {major}.{minor}");
    let module = |b: &BuildOutput| {
        let source = Digest::of(b.source.as_bytes());
        let cubin = Cubin {
            target: b.target.clone(),
            code: b.compiled.cubin.as_slice().into(),
        };
        let driver = cubin.min_driver().map(|v| v.to_string());
        KernelModule::new(&b.target, &b.module, &compiler, source, cubin.code).with_driver(driver)
    };
    Ok(Kernels {
        modules: built.iter().map(module).collect(),
        built,
    })
}

fn failure(e: &NvrtcError) -> Failure {
    let d = Diagnostic::new(e.code(), "kernels", e.to_string());
    Failure::findings(vec![d.help(e.code().cure)])
}

impl Kernels {
    pub(super) fn table(&self) -> String {
        let widest = self.built.iter().flat_map(|b| &b.compiled.kernels);
        let width = widest.map(|k| k.kernel.len()).max().unwrap_or(0).max(6);
        let mut out = format!(
            "{:<width$}  {:<8} {:>9} {:>7} {:>7} {:>7}\n",
            "kernel", "target", "registers", "spilled", "shared", "code"
        );
        for built in &self.built {
            let sizes = built.compiled.sizes();
            for k in &built.compiled.kernels {
                let code = sizes.get(&k.kernel).copied().unwrap_or(0);
                out.push_str(&format!(
                    "{:<width$}  {:<8} {:>9} {:>7} {:>7} {:>7}\n",
                    k.kernel, built.target, k.registers, k.spilled, k.shared, code
                ));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_by_kind() {
        let cuda = |names: &[&str]| {
            let names = names.iter().map(|n| (*n).to_owned());
            Some(Target::Cuda(names.collect()))
        };
        assert_eq!(target("cpu").ok(), Some(Target::Cpu));
        assert_eq!(target("cuda").ok(), cuda(&TARGETS));
        let both = cuda(&["sm_80", "sm_90a"]);
        assert_eq!(target("cuda:sm_90a, sm_80").ok(), both);
        assert_eq!(target("cuda:sm_90,sm_80,sm_80").ok(), both);
        for wrong in [
            "",
            "gpu",
            "cuda:",
            "cuda:sm_9",
            "cuda:sm_61",
            "cpu:sm_80",
            "cuda:sm_80,",
        ] {
            let d = target(wrong).expect_err(wrong);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{wrong}");
        }
    }
}
