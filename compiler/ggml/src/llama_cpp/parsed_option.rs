//! An option of a command line with its argument.

use super::option_spec::OptionSpec;

/// An option of a command line, or an environment variable before it, with its argument.
#[derive(Clone, Debug)]
pub struct ParsedOption {
    /// The option.
    pub spec: &'static OptionSpec,
    /// Its spelling in the line: `-c`, or `LLAMA_ARG_CTX_SIZE`.
    pub spelling: String,
    /// Its argument, or its two arguments with a space between; `on` or `off` for a switch.
    pub value: String,
    /// True if an environment variable stands for it.
    pub from_env: bool,
}
