use std::fs::{self, File};
use std::path::Path;

/// A lock that other programs with the same cache respect. The file remains, as in huggingface_hub.
pub(super) struct Lock {
    file: Option<File>,
}

impl Lock {
    /// Takes the lock of a file. Calls `waiting` if another process has it. Returns no lock if the system does not
    /// support locks.
    pub(super) fn take(path: &Path, waiting: impl FnOnce()) -> std::io::Result<Lock> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        let locked = match file.try_lock() {
            Ok(()) => true,
            Err(fs::TryLockError::WouldBlock) => {
                waiting();
                file.lock().is_ok()
            }
            Err(fs::TryLockError::Error(_)) => false,
        };
        Ok(Lock {
            file: locked.then_some(file),
        })
    }
}

impl Lock {
    /// True if other processes respect the lock.
    pub(super) const fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
        }
    }
}
