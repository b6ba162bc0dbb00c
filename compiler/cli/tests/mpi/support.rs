use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const TPC: &str = env!("CARGO_BIN_EXE_tpc");

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tpc-mpi-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a model with random weights.
    pub(crate) fn model(&self, name: &str, spec: &str) -> String {
        let path = self.path(name);
        let made = Command::new(TPC)
            .args(["synth", spec, "-o", &path])
            .output();
        assert!(made.expect("tpc runs").status.success(), "{spec}");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the paths of the golden models in the repository and in the folder `shared` beside the checkout.
pub(crate) fn goldens() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        root.join("tests/data/golden"),
        root.join("../shared/golden"),
    ];
    let mut out: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        out.extend(
            entries
                .map(|e| e.path())
                .filter(|p| p.extension().is_some_and(|e| e == "gguf")),
        );
    }
    out.sort_by_key(|p| p.file_name().map(std::ffi::OsStr::to_os_string));
    out.dedup_by_key(|p| p.file_name().map(std::ffi::OsStr::to_os_string));
    out
}

/// Returns the command that starts these words in `ranks` processes. A word `:` begins another program.
pub(crate) fn mpirun(ranks: usize, words: &[&str]) -> Command {
    let mut out = Command::new("mpirun");
    out.args([
        "--allow-run-as-root",
        "--oversubscribe",
        "--bind-to",
        "none",
    ]);
    out.args(["-np", &ranks.to_string()]).args(words);
    out.stdin(Stdio::null());
    out.stdout(Stdio::piped()).stderr(Stdio::piped());
    out
}

/// Runs a command to its end. Returns success, and the text of both outputs.
pub(crate) fn ends(mut command: Command) -> (bool, String) {
    let out = command.output().expect("mpirun runs");
    let text = [out.stdout, out.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    (out.status.success(), text.concat())
}

/// The end of a job.
pub(crate) struct Ended {
    /// The time until all ranks have ended.
    pub(crate) took: Duration,
    /// The text of its errors.
    pub(crate) text: String,
    /// True if `mpirun` hung after all ranks had ended. Open MPI 4.1 does if a rank ends while it starts.
    pub(crate) launcher_hung: bool,
}

/// Waits for the end of a job, at most `limit`.
pub(crate) fn wait(mut job: Child, limit: Duration) -> Result<Ended, String> {
    const HUNG: Duration = Duration::from_secs(3);
    let begun = Instant::now();
    let mut alone: Option<Instant> = None;
    let mut launcher_hung = false;
    while job.try_wait().expect("a child").is_none() {
        if begun.elapsed() > limit {
            let _ = job.kill();
            let _ = job.wait();
            return Err(format!("the job has not ended within {limit:?}"));
        }
        match processes(&job).iter().any(|pid| is_running(*pid)) {
            true => alone = None,
            false => launcher_hung = alone.get_or_insert_with(Instant::now).elapsed() > HUNG,
        }
        if launcher_hung {
            let _ = job.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    let took = match alone.filter(|_| launcher_hung) {
        Some(alone) => alone - begun,
        None => begun.elapsed(),
    };
    let out = job.wait_with_output().expect("a child");
    Ok(Ended {
        took,
        text: String::from_utf8_lossy(&out.stderr).into_owned(),
        launcher_hung,
    })
}

/// True for a process that has not ended. An ended process stays until its parent asks for its status.
fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|l| l.strip_prefix("State:"));
    state.is_some_and(|s| !s.trim_start().starts_with('Z'))
}

/// Returns the ids of a job's `tpc` processes, in the order of their ranks.
pub(crate) fn processes(job: &Child) -> Vec<u32> {
    let mut out = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<u32>().ok())
        else {
            continue;
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|l| l.strip_prefix("PPid:"));
        if parent.and_then(|p| p.trim().parse::<u32>().ok()) == Some(job.id()) {
            out.push((rank_of(pid), pid));
        }
    }
    out.sort_unstable();
    out.into_iter().map(|(_, pid)| pid).collect()
}

fn rank_of(pid: u32) -> usize {
    let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&variables).into_owned();
    let rank = text
        .split('\0')
        .find_map(|v| v.strip_prefix("OMPI_COMM_WORLD_RANK="));
    rank.and_then(|r| r.parse().ok()).unwrap_or(usize::MAX)
}

pub(crate) fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").args([name, &pid.to_string()]).status();
}

/// True if the process exists and is not only an entry that its parent has not read.
pub(crate) fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|l| l.strip_prefix("State:"));
    state.is_some_and(|s| !s.trim().starts_with('Z'))
}

pub(crate) fn is_full() -> bool {
    std::env::var_os("TPC_FULL").is_some_and(|v| v == "1")
}
