use std::collections::BTreeMap;

use super::presets::{defaults, presets};
use super::spec::{Contents, Experts, Head, Optionals, PerLayer, Spec};
use super::types::FileType;
use tpc_diag::suggest::{nearest, shorten};
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::{MetaArray, MetaValue};
use tpc_models::description::{Experts as ExpertsOfArch, RecurrentLayers, Sublayers, Window};
use tpc_models::{ARCHS, Arch, WeightForms};

const KEYS: [&str; 19] = [
    "layers",
    "drafts",
    "embd",
    "heads",
    "kv_heads",
    "head_dim",
    "ff",
    "experts",
    "experts_used",
    "vocab",
    "ctx",
    "window",
    "seed",
    "rows",
    "type",
    "biases",
    "tied",
    "fused",
    "header",
];

/// The maximum size, which exceeds the sizes of all known models. The product of two sizes fits 63 bits.
const MAX_SIZE: u64 = (1 << 31) - 1;

const MAX_LAYERS: u64 = 2048;

/// The maximum number of random rows that other rows repeat. Writing holds these rows in memory.
const MAX_ROWS: u64 = 1 << 12;

const MAX_TEXT: usize = 1 << 16;

fn invalid(entity: &str, message: impl Into<tpc_diag::Message>) -> Diagnostic {
    Diagnostic::new(&codes::UNKNOWN_PRESET, shorten(entity), message)
}

/// The key=value pairs of a specification. Metadata keys are separate.
#[derive(Default)]
struct KeyValues<'a> {
    keys: BTreeMap<&'static str, &'a str>,
    metadata: BTreeMap<&'a str, &'a str>,
}

impl Spec {
    /// Parses `PRESET`, `ARCH:key=value,…`, or `PRESET:key=value,…`, which changes a preset.
    ///
    /// `heads`, `kv_heads` and `ff` take a number, or a list with one number per layer: `4/2/4`. A key that begins
    /// with the architecture's name or `general.` is a metadata key: `llama.rope.freq_base=500000.0`. Slashes make a
    /// list: `4/2` has two elements, `4/` has one, and `u64:4/2` has elements of type u64.
    ///
    /// # Errors
    /// Returns TPC0408 with the key, the value found and the values expected.
    pub fn parse(text: &str) -> Result<Spec, Diagnostic> {
        if text.len() > MAX_TEXT {
            let message = format!(
                "the specification has {} bytes; the limit is {MAX_TEXT}",
                text.len()
            );
            return Err(invalid("specification", message).help("give fewer keys, or shorter lists"));
        }
        let (head, given) = match text.split_once(':') {
            None => (text.trim(), None),
            Some((head, given)) => (head.trim(), Some(given)),
        };
        let presets = presets();
        let preset = presets.iter().find(|p| p.name == head);
        let defaults = defaults(head, given.unwrap_or_default());
        let mut values = KeyValues::default();
        let arch = match preset.and_then(|p| p.spec.split_once(':')) {
            Some((arch, own)) => {
                let arch = architecture(arch)?;
                values.read(arch, own, OnRepeat::Replace)?;
                arch
            }
            None if given.is_some() => {
                let arch = architecture(head)?;
                values.read(arch, &defaults, OnRepeat::Replace)?;
                arch
            }
            None => {
                let names = presets.iter().map(|p| p.name.as_str());
                return Err(not_a_preset(head, names));
            }
        };
        values.read(arch, given.unwrap_or_default(), OnRepeat::Refuse)?;
        let name = match preset {
            Some(preset) => preset.name.clone(),
            None => format!("{head}-synth"),
        };
        values.spec(arch, name)
    }
}

fn not_a_preset<'a>(found: &str, names: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let help = if ARCHS.iter().any(|a| a.name == found) {
        format!("`{found}` is an architecture: write `{found}-tiny`, or `{found}:key=value,…`")
    } else if let Some(near) = nearest(found, names.clone()) {
        format!("did you mean `{near}`?")
    } else {
        let names: Vec<&str> = names.collect();
        format!("write ARCH:key=value,…, or one of {}", names.join(", "))
    };
    invalid(found, format!("`{}` is not a preset", shorten(found))).help(help)
}

