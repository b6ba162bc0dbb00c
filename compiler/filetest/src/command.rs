/// The command of a file test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Parses the text.
    Parse,
    /// Prints the parsed text, which must equal the input.
    Print,
    /// Parses the text, which must give the expected errors.
    ParseError,
    /// Verifies the graph, which must give the expected errors.
    Verify,
    /// Prints a model's graph with places.
    Place,
    /// Prints a model's factors by layer.
    Factors,
    /// Prints the split factors and the ranges of the devices.
    Plan,
    /// Prints a model's sharded graph.
    Shard,
    /// Prints a rewritten sharded graph.
    Rewrite,
    /// Prints the programs of a sharded graph.
    Lower,
    /// Prints programs without dead, duplicate or redundant instructions.
    Canonicalise,
    /// Prints the storage of weights, and the views.
    Layout,
    /// Prints the kernel launches.
    Cover,
    /// Prints the buffers with their values.
    Buffers,
    /// Prints the queue of each place, step by step.
    Schedule,
    /// Proves that the programs in the section compute the model, or are refused on the expected line.
    Prove,
    /// Parses and verifies a program, which must give the expected errors.
    Program,
    /// Reports the findings about a planned graph or a synthetic model.
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
