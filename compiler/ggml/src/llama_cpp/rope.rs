use super::command::CommandLine;
use super::option_spec::Setting;

/// The RoPE scaling of a command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeOptions {
    /// The kind: `none`, `linear` or `yarn`.
    pub kind: Option<String>,
    /// The scaling factor.
    pub factor: Option<f64>,
    /// The context before scaling, in tokens.
    pub original: Option<u64>,
    /// The model's context, in tokens.
    pub context: Option<u64>,
}

/// The RoPE settings.
pub const ROPE_SETTINGS: [Setting; 5] = [
    Setting::RopeScaling,
    Setting::RopeFactor,
    Setting::RopeFrequency,
    Setting::YarnContext,
    Setting::Rope,
];

/// Parses a metadata override `KEY=TYPE:VALUE`. Returns the key without the architecture, and the value.
pub fn metadata_override(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    let (_, value) = value.split_once(':')?;
    let (_, name) = key.split_once('.')?;
    Some((name.trim(), value.trim()))
}

/// True if an override affects only the maximum context.
pub fn is_of_context(name: &str) -> bool {
    name == "context_length" || name.starts_with("rope.")
}

impl CommandLine {
    /// Returns the RoPE scaling. Options override metadata. Of the factor and its inverse, the later option takes
    /// effect.
    pub fn rope(&self) -> RopeOptions {
        let mut out = RopeOptions::default();
        let overrides = self.all(Setting::OverrideKv);
        for part in overrides.flat_map(|o| o.value.split(',')) {
            let Some((name, value)) = metadata_override(part) else {
                continue;
            };
            match name {
                "rope.scaling.type" => out.kind = Some(value.to_owned()),
                "rope.scaling.factor" => out.factor = value.parse().ok(),
                "rope.scaling.original_context_length" => out.original = value.parse().ok(),
                "context_length" => out.context = value.parse().ok(),
                _ => {}
            }
        }
        for given in &self.options {
            let number = given.value.parse::<f64>().ok().filter(|n| *n > 0.0);
            match given.spec.setting {
                Setting::RopeScaling => out.kind = Some(given.value.clone()),
                Setting::RopeFactor => out.factor = number.or(out.factor),
                Setting::RopeFrequency => out.factor = number.map(|n| 1.0 / n).or(out.factor),
                Setting::YarnContext => {
                    let tokens = given.value.parse().ok().filter(|&n: &u64| n > 0);
                    out.original = tokens.or(out.original);
                }
                _ => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn lines_scale_the_rotation() {
        let of = |line: &str| {
            let RopeOptions {
                kind,
                factor,
                original,
                context,
            } = read(line).rope();
            (kind, factor, original, context)
        };
        let yarn = Some("yarn".to_owned());
        assert_eq!(
            of("llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768"),
            (yarn.clone(), Some(4.0), Some(32768), None)
        );
        assert_eq!(of("llama-cli --rope-freq-scale 0.25").1, Some(4.0));
        assert_eq!(
            of("llama-cli --rope-scale 2 --rope-freq-scale 0.125").1,
            Some(8.0)
        );
        assert_eq!(
            of(
                "llama-cli --override-kv qwen3.rope.scaling.type=str:yarn,qwen3.rope.scaling.factor=float:4.0 \
                --override-kv qwen3.context_length=int:131072"
            ),
            (yarn.clone(), Some(4.0), None, Some(131_072))
        );
        let env = "LLAMA_ARG_ROPE_SCALING_TYPE=yarn LLAMA_ARG_ROPE_SCALE=4 llama-server";
        assert_eq!(of(env), (yarn, Some(4.0), None, None));
        assert_eq!(read("llama-server -c 4096").rope(), RopeOptions::default());
    }
}
