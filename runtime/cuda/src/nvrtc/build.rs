use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Cache, CompiledModule, Nvrtc, NvrtcError, with_prelude};
use crate::kernels::Source;

/// A module compiled for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOutput {
    /// The module name.
    pub module: String,
    /// The target.
    pub target: String,
    /// The complete source, with the prelude.
    pub source: String,
    /// The compiled code.
    pub compiled: CompiledModule,
}

/// A callback after each module.
pub type Progress<'a> = dyn Fn() + Sync + 'a;

/// Compiles all modules for each target, with `threads` threads and the cache.
///
/// # Errors
///
/// Returns the first error of [`Nvrtc::compile`], in the order of targets and modules.
pub fn build(
    (modules, targets): (&[Source], &[String]),
    (nvrtc, cache): (&Nvrtc, Option<&Cache>),
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Vec<BuildOutput>, NvrtcError> {
    let work: Vec<(&Source, &String)> = targets
        .iter()
        .flat_map(|target| modules.iter().map(move |module| (module, target)))
        .collect();
    let next = AtomicUsize::new(0);
    let mut done: Vec<Mutex<Option<Result<BuildOutput, NvrtcError>>>> = Vec::new();
    done.resize_with(work.len(), Mutex::default);
    let compile = |module: &Source, target: &String| {
        let source = with_prelude(&module.text);
        let compiled = match cache {
            Some(cache) => cache.compile(nvrtc, module.name, &source, target),
            None => nvrtc.compile(module.name, &source, target),
        };
        Ok(BuildOutput {
            module: module.name.to_owned(),
            target: target.clone(),
            source,
            compiled: compiled?,
        })
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, work.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((module, target)) = work.get(at) else {
                        return;
                    };
                    let built = compile(module, target);
                    if let Ok(mut slot) = done[at].lock() {
                        *slot = Some(built);
                    }
                    progress();
                }
            });
        }
    });
    let lost = |module: &str, target: &str| NvrtcError::Compile {
        module: module.to_owned(),
        target: target.to_owned(),
        log: "the compiler panicked".to_owned(),
    };
    let taken = done.into_iter().zip(&work).map(|(slot, (module, target))| {
        let built = slot.into_inner().ok().flatten();
        built.unwrap_or_else(|| Err(lost(module.name, target)))
    });
    taken.collect()
}
