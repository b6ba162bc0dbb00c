use super::option_spec::OptionSpec;

/// An option or environment variable of a command line, with its argument.
#[derive(Clone, Debug)]
pub struct ParsedOption {
    /// The option.
    pub spec: &'static OptionSpec,
    /// The spelling: `-c`, or `LLAMA_ARG_CTX_SIZE`.
    pub spelling: String,
    /// The argument, or two arguments separated by a space; `on` or `off` for a switch.
    pub value: String,
    /// True for an environment variable.
    pub from_env: bool,
}
