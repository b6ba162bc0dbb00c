//! Prints results on standard output and diagnostics on standard error; sets the exit status.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use miette::{GraphicalReportHandler, GraphicalTheme, NarratableReportHandler};

use tpc_diag::{Diagnostic, Message, Severity, codes, unusable, visible};
use tpc_engine::{ErrorKind, Observer};
use tpc_runtime::ExecError;

use super::progress::Progress;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    /// One object; the keys are in the book.
    Json,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) diagnostics: Vec<Diagnostic>,
    /// 1 if the plan or comparison found errors; 2 for wrong usage or unreadable input.
    pub(super) status: u8,
}

impl Failure {
    pub(super) fn findings(diagnostics: Vec<Diagnostic>) -> Failure {
        Failure {
            diagnostics,
            status: 1,
        }
    }

    pub(super) fn usage(d: impl Into<Diagnostic>) -> Failure {
        Failure {
            diagnostics: vec![d.into()],
            status: 2,
        }
    }

    pub(super) fn file(path: &Path, e: &io::Error) -> Failure {
        let d = Diagnostic::new(
            &codes::FILE_ACCESS,
            path.display().to_string(),
            e.to_string(),
        );
        Failure::usage(d.help(match e.kind() {
            io::ErrorKind::PermissionDenied => {
                "make the file readable for this user (chmod, chown), or copy the file"
            }
            io::ErrorKind::IsADirectory => "the path is a folder: name a file in the folder",
            io::ErrorKind::InvalidInput => {
                "give the path of a file; save a pipe's output to a file first"
            }
            _ => "check the path and its permissions",
        }))
    }

    pub(super) fn write(entity: &str, e: &impl Display) -> Failure {
        let d = Diagnostic::new(&codes::FILE_ACCESS, entity, e.to_string());
        Failure::usage(
            d.help("check the output's target: the disk may be full, or the terminal closed"),
        )
    }

    pub(super) fn into_engine(self) -> tpc_engine::Error {
        tpc_engine::Error {
            diagnostics: self.diagnostics,
            kind: match self.status {
                1 => ErrorKind::Findings,
                _ => ErrorKind::Usage,
            },
        }
    }

    /// Returns a failure with status 2 if a diagnostic is about an option or the file itself, else 1.
    pub(super) fn from_diagnostics(diagnostics: Vec<Diagnostic>) -> Failure {
        let error = |d: &&Diagnostic| d.severity == Severity::Error;
        let status = if diagnostics.iter().filter(error).any(|d| unusable(d.code)) {
            2
        } else {
            1
        };
        Failure {
            diagnostics,
            status,
        }
    }
}

impl From<tpc_engine::Error> for Failure {
    fn from(e: tpc_engine::Error) -> Failure {
        Failure {
            diagnostics: e.diagnostics,
            status: match e.kind {
                ErrorKind::Findings => 1,
                ErrorKind::Usage => 2,
            },
        }
    }
}

impl From<ExecError> for Failure {
    fn from(e: ExecError) -> Failure {
        tpc_engine::Error::from(e).into()
    }
}

#[derive(Default)]
pub(super) struct Console<'p> {
    pub(super) progress: Option<&'p Progress>,
    pub(super) verbose: bool,
}

