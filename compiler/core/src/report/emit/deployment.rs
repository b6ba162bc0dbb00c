use std::path::Path;

use tpc_diag::Diagnostic;
use tpc_passes::machine::{Backend, Engine};

use super::{Emitter, Unfit, refusal};
use crate::format::printable;
use crate::placement::Placement;
use crate::report::{PlanReport, ShellCommand};

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// An option, or a value.
    Text(String),
    /// An absolute path.
    Path(String),
}

impl Word {
    pub(super) fn text(&self) -> &str {
        match self {
            Word::Text(text) | Word::Path(text) => text,
        }
    }
}

/// An engine's command for a plan, and the facts that configurations need.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// The model's file name without its extension, in lower case: letters, digits and single hyphens.
    pub(super) name: String,
    /// Lines about the plan, for comments.
    pub(super) about: Vec<String>,
    pub(super) engine: Engine,
    /// The words after the program.
    pub(super) words: Vec<Word>,
    /// The back ends of the host's own devices.
    pub(super) backends: Vec<Backend>,
    /// The back ends of the servers' devices, one per server.
    pub(super) server_backends: Vec<Backend>,
    /// The devices of each machine, if tpc runs on several machines with MPI.
    pub(super) machines: Vec<usize>,
    /// True if the command names its devices.
    pub(super) lists_devices: bool,
    /// The container image of `--emit-image`.
    pub(super) image: Option<String>,
}

/// The program of both engines.
pub(super) const PROGRAM: &str = "llama-server";

/// Options whose value is a path.
const PATHS: [&str; 5] = ["-m", "-md", "--mmproj", "--lora", "--control-vector"];

impl Deployment {
    /// Takes the printed command of a plan. Paths become absolute: they start at `folder`.
    ///
    /// # Errors
    /// Returns TPC0416 if the engine cannot run the plan.
    pub fn new(
        target: &Emitter,
        (report, placement): (&PlanReport, &Placement),
        folder: &Path,
        image: Option<&str>,
    ) -> Result<Deployment, Diagnostic> {
        let (engine, command) = command(report, placement).map_err(|u| refusal(target.name, u))?;
        let all = command.words();
        // MPI's words come before the program.
        let program = all.iter().position(|w| w == "tpc").unwrap_or(0);
        let words = all.get(program + 1..).unwrap_or_default();
        let is_path =
            |before: &str| PATHS.contains(&before) || engine == Engine::Tpc && before == "run";
        let words: Vec<Word> = (0..words.len())
            .map(
                |i| match i.checked_sub(1).map(|before| words[before].as_str()) {
                    Some(option) if is_path(option) => Word::Path(absolute(folder, &words[i])),
                    _ => Word::Text(words[i].clone()),
                },
            )
            .collect();
        let commands = &report.commands;
        let notes = commands.llama_cpp_order.iter().chain(&commands.needs);
        let mut about = vec![format!(
            "{} on {}, planned by tpc",
            report.model.name,
            report.machine.devices_in_words()
        )];
        about.extend(notes.cloned());
        let away = placement.servers.among(placement.devices.len());
        let (mut backends, mut server_backends) = (Vec::new(), Vec::new());
        for (d, backend) in placement.backends().into_iter().enumerate() {
            match away.contains(&d) {
                true => server_backends.push(backend.unwrap_or_default()),
                false => backends.push(backend.unwrap_or_default()),
            }
        }
        Ok(Deployment {
            name: name(&report.model.path),
            about: about.iter().map(|line| printable(line)).collect(),
            engine,
            machines: match engine {
                Engine::Tpc => machine_sizes(placement),
                Engine::LlamaCpp | Engine::IkLlamaCpp => Vec::new(),
            },
            lists_devices: words.iter().any(|w| w.text() == "-dev"),
            words,
            backends,
            server_backends,
            image: image.map(str::to_owned),
        })
    }

    /// Returns the lines about the plan as comments, with `#`.
    pub(super) fn comments(&self) -> String {
        self.about
            .iter()
            .map(|line| format!("# {line}\n"))
            .collect()
    }

