//! If a rank fails, all ranks end within 5 seconds, and a message names the rank and the cause.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::{Scratch, TPC, ends, is_alive, is_full, mpirun, processes, signal, wait};

const LIMIT: Duration = Duration::from_secs(5);
/// The time of the machine to start a job, which does not count.
const START: Duration = Duration::from_secs(15);

/// Returns a number below `n` from a seed.
fn random(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    x ^= x >> 31;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 29)) % n
}

#[test]
fn a_killed_or_stopped_rank_ends_all() {
    let scratch = Scratch::new();
    let spec = "llama-tiny:layers=2,embd=256,ff=512,ctx=65536";
    let model = scratch.model("model.gguf", spec);
    let saved = scratch.path("saved");
    let mut hung = 0;
    let rounds = if is_full() { 200 } else { 6 };
    for round in 0..rounds {
        let words = [
            TPC,
            "run",
            &model,
            "--tokens",
            "1,2,3",
            "-n",
            "60000",
            "--ignore-eos",
            "--devices",
            "cpu,cpu",
            "-t",
            "2",
            "--save",
            &saved,
        ];
        let job = mpirun(2, &words).spawn().expect("mpirun runs");
        let moment = Duration::from_millis(random(round, 2500));
        thread::sleep(moment);
        let mut ranks = processes(&job);
        while ranks.len() < 2 {
            thread::sleep(Duration::from_millis(20));
            ranks = processes(&job);
        }
        let victim = random(round ^ 77, 2) as usize;
        let (name, words) = match round % 3 {
            2 => ("-STOP", ["has not answered", "has not started"]),
            _ => ("-KILL", ["signal 9", "Killed"]),
        };
        signal(name, ranks[victim]);
        let what = format!("round {round}: {name} to rank {victim} after {moment:?}");
        let ended = wait(job, START).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (took, text) = (ended.took, ended.text);
        assert!(
            took <= LIMIT,
            "{what}: the job ended after {took:?}: {text}"
        );
        let named = words.iter().any(|w| text.contains(w));
        assert!(named || ended.launcher_hung, "{what}: {text}");
        hung += u64::from(ended.launcher_hung);
        thread::sleep(Duration::from_millis(200));
        for pid in ranks {
            assert!(!is_alive(pid), "{what}: a process is left");
        }
        let files: Vec<_> = fs::read_dir(&scratch.0)
            .expect("a folder")
            .flatten()
            .collect();
        assert_eq!(files.len(), 1, "{what}: a partial file is left: {files:?}");
    }
    println!("mpirun hung in {hung} of {rounds} rounds");
    assert!(hung <= 1 + rounds / 20, "mpirun hung in {hung} rounds");
}

#[test]
fn ranks_with_other_models_are_named() {
    let scratch = Scratch::new();
    let first = scratch.model("a.gguf", "llama-tiny");
    let other = scratch.model("b.gguf", "llama-tiny:seed=9");
    let tail = ["--tokens", "1,2", "-n", "4", "--devices", "cpu,cpu"];
    let mut words = vec![TPC, "run", &first];
    words.extend(tail);
    words.extend([":", "-np", "1", TPC, "run", &other]);
    words.extend(tail);
    let (success, text) = ends(mpirun(1, &words));
    assert!(!success, "{text}");
    assert!(
        text.contains("rank 1") && text.contains("another model"),
        "{text}"
    );
    let missing = scratch.path("missing.gguf");
    let mut words = vec![TPC, "run", &first];
    words.extend(tail);
    words.extend([":", "-np", "1", TPC, "run", &missing]);
    words.extend(tail);
    let (success, text) = ends(mpirun(1, &words));
    assert!(
        !success && text.contains("rank 1") && text.contains("missing.gguf"),
        "{text}"
    );
}

#[test]
fn a_rank_that_never_starts_ends_all() {
    let scratch = Scratch::new();
    let model = scratch.model("a.gguf", "llama-tiny");
    let words = [
        TPC,
        "run",
        &model,
        "--tokens",
        "1,2",
        "-n",
        "4",
        "--devices",
        "cpu,cpu",
        ":",
        "-np",
        "1",
        "sleep",
        "60",
    ];
    let job = mpirun(1, &words).spawn().expect("mpirun runs");
    let ended = wait(job, START).unwrap_or_else(|e| panic!("{e}"));
    let (took, text) = (ended.took, ended.text);
    assert!(
        took <= LIMIT + Duration::from_secs(2),
        "the job ended after {took:?}: {text}"
    );
    assert!(text.contains("has not started within 3.5 s"), "{text}");
}

#[test]
fn wrong_usage_is_refused_once() {
    let scratch = Scratch::new();
    let model = scratch.model("a.gguf", "llama-tiny");
    let cases: [(&[&str], &str); 3] = [
        (&["--devices", "cpu"], "2 processes need a device each"),
        (
            &["--devices", "cpu,cpu", "--executor", "reference"],
            "does not run in several processes",
        ),
        (&["--devices", "cpu,cpu", "--temp", "x"], "--temp"),
    ];
    for (options, expected) in cases {
        let mut words = vec![TPC, "run", &model, "--tokens", "1,2", "-n", "4"];
        words.extend(options);
        let (success, text) = ends(mpirun(2, &words));
        assert!(
            !success && text.matches(expected).count() == 1,
            "{options:?}: {text}"
        );
    }
    let machines = [
        TPC,
        "run",
        &model,
        "--tokens",
        "1,2",
        "-n",
        "4",
        "--devices",
        "3*1xcpu@25gbe",
    ];
    let (success, text) = ends(mpirun(2, &machines));
    assert!(
        !success
            && text
                .matches("3 machines, but there are 2 processes")
                .count()
                == 1,
        "{text}"
    );
    let alone = Command::new(TPC)
        .args(&machines[1..])
        .output()
        .expect("tpc runs");
    let text = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(
        !alone.status.success() && text.contains("mpirun -np 3"),
        "{text}"
    );
    let (success, text) = ends(mpirun(2, &[TPC, "plan", &model, "--devices", "2"]));
    assert!(success, "{text}");
}
