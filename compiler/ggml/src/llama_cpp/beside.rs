use super::command::CommandLine;
use super::devices::{Buffer, buffer, position};
use super::option_spec::Setting;
use super::parsed_option::ParsedOption;

const CACHE_K: &[&str] = &["-ctkd", "--cache-type-k-draft", "--spec-draft-type-k"];
const CACHE_V: &[&str] = &["-ctvd", "--cache-type-v-draft", "--spec-draft-type-v"];
const LAYERS: &[&str] = &[
    "-ngld",
    "--gpu-layers-draft",
    "--n-gpu-layers-draft",
    "--spec-draft-ngl",
];
const CELLS: &[&str] = &["-cd", "--ctx-size-draft"];
const DEVICES: &[&str] = &["-devd", "--device-draft", "--spec-draft-device"];
const PROJECTOR_DEVICE: &[&str] = &["-mmdev", "--mmproj-device"];
const PROJECTOR_OFFLOAD: &[&str] = &["--mmproj-offload", "--no-mmproj-offload"];

/// A draft model with its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftFile {
    /// The file.
    pub file: String,
    /// The K cache type, if set.
    pub cache_type_k: Option<String>,
    /// The V cache type, if set.
    pub cache_type_v: Option<String>,
    /// The number of layers on devices; `None` if all, or if llama.cpp chooses.
    pub gpu_layers: Option<u64>,
    /// The context size, if set. Builds without the option use the model's context.
    pub ctx_size: Option<u64>,
    /// The positions of the draft's devices, if listed; empty for the host.
    pub devices: Option<Vec<usize>>,
}

/// An image or sound encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectorFile {
    /// The file.
    pub file: String,
    /// True if the encoder stays on the host.
    pub on_host: bool,
    /// The position of the encoder's device, if named.
    pub device: Option<usize>,
}

/// True if an option such as `-md` names a file; `-hfd` and `-mmu` name remote files.
fn is_file(given: &ParsedOption) -> bool {
    let remote = ["-hfd", "-mmu"];
    !given.spec.names.iter().any(|n| remote.contains(n))
}

impl CommandLine {
    fn last_of(&self, names: &[&str]) -> Option<&ParsedOption> {
        let is = |o: &&ParsedOption| names.contains(&o.spelling.replace('_', "-").as_str());
        self.options.iter().rev().find(is)
    }

    /// Returns the kinds of drafting of all `--spec-type` options, except `none`.
    pub fn draft_kinds(&self) -> impl Iterator<Item = &str> {
        let all = self.all(Setting::Speculation);
        all.flat_map(|o| o.value.split(',').map(str::trim))
            .filter(|kind| !kind.is_empty() && *kind != "none")
    }

    /// True if the draft blocks in the model's own file draft. A draft file replaces these blocks.
    pub fn drafts_by_own_blocks(&self) -> bool {
        self.last(Setting::Draft).is_none() && self.draft_kinds().any(|k| k == "draft-mtp")
    }

    /// Returns the options that name remote files: `-hfd`, `-mmu`.
    pub fn remote_files(&self) -> impl Iterator<Item = &ParsedOption> {
        let both = [Setting::Draft, Setting::Projector];
        let all = both.into_iter().filter_map(|s| self.last(s));
        all.filter(|o| !is_file(o))
    }

    /// Returns the draft model that has its own file.
    pub fn draft_file(&self) -> Option<DraftFile> {
        let file = self.last(Setting::Draft).filter(|o| is_file(o))?;
        let value = |names| self.last_of(names).map(|o| o.value.clone());
        let devices = value(DEVICES).map(|list| match list.as_str() {
            "none" => Vec::new(),
            list => list.split(',').filter_map(|d| self.device(d)).collect(),
        });
        Some(DraftFile {
            file: file.value.clone(),
            cache_type_k: value(CACHE_K),
            cache_type_v: value(CACHE_V),
            gpu_layers: value(LAYERS).and_then(|n| n.trim().parse().ok()),
            ctx_size: value(CELLS)
                .and_then(|n| n.trim().parse().ok())
                .filter(|&n| n > 0),
            devices,
        })
    }

