//! A command line's option with its argument.

use super::option_spec::OptionSpec;

/// A command line's option or environment variable, with its argument.
#[derive(Clone, Debug)]
pub struct ParsedOption {
    /// The option.
    pub spec: &'static OptionSpec,
    /// The spelling: `-c`, or `LLAMA_ARG_CTX_SIZE`.
    pub spelling: String,
    /// The argument, or both arguments with a space between; `on` or `off` for a switch.
    pub value: String,
    /// True for an environment variable.
    pub from_env: bool,
}