    /// Returns the command's words with the words of a deployment after the model.
    pub(super) fn command(&self, more: &[&str]) -> Vec<String> {
        let own = self.words.iter().map(|w| w.text().to_owned());
        own.chain(more.iter().map(|&w| w.to_owned())).collect()
    }
}

/// Returns the number of devices in each machine.
fn machine_sizes(placement: &Placement) -> Vec<usize> {
    let all: Vec<usize> = (0..placement.devices.len()).collect();
    let machines = placement.topology.machines.group(&all);
    machines.iter().map(Vec::len).collect()
}

/// Returns the command that the plan prints, with its engine. Only tpc runs on several machines without servers.
fn command<'r>(
    report: &'r PlanReport,
    placement: &Placement,
) -> Result<(Engine, &'r ShellCommand), Unfit> {
    let c = &report.commands;
    let of_ik = c
        .ik_llama_cpp
        .as_ref()
        .map(|command| (Engine::IkLlamaCpp, command));
    let of_llama = c
        .llama_cpp
        .as_ref()
        .map(|command| (Engine::LlamaCpp, command));
    let of_tpc = c.tpc.as_ref().map(|command| (Engine::Tpc, command));
    let (found, reason) = match placement.engine {
        Engine::Tpc if placement.is_cluster() => (of_tpc, &c.tpc_reason),
        Engine::IkLlamaCpp => (of_ik, &c.ik_llama_cpp_reason),
        Engine::Tpc | Engine::LlamaCpp => (of_llama.or(of_ik), &c.llama_cpp_reason),
    };
    found.ok_or_else(|| {
        let engine = match placement.engine {
            Engine::IkLlamaCpp => Engine::IkLlamaCpp,
            Engine::Tpc if placement.is_cluster() => Engine::Tpc,
            Engine::Tpc | Engine::LlamaCpp => Engine::LlamaCpp,
        };
        let reason = reason
            .as_deref()
            .unwrap_or("it has no command for the plan");
        let cure = match c.llama_cpp_by_layers {
            Some(_) => "add `-sm layer`, which the engine runs",
            None => "change the file or option in the message",
        };
        Unfit::new(
            format!("{} cannot run this plan: {reason}", engine.name()),
            cure,
        )
    })
}

fn absolute(folder: &Path, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    folder.join(path).to_string_lossy().into_owned()
}

/// The maximum length of a name. Kubernetes appends numbers to it, and allows 63 characters.
const LONGEST: usize = 40;

/// Returns a name that every target accepts.
fn name(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let file = file.split('?').next().unwrap_or(file);
    let stem = file
        .strip_suffix(".gguf")
        .unwrap_or(file)
        .to_ascii_lowercase();
    let words = stem.split(|c: char| !c.is_ascii_alphanumeric());
    let mut out = words
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join("-");
    out.truncate(LONGEST);
    let out = out.trim_end_matches('-');
    match out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => out.to_owned(),
        false => format!("model-{out}").trim_end_matches('-').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_letters_digits_and_hyphens() {
        for (path, expected) in [
            ("/m/Qwen3-0.6B-Q8_0.gguf", "qwen3-0-6b-q8-0"),
            ("a b'c\"$%\n.gguf", "a-b-c"),
            ("日本.gguf", "model"),
            ("70b.gguf", "model-70b"),
            ("https://h/x.gguf?download=true", "x"),
        ] {
            assert_eq!(name(path), expected, "{path}");
        }
        let long = name(&"ab-".repeat(99));
        assert!(
            long.len() <= LONGEST && long.ends_with(|c: char| c.is_alphanumeric()),
            "{long}"
        );
    }

    #[test]
    fn paths_become_absolute() {
        let of = |path| absolute(Path::new("/home/me"), path);
        assert_eq!(of("m.gguf"), "/home/me/m.gguf");
        assert_eq!(of("./-c.gguf"), "/home/me/-c.gguf");
        assert_eq!(of("/models/m.gguf"), "/models/m.gguf");
    }
}
