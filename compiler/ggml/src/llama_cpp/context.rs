use super::command::{CommandLine, is_off};
use super::option_spec::Setting;
use super::programs::{Maker, Program};

/// The context that a command requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The tokens of all sequences; `None` for the model's context.
    pub ctx_size: Option<u64>,
    /// The number of sequences; `None` if unspecified.
    pub sequences: Option<u64>,
}

/// The settings that llama.cpp chooses so that the model fits into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FittedSettings {
    /// True if llama.cpp chooses the context.
    pub context: bool,
    /// True if llama.cpp chooses the layers on the devices, their split, and the tensors on the host.
    pub layers: bool,
}

impl FittedSettings {
    /// True if llama.cpp chooses at least one setting.
    pub fn any(self) -> bool {
        self.context || self.layers
    }
}

fn largest(list: &str) -> Option<u64> {
    let last = |part: &str| {
        let last = part.split_once('-').map_or(part, |(_, rest)| rest);
        let last = last.split(['+', '*']).next().unwrap_or(last);
        last.parse::<u64>().ok()
    };
    list.split(',').filter_map(last).max()
}

impl CommandLine {
    /// Returns the context that the command requests.
    pub fn context(&self) -> Context {
        let count = |setting| self.count(setting).filter(|&n| n > 0);
        match self.kind {
            Program::General => Context {
                ctx_size: count(Setting::CtxSize),
                sequences: count(Setting::Parallel),
            },
            Program::Bench => Context {
                ctx_size: Some(self.largest_test().max(1)),
                sequences: None,
            },
            Program::Chunks => {
                let ctx_size = count(Setting::CtxSize).unwrap_or(512);
                let several = self.count(Setting::Batch).unwrap_or(2048) / ctx_size;
                let sequences = several.max(1);
                Context {
                    ctx_size: Some(sequences.saturating_mul(ctx_size)),
                    sequences: Some(sequences),
                }
            }
        }
    }

    /// Returns the tokens of a benchmark's largest test. Prompts and generation are separate tests.
    fn largest_test(&self) -> u64 {
        let most = |setting, default: u64| {
            let all = self.all(setting).filter_map(|o| largest(&o.value));
            all.max().unwrap_or(default)
        };
        let pairs = self.all(Setting::PromptAndGenerated).map(|o| {
            let numbers = o.value.split(',').filter_map(|n| n.trim().parse().ok());
            numbers.fold(0, u64::saturating_add)
        });
        let test = most(Setting::PromptTokens, 512)
            .max(most(Setting::GeneratedTokens, 128))
            .max(pairs.max().unwrap_or(0));
        test.saturating_add(most(Setting::Depth, 0))
    }

    /// Returns the settings that llama.cpp chooses if the model does not fit.
    pub fn fitted_settings(&self) -> FittedSettings {
        let given = |setting| self.last(setting).is_some();
        let is_fitted = match self.kind {
            // ik_llama.cpp chooses settings only with `--fit`.
            _ if self.maker == Maker::IkLlamaCpp => {
                self.value(Setting::Fit).is_some_and(|v| !is_off(v))
            }
            Program::Bench => given(Setting::FitTarget),
            Program::General | Program::Chunks => !self.is_off(Setting::Fit),
        };
        if !is_fitted || self.splits_tensors() {
            return FittedSettings::default();
        }
        let placed = [
            Setting::TensorSplit,
            Setting::Override,
            Setting::CpuMoe,
            Setting::NCpuMoe,
            Setting::NCpuFfn,
        ];
        let layers = self.value(Setting::GpuLayers);
        FittedSettings {
            // `-c 0` requests the model's context.
            context: self.kind == Program::General
                && self.maker == Maker::LlamaCpp
                && !given(Setting::CtxSize),
            layers: layers.is_none_or(|l| matches!(l, "auto" | "-1"))
                && !placed.into_iter().any(given)
                && self.value(Setting::SplitMode) != Some("row"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn each_program_has_its_context() {
        let of = |line| {
            let Context {
                ctx_size,
                sequences,
            } = read(line).context();
            (ctx_size, sequences)
        };
        assert_eq!(of("llama-server"), (None, None));
        assert_eq!(of("llama-server -c 0 -np -1"), (None, None));
        assert_eq!(of("llama-server -c 8192 -np 2"), (Some(8192), Some(2)));
        assert_eq!(of("llama-bench"), (Some(512), None));
        assert_eq!(
            of("llama-bench -c 9 -p 64 -n 256 -d 4096,8192"),
            (Some(8448), None)
        );
        assert_eq!(of("llama-bench -pg 1024,256"), (Some(1280), None));
        assert_eq!(of("llama-bench -p 512-2048*2 -n 0"), (Some(2048), None));
        assert_eq!(of("llama-perplexity"), (Some(2048), Some(4)));
        assert_eq!(of("llama-perplexity -c 4096"), (Some(4096), Some(1)));
        assert_eq!(of("llama-imatrix -c 512 -b 512"), (Some(512), Some(1)));
    }

    #[test]
    fn what_is_open_is_fitted() {
        let of = |line| {
            let FittedSettings { context, layers } = read(line).fitted_settings();
            (context, layers)
        };
        assert_eq!(of("llama-server"), (true, true));
        assert_eq!(of("llama-server -c 0 -ngl auto"), (false, true));
        assert_eq!(of("llama-server -c 8192"), (false, true));
        assert_eq!(of("llama-server -ngl 99"), (true, false));
        assert_eq!(of("llama-server -ts 1,1"), (true, false));
        assert_eq!(of("llama-server -fit off"), (false, false));
        assert_eq!(of("llama-server -sm tensor"), (false, false));
        assert_eq!(of("llama-bench"), (false, false));
        assert_eq!(of("ik_llama-server"), (false, false));
        assert_eq!(of("ik_llama-server --fit"), (false, true));
    }
}
