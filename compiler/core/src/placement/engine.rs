//! `--engine` and `--backend`: the planned engine with its release, and its back ends.

use tpc_diag::{Diagnostic, codes};
use tpc_ggml::engines::{Backend, Build};
use tpc_ggml::llama_cpp::Maker;
use tpc_passes::machine::Engine;

use super::{DeviceKind, DeviceSpec, Placement};
use crate::cards::{Vendor, table};

/// An engine with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineChoice {
    /// The engine.
    pub engine: Engine,
    /// The release whose limits apply. For tpc, llama.cpp's release for the printed command.
    pub build: &'static Build,
}

impl Default for EngineChoice {
    fn default() -> EngineChoice {
        EngineChoice::newest(Engine::Tpc)
    }
}

/// Returns an engine's project.
pub const fn maker(engine: Engine) -> Maker {
    match engine {
        Engine::Tpc | Engine::LlamaCpp => Maker::LlamaCpp,
        Engine::IkLlamaCpp => Maker::IkLlamaCpp,
    }
}

impl EngineChoice {
    /// Returns the newest release of an engine.
    pub fn newest(engine: Engine) -> EngineChoice {
        EngineChoice {
            engine,
            build: Build::newest(maker(engine)),
        }
    }
}

/// Parses an engine with an optional release: `llama.cpp@0.5.0`.
///
/// # Errors
/// Returns TPC0400 for an unknown engine or release.
pub fn parse_engine(text: &str) -> Result<EngineChoice, Diagnostic> {
    let wrong = |message: String| Diagnostic::new(&codes::COMMAND_LINE, "--engine", message);
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let Some(engine) = Engine::from_name(name) else {
        let known = Engine::ALL.map(Engine::name).join(", ");
        return Err(wrong(format!("unknown engine `{name}`")).help(format!("use one of {known}")));
    };
    let Some(version) = version else {
        return Ok(EngineChoice::newest(engine));
    };
    let found = match engine {
        Engine::Tpc => None,
        Engine::LlamaCpp | Engine::IkLlamaCpp => Build::find(maker(engine), version),
    };
    let Some(build) = found else {
        let message = format!("tpc does not know {name} {version}");
        let known: Vec<&str> = match engine {
            Engine::Tpc => Vec::new(),
            Engine::LlamaCpp | Engine::IkLlamaCpp => Build::versions(maker(engine)).collect(),
        };
        let help = match known.is_empty() {
            true => format!("leave out `@{version}`"),
            false => format!(
                "use {name}@{}, or leave out the version for the newest",
                known.join(&format!(", {name}@"))
            ),
        };
        return Err(wrong(message).help(help));
    };
    Ok(EngineChoice { engine, build })
}

/// Parses a ggml back end.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_backend(text: &str) -> Result<Backend, Diagnostic> {
    Backend::from_name(text).ok_or_else(|| {
        let known = Backend::ALL.map(Backend::name).join(", ");
        let message = format!("unknown back end `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--backend", message);
        d.help(format!("use one of {known}"))
    })
}

fn of_device(device: &DeviceSpec) -> Option<Backend> {
    match device.kind {
        DeviceKind::Cpu | DeviceKind::Numa(_) => return Some(Backend::Cpu),
        DeviceKind::Cuda(_) => return Some(Backend::Cuda),
        DeviceKind::Generic => {}
    }
    let card = device.card.as_deref()?;
    let card = table().cards.iter().find(|c| c.name == card)?;
    Some(match card.vendor? {
        Vendor::Nvidia => Backend::Cuda,
        Vendor::Amd => Backend::Rocm,
        Vendor::Intel => Backend::Sycl,
        Vendor::Apple => Backend::Metal,
    })
}

impl Placement {
    /// Returns the release whose limits apply to an engine.
    pub fn build_of(&self, engine: Engine) -> &'static Build {
        match maker(self.engine) == maker(engine) {
            true => self.build,
            false => Build::newest(maker(engine)),
        }
    }

    /// Returns each device's back end: `--backend`, or else the usual back end of the card's vendor.
    pub fn backends(&self) -> Vec<Option<Backend>> {
        let of = |d: &DeviceSpec| self.backend.or_else(|| of_device(d));
        self.devices.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_may_have_a_release() {
        let newest = parse_engine("llama.cpp").expect("an engine");
        assert_eq!(newest.build.version, "0.8.0");
        let old = parse_engine("llama.cpp@0.5.0").expect("a release");
        assert_eq!(
            (old.engine, old.build.version.as_str()),
            (Engine::LlamaCpp, "0.5.0")
        );
        assert_eq!(parse_engine("tpc"), Ok(EngineChoice::default()));
        for bad in [
            "",
            "vllm",
            "llama.cpp@",
            "llama.cpp@9.9",
            "tpc@0.1",
            "@0.5.0",
        ] {
            let d = parse_engine(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
        assert_eq!(parse_backend("vulkan"), Ok(Backend::Vulkan));
        assert!(parse_backend("directx").is_err());
    }
}