fn architecture(name: &str) -> Result<&'static Arch, Diagnostic> {
    tpc_models::find(name).map_err(|_| {
        let known: Vec<&str> = ARCHS.iter().map(|a| a.name).collect();
        let message = format!(
            "`{}` is neither an architecture nor a preset",
            shorten(name)
        );
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known architectures: {}", known.join(", ")),
        };
        invalid(name, message).help(help)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OnRepeat {
    Refuse,
    Replace,
}

impl<'a> KeyValues<'a> {
    /// Adds the pairs of `text`, which replace earlier pairs.
    fn read(&mut self, arch: &Arch, text: &'a str, on_repeat: OnRepeat) -> Result<(), Diagnostic> {
        let mut new = KeyValues::default();
        let pairs = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                let message = format!("`{}` is not of the form key=value", shorten(pair));
                return Err(invalid(pair, message).help("write pairs such as `layers=4,embd=512`"));
            };
            let (key, value) = (key.trim(), value.trim());
            let prefix = key.split_once('.').map(|(prefix, _)| prefix);
            let old = match KEYS.iter().find(|k| **k == key) {
                Some(known) => new.keys.insert(known, value),
                None if prefix.is_some_and(|p| p == arch.name || p == "general") => {
                    new.metadata.insert(key, value)
                }
                None => {
                    let help = match nearest(key, KEYS) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!(
                            "known keys: {}, and metadata keys `{}.…`",
                            KEYS.join(" "),
                            arch.name
                        ),
                    };
                    return Err(invalid(key, format!("unknown key `{}`", shorten(key))).help(help));
                }
            };
            if on_repeat == OnRepeat::Refuse && old.is_some() {
                let message = format!("`{}` is given twice", shorten(key));
                return Err(invalid(key, message).help("remove one of the two"));
            }
        }
        self.keys.extend(new.keys);
        self.metadata.extend(new.metadata);
        Ok(())
    }

    fn spec(&self, arch: &'static Arch, name: String) -> Result<Spec, Diagnostic> {
        let layers = self.size("layers", 1, MAX_LAYERS)?.unwrap_or(2);
        let embd = self.size("embd", 1, MAX_SIZE)?.unwrap_or(256);
        let heads = self
            .per_layer("heads", layers, 1)?
            .unwrap_or(PerLayer::Same(8));
        // In some architectures, layers without KV heads are recurrent.
        let recurrent = arch.recurrent.map(|form| form.layers);
        let least = u64::from(recurrent != Some(RecurrentLayers::WithoutKvHeads));
        let kv_heads = match self.per_layer("kv_heads", layers, least)? {
            Some(kv_heads) => kv_heads,
            None => heads.clone(),
        };
        for layer in 0..layers {
            let (h, kv) = (heads.at(layer), kv_heads.at(layer));
            if kv > 0 && !h.is_multiple_of(kv) {
                let message = format!("kv_heads={kv} with heads={h} in layer {layer}");
                return Err(
                    invalid("kv_heads", message).help("kv_heads must divide heads in every layer")
                );
            }
        }
        let head_dim = self.head_dim(arch, embd, &heads)?;
        let window = self.size("window", 0, MAX_SIZE)?.filter(|&n| n > 0);
        if let (Some(n), Window::None) = (window, arch.attention.window) {
            let message = format!("window={n}, but {} lacks a sliding window", arch.name);
            return Err(invalid("window", message).help("remove it"));
        }
        let drafts = self.size("drafts", 0, MAX_LAYERS)?.unwrap_or(0);
        if drafts > 0 && arch.drafts.is_none() {
            let message = format!(
                "drafts={drafts}, but the draft blocks of {} are not described",
                arch.name
            );
            return Err(invalid("drafts", message).help("remove it"));
        }
        Ok(Spec {
            arch,
            name,
            layers,
            drafts,
            embd,
            kv_heads,
            head_dim,
            ff: self
                .per_layer("ff", layers, least_width(arch))?
                .unwrap_or(PerLayer::Same(embd.saturating_mul(2).min(MAX_SIZE))),
            heads,
            experts: self.experts(arch)?,
            vocab: self.size("vocab", 1, MAX_SIZE)?.unwrap_or(320),
            ctx: self.size("ctx", 1, MAX_SIZE)?.unwrap_or(256),
            window,
            seed: self.size("seed", 0, u64::MAX)?.unwrap_or(0),
            rows: self.size("rows", 1, MAX_ROWS)?,
            file_type: self.file_type()?,
            optionals: self
                .switch("biases", Optionals::Without, Optionals::With)?
                .unwrap_or(Optionals::Without),
            head: self
                .switch("tied", Head::Own, Head::Tied)?
                .unwrap_or(Head::Own),
            forms: self
                .switch("fused", WeightForms::Separate, WeightForms::Fused)?
                .unwrap_or(WeightForms::Usual),
            contents: self
                .switch("header", Contents::Data, Contents::Header)?
                .unwrap_or(Contents::Data),
            metadata: self
                .metadata
                .iter()
                .map(|(k, v)| ((*k).to_owned(), meta_value(v)))
                .collect(),
        })
    }

    fn size(&self, key: &'static str, min: u64, max: u64) -> Result<Option<u64>, Diagnostic> {
        let Some(&text) = self.keys.get(key) else {
            return Ok(None);
        };
        number(key, text, min, max).map(Some)
    }

    fn per_layer(
        &self,
        key: &'static str,
        layers: u64,
        least: u64,
    ) -> Result<Option<PerLayer>, Diagnostic> {
        let Some(&text) = self.keys.get(key) else {
            return Ok(None);
        };
        if !text.contains('/') {
            return number(key, text, least, MAX_SIZE).map(|n| Some(PerLayer::Same(n)));
        }
        let list: Vec<u64> = text
            .split('/')
            .map(|n| number(key, n.trim(), least, MAX_SIZE))
            .collect::<Result<_, _>>()?;
        if list.len() as u64 != layers {
            let message = format!(
                "{key} lists {} layers, but the model has layers={layers}",
                list.len()
            );
            return Err(
                invalid(key, message).help("give one number for all layers, or one for each")
            );
        }
        Ok(Some(PerLayer::Each(list)))
    }

    fn head_dim(&self, arch: &Arch, embd: u64, heads: &PerLayer) -> Result<u64, Diagnostic> {
        let head_dim = match self.size("head_dim", 1, MAX_SIZE)? {
            Some(n) => n,
            None if embd.is_multiple_of(heads.at(0)) => embd / heads.at(0),
            None => {
                let message = format!("embd={embd} with heads={}", heads.at(0));
                return Err(invalid("embd", message)
                    .help("embd must be a multiple of heads unless head_dim is given"));
            }
        };
        if arch.attention.rope.is_some() && !head_dim.is_multiple_of(2) {
            let message = format!("head_dim={head_dim}, but {} rotates pairs", arch.name);
            return Err(invalid("head_dim", message).help("head_dim must be even"));
        }
        Ok(head_dim)
    }

    fn experts(&self, arch: &Arch) -> Result<Option<Experts>, Diagnostic> {
        let count = self.size("experts", 0, MAX_SIZE)?.filter(|&n| n > 0);
        let used = self.size("experts_used", 1, MAX_SIZE)?;
        let (count, fallback) = match (&arch.ffn.experts, count) {
            (ExpertsOfArch::None, Some(n)) => {
                let message = format!("experts={n}, but {} is not a mixture of experts", arch.name);
                return Err(invalid("experts", message).help("remove it"));
            }
            (ExpertsOfArch::Always(_), None) => (4, 2),
            (_, Some(n)) => (n, n.min(2)),
            (_, None) => match used {
                None => return Ok(None),
                Some(n) => {
                    let message = format!("experts_used={n} without experts");
                    return Err(invalid("experts_used", message)
                        .help("give experts, or remove experts_used"));
                }
            },
        };
        let used = used.unwrap_or(fallback);
        if used > count {
            let message = format!("experts_used={used} with experts={count}");
            return Err(
                invalid("experts_used", message).help("experts_used must not exceed experts")
            );
        }
        Ok(Some(Experts { count, used }))
    }

    fn file_type(&self) -> Result<FileType, Diagnostic> {
        let Some(&text) = self.keys.get("type") else {
            return Ok(FileType::Mixed);
        };
        FileType::from_name(text).ok_or_else(|| {
            let known: Vec<&str> = FileType::allowed_types().map(tpc_ir::DType::name).collect();
            let help = format!("known types: {} mixed mxfp4_moe", known.join(" "));
            invalid(
                "type",
                format!("type=`{}` is not a type of weights", shorten(text)),
            )
            .help(help)
        })
    }

    /// Returns `off` for the value 0 and `on` for 1.
    fn switch<T>(&self, key: &'static str, off: T, on: T) -> Result<Option<T>, Diagnostic> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(&"0") => Ok(Some(off)),
            Some(&"1") => Ok(Some(on)),
            Some(other) => Err(invalid(
                key,
                format!("{key}=`{}` is neither 0 nor 1", shorten(other)),
            )
            .help("give 0 or 1")),
        }
    }
}