    /// Returns the image or sound encoder.
    pub fn projector_file(&self) -> Option<ProjectorFile> {
        let file = self.last(Setting::Projector).filter(|o| is_file(o))?;
        let device = self.last_of(PROJECTOR_DEVICE).map(|o| o.value.as_str());
        let offload = self.last_of(PROJECTOR_OFFLOAD).map(|o| o.spelling.as_str());
        Some(ProjectorFile {
            file: file.value.clone(),
            on_host: device == Some("none")
                || offload.is_some_and(|o| o.replace('_', "-") == "--no-mmproj-offload"),
            device: device.and_then(|d| self.device(d)),
        })
    }

    /// Returns the adapter files; the flag is true for a control vector. `FILE:SCALE` names a file.
    pub fn adapter_files(&self) -> Vec<(String, bool)> {
        let all = self.all(Setting::Adapter);
        let files = all.flat_map(|o| {
            let spelling = o.spelling.replace('_', "-");
            let is_vector = spelling.starts_with("--control-vector");
            let is_scaled = spelling.ends_with("-scaled");
            o.value.split(',').map(move |file| {
                let file = file.trim();
                let bare = file
                    .rsplit_once(':')
                    .filter(|(_, scale)| scale.parse::<f32>().is_ok());
                let file = bare.filter(|_| is_scaled).map_or(file, |(file, _)| file);
                (file.to_owned(), is_vector)
            })
        });
        files.filter(|(file, _)| !file.is_empty()).collect()
    }

    fn device(&self, name: &str) -> Option<usize> {
        match buffer(name.trim())? {
            Buffer::Host => None,
            Buffer::Device(n) => position(self, name, n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;

    #[test]
    fn drafts_have_files_and_options_of_their_own() {
        let line = read(
            "llama-server -md d.gguf --spec-type draft-mtp -ctkd q8_0 --spec-draft-ngl 12 -devd CUDA1,CUDA0",
        );
        let draft = line.draft_file().expect("a draft");
        assert_eq!(draft.file, "d.gguf");
        assert_eq!(
            (draft.cache_type_k.as_deref(), draft.cache_type_v.as_deref()),
            (Some("q8_0"), None)
        );
        assert_eq!(
            (draft.gpu_layers, draft.devices),
            (Some(12), Some(vec![1, 0]))
        );
        assert!(!line.drafts_by_own_blocks());
        assert!(read("llama-server --spec-type ngram-mod,draft-mtp").drafts_by_own_blocks());
        assert!(!read("llama-server --spec-type draft-eagle3").drafts_by_own_blocks());
        let host = read("llama-server -md d.gguf -devd none -ngld all");
        let host = host.draft_file().expect("a draft");
        assert_eq!((host.gpu_layers, host.devices), (None, Some(Vec::new())));
    }

    #[test]
    fn files_elsewhere_have_no_header_here() {
        let line = read("llama-server -hfd a/b:Q4_0 -mmu https://h/mmproj.gguf");
        assert!(line.draft_file().is_none() && line.projector_file().is_none());
        assert_eq!(line.remote_files().count(), 2);
    }

    #[test]
    fn encoders_and_adapters_have_files() {
        let of = |line| {
            let p = read(line).projector_file().expect(line);
            (p.on_host, p.device)
        };
        assert_eq!(of("llama-server --mmproj m.gguf"), (false, None));
        assert_eq!(
            of("llama-server -mm m.gguf --no-mmproj-offload"),
            (true, None)
        );
        assert_eq!(of("llama-server -mm m.gguf -mmdev none"), (true, None));
        assert_eq!(of("llama-server -mm m.gguf -mmdev CUDA1"), (false, Some(1)));
        let line = read(
            "llama-server --lora a.gguf,b.gguf --lora-scaled c.gguf:0.5 --control-vector v.gguf",
        );
        let files = line.adapter_files();
        let files: Vec<(&str, bool)> = files.iter().map(|(f, v)| (f.as_str(), *v)).collect();
        assert_eq!(
            files,
            [
                ("a.gguf", false),
                ("b.gguf", false),
                ("c.gguf", false),
                ("v.gguf", true)
            ]
        );
    }
}
