//! Runs a fuzz target over files, folders of files, or standard input.
//!
//! `replay tpir|gguf|artefact [PATH…]` prints the path of each input; a failing input panics.
#![deny(unsafe_code)]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use tpc_fuzz::TARGETS;

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    let name = args.next().unwrap_or_default();
    let Some((_, target)) = TARGETS.iter().find(|(n, _)| name == *n) else {
        eprintln!("usage: replay tpir|gguf|artefact [PATH…]");
        return ExitCode::from(2);
    };
    let paths: Vec<PathBuf> = args.map(PathBuf::from).collect();
    match run(*target, &paths) {
        Ok(n) => {
            eprintln!("{n} inputs hold");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run(target: fn(&[u8]), paths: &[PathBuf]) -> io::Result<usize> {
    if paths.is_empty() {
        let mut data = Vec::new();
        io::stdin().read_to_end(&mut data)?;
        target(&data);
        return Ok(1);
    }
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    for path in &files {
        eprintln!("{}", path.display());
        target(&fs::read(path)?);
    }
    Ok(files.len())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries: io::Result<Vec<PathBuf>> = fs::read_dir(path)?.map(|e| Ok(e?.path())).collect();
    let mut entries = entries?;
    entries.sort();
    entries.iter().try_for_each(|p| collect(p, files))
}