impl Observer for Console<'_> {
    fn diagnostic(&self, d: &Diagnostic) {
        diagnostic(d);
    }

    fn detail(&self, line: &str) {
        if self.verbose {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    fn tensor_loaded(&self) {
        if let Some(progress) = self.progress {
            progress.advance(1);
        }
    }
}

/// Returns a diagnostic with control characters replaced.
fn visible_on_terminal(d: &Diagnostic) -> Diagnostic {
    let text = |m: &Message| Message::from(visible(&m.to_string()).into_owned());
    Diagnostic {
        message: text(&d.message),
        help: d.help.as_ref().map(text),
        entity: visible(&d.entity.to_string()).into_owned().into(),
        ..d.clone()
    }
}

pub(super) fn diagnostic(d: &Diagnostic) {
    let d = &visible_on_terminal(d);
    let stderr = std::io::stderr();
    let mut text = String::new();
    let colour = stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let theme = if colour {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let rendered = GraphicalReportHandler::new_themed(theme)
        .with_width(prose_width())
        // Break lines only at spaces: users copy addresses and paths from the output.
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_break_words(false)
        .render_report(&mut text, d);
    if rendered.is_err() {
        text.clear();
        let _ = NarratableReportHandler::new().render_report(&mut text, d);
    }
    let _ = writeln!(stderr.lock(), "{}", text.trim_end());
}

/// Prints a result on standard output. Ignores a closed pipe.
pub(super) fn result(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::write("standard output", &e))
        }
        _ => Ok(()),
    }
}

/// Ends the process at once. A driver's exit handlers would wait for a launch that does not end.
pub(super) fn leave(status: u8) -> ! {
    let _ = io::stdout().flush();
    signal_hook::low_level::exit(status.into())
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| {
        let d = Diagnostic::new(&codes::FILE_ACCESS, "report", e.to_string());
        Failure::usage(d.help("use --format text"))
    })?;
    text.push('\n');
    result(&text)
}

/// Writes a file completely or not at all: on failure the old content stays. Writes pipes and terminals directly.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace_by(path, &mut |out| out.write_all(bytes)).map_err(|e| Failure::file(path, &e))
}

/// Checks that [`replace_by`] can write a file. Does not change the file.
pub(super) fn try_replace(path: &Path) -> io::Result<()> {
    let (target, part) = places(path)?;
    let Some(part) = part else {
        return match fs::metadata(&target)?.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        };
    };
    File::create_new(&part)?;
    fs::remove_file(&part)
}

/// Returns the target of a path, and the temporary file (`None` for pipes and terminals).
fn places(path: &Path) -> io::Result<(PathBuf, Option<PathBuf>)> {
    // Follow a symbolic link, so that the link stays.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(e) => return Err(e),
    };
    if fs::metadata(&target).is_ok_and(|m| !m.is_file()) {
        return Ok((target, None));
    }
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let part = target.with_file_name(name);
    Ok((target, Some(part)))
}

/// Replaces a file like [`replace`]; `write` writes the content.
pub(super) fn replace_by(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = |file: &mut File| {
        let mut out = io::BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    };
    let (target, part) = places(path)?;
    let Some(part) = part else {
        return buffered(&mut File::create(&target)?);
    };
    let mut file = File::create_new(&part)?;
    let written = buffered(&mut file).and_then(|()| file.sync_all());
    let written = written.and_then(|()| fs::rename(&part, &target));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })?;
    sync_folder(folder_of(&target))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Flushes a folder's entries to the disk, if the system supports this.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|f| f.sync_all()) {
        // A folder may be writable without being readable.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// The width if there is no terminal, in columns.
const WIDTH: u16 = 100;

/// Returns the width of tables, in columns: `COLUMNS`, or else the terminal's width.
pub(super) fn width() -> u16 {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(w, _)| w.0);
    let usable = |w: &u16| (40..=400).contains(w);
    columns
        .filter(usable)
        .or_else(|| terminal().filter(usable))
        .unwrap_or(WIDTH)
}

/// Returns the width of diagnostics: at most [`WIDTH`] columns.
fn prose_width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stderr()).map(|(w, _)| w.0);
    terminal.map_or(WIDTH, |w| w.clamp(40, WIDTH)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_a_folder_whose_names_come_to_the_disk() {
        assert_eq!(folder_of(Path::new("m.tpc")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/m.tpc")), Path::new("a"));
        assert!(sync_folder(Path::new(".")).is_ok());
        let gone = sync_folder(Path::new("no/such/folder"));
        assert_eq!(gone.is_err(), cfg!(unix));
    }
}
