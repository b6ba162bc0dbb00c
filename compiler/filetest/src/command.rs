//! The commands of file tests.

/// A command: one per pass, and the commands on text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The text parses.
    Parse,
    /// Printing the parsed text reproduces it.
    Print,
    /// Parsing gives the expected errors.
    ParseError,
    /// Verifying gives the expected errors.
    Verify,
    /// The placed graph of a model.
    Place,
    /// The factors of a model, layer by layer.
    Factors,
    /// The factors that a plan splits, and the ranges of the devices.
    Plan,
    /// The sharded graph of a model.
    Shard,
    /// A sharded graph, rewritten.
    Rewrite,
    /// The programs of a sharded graph.
    Lower,
    /// Programs without dead, double or undone work.
    Canonicalise,
    /// The storage of weights, and the views.
    Layout,
    /// The launches.
    Cover,
    /// The buffers and the values in them.
    Buffers,
    /// The queues of the places, step by step.
    Schedule,
    /// The programs of the second section compute the model of the first, or are refused on the expected line.
    Prove,
    /// Parsing and verifying a program gives the expected errors.
    Program,
    /// The findings about a planned graph, or about a synthetic model.
    Lint,
}

impl Command {
    /// Every command, by name.
    pub const ALL: [(&'static str, Command); 18] = [
        ("parse", Command::Parse),
        ("print", Command::Print),
        ("parse-error", Command::ParseError),
        ("verify", Command::Verify),
        ("place", Command::Place),
        ("factors", Command::Factors),
        ("plan", Command::Plan),
        ("shard", Command::Shard),
        ("rewrite", Command::Rewrite),
        ("lower", Command::Lower),
        ("canonicalise", Command::Canonicalise),
        ("layout", Command::Layout),
        ("cover", Command::Cover),
        ("buffers", Command::Buffers),
        ("schedule", Command::Schedule),
        ("prove", Command::Prove),
        ("program", Command::Program),
        ("lint", Command::Lint),
    ];

    /// Returns the command of this name.
    pub fn from_name(name: &str) -> Option<Command> {
        let found = Command::ALL.iter().find(|(n, _)| *n == name);
        found.map(|(_, c)| *c)
    }

    /// Returns the title of the section with the exact output, if the command has one.
    pub(crate) fn output(self) -> Option<&'static str> {
        match self {
            Command::Place => Some("placed"),
            Command::Factors => Some("factors"),
            Command::Plan => Some("plan"),
            Command::Shard => Some("sharded"),
            Command::Rewrite => Some("rewritten"),
            Command::Lower | Command::Canonicalise => Some("programs"),
            Command::Layout => Some("layouts"),
            Command::Cover => Some("launches"),
            Command::Buffers => Some("buffers"),
            Command::Schedule => Some("queues"),
            Command::Parse
            | Command::Print
            | Command::ParseError
            | Command::Verify
            | Command::Prove
            | Command::Program
            | Command::Lint => None,
        }
    }

    /// Returns true if the header may have `; options`.
    pub(crate) fn takes_options(self) -> bool {
        matches!(
            self,
            Command::Place | Command::Factors | Command::Plan | Command::Shard | Command::Lint
        )
    }

    /// Returns true if the header may have `; target`.
    pub(crate) fn takes_target(self) -> bool {
        matches!(
            self,
            Command::Layout | Command::Cover | Command::Buffers | Command::Schedule
        )
    }

    /// Returns true if the header may have `; shape`.
    pub(crate) fn takes_shapes(self) -> bool {
        matches!(self, Command::Buffers | Command::Schedule)
    }
}
