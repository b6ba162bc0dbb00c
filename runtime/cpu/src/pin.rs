//! Pins threads to cores.

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores that a thread may use.
    pub(super) type Cores = CpuSet;

    pub(super) fn get() -> io::Result<Cores> {
        Ok(sched_getaffinity(None)?)
    }

    pub(super) fn set(cores: &Cores) -> io::Result<()> {
        Ok(sched_setaffinity(None, cores)?)
    }

    pub(super) fn only(core: usize) -> io::Result<Cores> {
        if core >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut out = CpuSet::new();
        out.set(core);
        Ok(out)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    pub(super) type Cores = ();

    pub(super) fn get() -> io::Result<Cores> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set(_: &Cores) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn only(_: usize) -> io::Result<Cores> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Pins this thread to a core until it ends.
///
/// # Errors
/// Returns the system's error if the process may not use the core.
pub(crate) fn pin(core: usize) -> std::io::Result<()> {
    system::set(&system::only(core)?)
}

/// A pinned thread. Dropping the value on the same thread restores the thread's earlier cores.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: system::Cores,
    /// Restoring another thread's cores would pin that thread.
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Pinned {
    /// Pins this thread to a core.
    ///
    /// # Errors
    /// Returns the system's error if the process may not use the core.
    pub(crate) fn to(core: usize) -> std::io::Result<Pinned> {
        let before = system::get()?;
        pin(core)?;
        Ok(Pinned {
            before,
            _this_thread: std::marker::PhantomData,
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // This fails only if the process has lost all these cores. The system has then chosen others.
        let _ = system::set(&self.before);
    }
}

/// Returns the cores that this thread may use.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn allowed() -> Option<Vec<usize>> {
    let found = system::get().ok()?;
    let all = 0..system::Cores::MAX_CPU;
    Some(all.filter(|&core| found.is_set(core)).collect())
}
