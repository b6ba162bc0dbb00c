/// An engine that tpc estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// tpc.
    #[default]
    Tpc,
    /// llama.cpp.
    LlamaCpp,
    /// ik_llama.cpp.
    IkLlamaCpp,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 3] = [Engine::Tpc, Engine::LlamaCpp, Engine::IkLlamaCpp];

    /// Returns the name for `--engine`.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Tpc => "tpc",
            Engine::LlamaCpp => "llama.cpp",
            Engine::IkLlamaCpp => "ik_llama.cpp",
        }
    }

    /// Returns the engine with this name.
    pub fn from_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|e| e.name() == name)
    }
}
