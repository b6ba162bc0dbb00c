/// The command of a file test.
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
    /// A model's placed graph.
    Place,
    /// A model's factors, layer by layer.
    Factors,
    /// The split factors, and the devices' ranges.
    Plan,
    /// A model's sharded graph.
    Shard,
    /// A sharded graph, rewritten.
    Rewrite,
    /// A sharded graph's programs.
    Lower,
    /// Programs without dead, double or undone work.
    Canonicalise,
    /// Weight storage and views.
    Layout,
    /// The launches.
    Cover,
    /// Buffers with their values.
    Buffers,
    /// The places' queues, step by step.
    Schedule,
    /// The second section's programs compute the first's model, or are refused on the expected line.
    Prove,
    /// Parsing and verifying a program gives the expected errors.
    Program,
    /// The findings about a planned graph or a synthetic model.
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

    /// Returns the command by name.
    pub fn from_name(name: &str) -> Option<Command> {
        let found = Command::ALL.iter().find(|(n, _)| *n == name);
        found.map(|(_, c)| *c)
    }

    /// Returns the title of the section with the exact output, if any.
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

    pub(crate) fn takes_options(self) -> bool {
        matches!(
            self,
            Command::Place | Command::Factors | Command::Plan | Command::Shard | Command::Lint
        )
    }

    pub(crate) fn takes_target(self) -> bool {
        matches!(
            self,
            Command::Layout | Command::Cover | Command::Buffers | Command::Schedule
        )
    }

    pub(crate) fn takes_shapes(self) -> bool {
        matches!(self, Command::Buffers | Command::Schedule)
    }
}
