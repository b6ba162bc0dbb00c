use tpc_ir::DType;

/// A draft model (`-md`).
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The file.
    pub file: String,
    /// Type of the draft model's K cache (`-ctkd`). llama.cpp's default is always f16.
    pub cache_type_k: DType,
    /// Type of the draft model's V cache (`-ctvd`).
    pub cache_type_v: DType,
    /// Number of the draft model's layers on the devices (`-ngld`); `None` for all.
    pub gpu_layers: Option<u64>,
    /// Context of the draft model (`-cd`); `None` for the model's context.
    pub ctx_size: Option<u64>,
    /// Positions of the draft model's devices (`-devd`); `None` for the model's devices, empty for the host.
    pub devices: Option<Vec<usize>>,
}

impl Draft {
    /// Creates a draft with llama.cpp's defaults.
    pub fn of(file: &str) -> Draft {
        Draft {
            file: file.to_owned(),
            cache_type_k: DType::F16,
            cache_type_v: DType::F16,
            gpu_layers: None,
            ctx_size: None,
            devices: None,
        }
    }
}

/// An image or sound encoder (`--mmproj`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projector {
    /// The file.
    pub file: String,
    /// True if the encoder stays on the host (`--no-mmproj-offload`).
    pub on_host: bool,
    /// Position of the encoder's device (`-mmdev`); `None` for the host machine's first device.
    pub device: Option<usize>,
}

/// A LoRA adapter or a control vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// The file.
    pub file: String,
    /// True for a control vector.
    pub is_control_vector: bool,
}

/// All additional files of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The draft model.
    pub draft: Option<Draft>,
    /// The encoder.
    pub projector: Option<Projector>,
    /// The adapters.
    pub adapters: Vec<Adapter>,
}

impl Request {
    /// True if the request is empty.
    pub fn is_empty(&self) -> bool {
        *self == Request::default()
    }

    /// Returns the options of `tpc plan` for these files.
    pub fn words(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut put = |words: &[&str]| out.extend(words.iter().map(|&w| w.to_owned()));
        if let Some(d) = &self.draft {
            put(&["-md", &d.file]);
            for (option, t) in [("-ctkd", d.cache_type_k), ("-ctvd", d.cache_type_v)] {
                if t != DType::F16 {
                    put(&[option, t.name()]);
                }
            }
            if let Some(n) = d.gpu_layers {
                put(&["-ngld", &n.to_string()]);
            }
            if let Some(n) = d.ctx_size {
                put(&["-cd", &n.to_string()]);
            }
            if let Some(devices) = &d.devices {
                let names: Vec<String> = devices.iter().map(|d| format!("dev{d}")).collect();
                let names = names.join(",");
                put(&["-devd", if names.is_empty() { "none" } else { &names }]);
            }
        }
        if let Some(p) = &self.projector {
            put(&["--mmproj", &p.file]);
            if p.on_host {
                put(&["--no-mmproj-offload"]);
            }
            if let Some(d) = p.device {
                put(&["-mmdev", &format!("dev{d}")]);
            }
        }
        for a in &self.adapters {
            let option = match a.is_control_vector {
                true => "--control-vector",
                false => "--lora",
            };
            put(&[option, &a.file]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_ask_for_the_files() {
        assert_eq!(Request::default().words(), [""; 0]);
        let request = Request {
            draft: Some(Draft {
                cache_type_v: DType::Q8_0,
                gpu_layers: Some(3),
                devices: Some(vec![1, 0]),
                ..Draft::of("d.gguf")
            }),
            projector: Some(Projector {
                file: "m.gguf".to_owned(),
                on_host: true,
                device: None,
            }),
            adapters: vec![Adapter {
                file: "a.gguf".to_owned(),
                is_control_vector: false,
            }],
        };
        assert_eq!(
            request.words().join(" "),
            "-md d.gguf -ctvd q8_0 -ngld 3 -devd dev1,dev0 --mmproj m.gguf --no-mmproj-offload --lora a.gguf"
        );
    }
}
