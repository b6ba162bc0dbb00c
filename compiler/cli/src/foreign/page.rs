//! Other programs' options as table rows for the book.

use clap::Command;

use super::short::SHORT;
use super::table::{Effect, FOREIGN_OPTIONS};
use super::words::own;

/// Returns the options of other programs, each with its effect in tpc, in Markdown.
pub(crate) fn rows(program: &Command) -> Vec<[String; 2]> {
    let run = program.find_subcommand("run");
    let in_run = |name: &str| {
        let long = SHORT.iter().find(|(short, _)| *short == name);
        run.is_some_and(|run| own(run, long.map_or(name, |(_, long)| long)).is_some())
    };
    let mut rows = Vec::new();
    for foreign in FOREIGN_OPTIONS {
        let names: Vec<&str> = foreign.names().collect();
        let effect = match foreign.effect {
            Effect::Model => "the model: a file or an address".to_owned(),
            Effect::Repository => {
                "a model of this Hugging Face repository: from a cache, or else from the hub"
                    .to_owned()
            }
            Effect::RepositoryFile => "a file of the repository of `-hf`".to_owned(),
            Effect::Means(to) => format!("`{to}`"),
            Effect::Translated(to, _) if names.contains(&to) => {
                "other programs' values are translated, such as `-sm row` and `-np -1`".to_owned()
            }
            Effect::Translated(to, _) => format!("`{to}`, with its value translated"),
            Effect::Ignored(why) => format!("no effect: {why}"),
            Effect::Unplanned(why) => {
                let (has, lacks): (Vec<&str>, Vec<&str>) = names.iter().partition(|n| in_run(n));
                for (names, of_run) in [(has, "`run` has it"), (lacks, "`run` refuses it")] {
                    if !names.is_empty() {
                        rows.push([
                            listed(&names),
                            format!("no effect on plans: {why}; {of_run}"),
                        ]);
                    }
                }
                continue;
            }
            Effect::Refused(message, cure) => format!("refused: {message}; {cure}"),
        };
        rows.push([listed(&names), effect]);
    }
    rows
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    names.join(" ")
}
