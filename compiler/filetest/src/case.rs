use std::collections::BTreeSet;

use tpc_ir::text::Span;

use crate::command::Command;
use crate::expectation::{Failures, Reported, expectations};
use crate::frontend::Frontend;

const SECTION: &str = "; ---- ";

/// A parsed file test.
#[derive(Debug)]
pub struct Case {
    pub(crate) text: String,
    pub(crate) command: Command,
    pub(crate) options: Vec<String>,
    pub(crate) model: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) shapes: Vec<String>,
    /// The offset of the first line below the header.
    pub(crate) body: usize,
    pub(crate) section: Option<Section>,
    /// The expected findings. Findings of the header have line 0.
    pub(crate) expected: Vec<Reported>,
    /// The expected shardings: (line, sharding).
    pub(crate) shardings: Vec<(usize, String)>,
}

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) at: usize,
    pub(crate) body: usize,
}

#[derive(Default)]
struct Header {
    command: Option<Command>,
    options: Vec<String>,
    model: Option<String>,
    target: Option<String>,
    shapes: Vec<String>,
    expected: Vec<Reported>,
}

impl Header {
    fn directive(&mut self, number: usize, line: &str, frontend: &Frontend) -> Result<(), String> {
        if let Some(name) = line.strip_prefix("; test ") {
            let command = Command::from_name(name.trim());
            let command = command.ok_or_else(|| format!("{number}: unknown command `{name}`"))?;
            if self.command.replace(command).is_some() {
                return Err(format!("{number}: a second command"));
            }
        } else if let Some(options) = line.strip_prefix("; options ") {
            self.options
                .extend(options.split_whitespace().map(str::to_owned));
        } else if let Some(spec) = line.strip_prefix("; model ") {
            self.model = Some(spec.trim().to_owned());
        } else if let Some(name) = line.strip_prefix("; target ") {
            self.target = Some(name.trim().to_owned());
        } else if let Some(sizes) = line.strip_prefix("; shape ") {
            self.shapes.push(sizes.to_owned());
        } else if let Some(finding) = line.strip_prefix("; expect ") {
            let finding = format!("; {finding}");
            self.expected.extend(expectations(0, &finding, frontend)?);
        } else {
            return Err(format!("{number}: unknown directive `{line}`"));
        }
        Ok(())
    }
}

impl Case {
    /// Parses a file test.
    ///
    /// # Errors
    /// Returns the faults of the header, the sections and the expectations, each as `LINE: MESSAGE`.
    pub fn read(text: String, frontend: &Frontend) -> Result<Case, Failures> {
        let mut failures = Failures::new();
        let mut header = Header::default();
        let (mut expected, mut shardings) = (Vec::new(), Vec::new());
        let mut body = None;
        let mut section: Option<Section> = None;
        let mut at = 0;
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let (number, start) = (i + 1, at);
            at += line.len();
            let line = line.trim();
            if let Some(title) = line.strip_prefix(SECTION) {
                if section.is_some() {
                    failures.push(format!("{number}: a second section"));
                }
                body = body.or(Some(start));
                section = Some(Section {
                    title: title.trim().to_owned(),
                    at: start,
                    body: at,
                });
                continue;
            }
            if body.is_none() && (line.is_empty() || line.starts_with(";;")) {
                continue;
            }
            if body.is_none() && line.starts_with(';') {
                failures.extend(header.directive(number, line, frontend).err());
                continue;
            }
            body = body.or(Some(start));
            let output = header.command.and_then(Command::output);
            if section.is_some() && output.is_some() {
                continue;
            }
            let (line, sharding) = match line.split_once("; sharding: ") {
                Some((line, sharding)) => (line, Some(sharding)),
                None => (line, None),
            };
            shardings.extend(sharding.map(|s| (number, s.to_owned())));
            match expectations(number, line, frontend) {
                Ok(e) => expected.extend(e),
                Err(e) => failures.push(e),
            }
        }
        let case = Case {
            body: body.unwrap_or(text.len()),
            text,
            command: header.command.unwrap_or(Command::Parse),
            options: header.options,
            model: header.model,
            target: header.target,
            shapes: header.shapes,
            section,
            expected: header.expected.into_iter().chain(expected).collect(),
            shardings,
        };
        if header.command.is_none() {
            failures.push("1: no command: the header lacks `; test …`".to_owned());
        } else {
            failures.extend(case.misfits());
        }
        if failures.is_empty() {
            Ok(case)
        } else {
            Err(failures)
        }
    }

    /// Returns the command.
    pub fn command(&self) -> Command {
        self.command
    }

    /// Returns the codes that the case expects.
    pub fn codes(&self) -> BTreeSet<String> {
        self.expected.iter().map(|e| e.code.clone()).collect()
    }

    pub(crate) fn at(&self, span: Span, code: &str, message: String) -> Reported {
        Reported {
            line: span.line(&self.text),
            code: code.to_owned(),
            message,
        }
    }

    /// Returns a failure for each directive or section that the command rejects or lacks.
    fn misfits(&self) -> Failures {
        let mut failures = Failures::new();
        let mut refuse = |line: usize, what: &str| failures.push(format!("{line}: {what}"));
        if !self.options.is_empty() && !self.command.takes_options() {
            refuse(1, "the command takes no options");
        }
        if self.target.is_some() && !self.command.takes_target() {
            refuse(1, "the command takes no target");
        }
        if !self.shapes.is_empty() && !self.command.takes_shapes() {
            refuse(1, "the command takes no shapes");
        }
        if self.command != Command::Lint {
            if self.model.is_some() {
                refuse(1, "only `lint` takes a model");
            }
            if let Some((number, _)) = self.shardings.first() {
                refuse(*number, "only `lint` takes shardings");
            }
        }
        let lineless = matches!(self.command, Command::Lint | Command::Prove);
        if !lineless && self.expected.iter().any(|e| e.line == 0) {
            refuse(1, "only `lint` and `prove` take findings without a line");
        }
        let section = match self.command {
            Command::Prove => Some("programs"),
            other => other.output(),
        };
        match (section, &self.section) {
            (Some(title), Some(s)) if s.title != title => {
                refuse(1, &format!("the section is called `{title}`"));
            }
            (None, Some(_)) => refuse(1, "the command has no sections"),
            (Some(_) | None, _) => {}
        }
        failures
    }

    /// Returns the text above the section. Line numbers stay the file's.
    pub(crate) fn input(&self) -> &str {
        self.section
            .as_ref()
            .map_or(&self.text, |s| &self.text[..s.at])
    }

    /// Returns the text of the section, if any.
    pub(crate) fn below(&self) -> &str {
        self.section.as_ref().map_or("", |s| &self.text[s.body..])
    }

    /// Returns the line at an offset, from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.text[..offset.min(self.text.len())]
            .matches('\n')
            .count()
            + 1
    }
}