/// Returns the least width of a layer's feed-forward network. It is 0 if layers may lack a network.
fn least_width(arch: &Arch) -> u64 {
    u64::from(arch.sublayers != Sublayers::Either)
}

fn number(key: &str, text: &str, min: u64, max: u64) -> Result<u64, Diagnostic> {
    text.parse()
        .ok()
        .filter(|n| (min..=max).contains(n))
        .ok_or_else(|| {
            let message = format!(
                "{key}=`{}` is not an integer from {min} to {max}",
                shorten(text)
            );
            invalid(key, message).help("give a number in that range")
        })
}

/// Parses a metadata value as the first type that fits: u32, f32, bool, a list of one of these, or text. A list of
/// one element ends with a slash; a list of u64 begins with `u64:`.
fn meta_value(text: &str) -> MetaValue {
    fn list<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
        let numbers = text.strip_suffix('/').unwrap_or(text);
        numbers.split('/').map(|x| x.trim().parse().ok()).collect()
    }
    let several = text.contains('/');
    if let Some(wide) = text.strip_prefix("u64:").and_then(list::<u64>) {
        return MetaValue::Array(MetaArray::U64(wide));
    }
    if let Some(n) = list::<u32>(text) {
        return match n[..] {
            [one] if !several => MetaValue::U32(one),
            _ => MetaValue::Array(MetaArray::U32(n)),
        };
    }
    if let (Some(n), true) = (list::<i32>(text), several) {
        return MetaValue::Array(MetaArray::I32(n));
    }
    if let Some(x) = list::<f32>(text) {
        return match x[..] {
            [one] if !several => MetaValue::F32(one),
            _ => MetaValue::Array(MetaArray::F32(x)),
        };
    }
    if let Some(b) = list::<bool>(text) {
        return match b[..] {
            [one] if !several => MetaValue::Bool(one),
            _ => MetaValue::Array(MetaArray::Bool(b)),
        };
    }
    MetaValue::Str(text.to_owned())
}
