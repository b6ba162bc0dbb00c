//! The commands of file tests.

/// A command: one per pass, and those on text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The text parses.
    Parse,
    /// The text is what printing it gives.
    Print,
    /// Parsing gives the expected errors.
    ParseError,
    /// Verifying gives the expected errors.
    Verify,
    /// The placed graph of a model.
    Place,
    /// The factors of a model, layer by layer.
    Factors,
    /// The sharded graph of a model.
    Shard,
    /// A sharded graph, rewritten.
    Rewrite,
    /// The programs of a sharded graph.
    Lower,
    /// Programs without dead, double or undone work.
    Canonicalise,
    /// The programs of the second section compute the model of the first, or are refused on the expected line.
    Prove,
    /// Parsing and verifying a program gives the expected errors.
    Program,
    /// The findings about a planned graph, or about a synthetic model.
    Lint,
}

impl Command {
    /// Every command, by name.
    pub(crate) const ALL: [(&'static str, Command); 13] = [
        ("parse", Command::Parse),
        ("print", Command::Print),
        ("parse-error", Command::ParseError),
        ("verify", Command::Verify),
        ("place", Command::Place),
        ("factors", Command::Factors),
        ("shard", Command::Shard),
        ("rewrite", Command::Rewrite),
        ("lower", Command::Lower),
        ("canonicalise", Command::Canonicalise),
        ("prove", Command::Prove),
        ("program", Command::Program),
        ("lint", Command::Lint),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Command> {
        let found = Command::ALL.iter().find(|(n, _)| *n == name);
        found.map(|(_, c)| *c)
    }

    /// The title of the section with the exact output, for commands that have one.
    pub(crate) fn output(self) -> Option<&'static str> {
        match self {
            Command::Place => Some("placed"),
            Command::Factors => Some("factors"),
            Command::Shard => Some("sharded"),
            Command::Rewrite => Some("rewritten"),
            Command::Lower | Command::Canonicalise => Some("programs"),
            Command::Parse
            | Command::Print
            | Command::ParseError
            | Command::Verify
            | Command::Prove
            | Command::Program
            | Command::Lint => None,
        }
    }

    /// Whether the header may have `; options`.
    pub(crate) fn takes_options(self) -> bool {
        matches!(
            self,
            Command::Place | Command::Factors | Command::Shard | Command::Lint
        )
    }
}
