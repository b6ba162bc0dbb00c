use schemars::JsonSchema;
use serde::Serialize;

/// A difference between the tokens of a draft model and the model. The model's value is first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Tokenizer kinds.
    Kind(String, String),
    /// Numbers of tokens.
    Count(usize, usize),
    /// A token: its number and both texts.
    Token(usize, String, String),
}

/// Bytes of a file at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Weights.
    pub weights: u64,
    /// KV caches and other states.
    pub kv: u64,
    /// Buffers for intermediate values.
    pub compute: u64,
}

impl Part {
    /// Sums all bytes.
    pub const fn total(self) -> u64 {
        self.weights
            .saturating_add(self.kv)
            .saturating_add(self.compute)
    }

    pub(crate) const fn weights(bytes: u64) -> Part {
        Part {
            weights: bytes,
            kv: 0,
            compute: 0,
        }
    }

    pub(crate) fn add(&mut self, other: Part) {
        self.weights = self.weights.saturating_add(other.weights);
        self.kv = self.kv.saturating_add(other.kv);
        self.compute = self.compute.saturating_add(other.compute);
    }
}

/// The memory of an additional file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExtraFileMemory {
    /// The kind of file.
    #[schemars(extend("enum" = ["draft", "mmproj", "lora", "control vector"]))]
    pub what: &'static str,
    /// The file.
    pub file: String,
    /// Bytes per device.
    pub devices: Vec<Part>,
    /// Bytes on the host.
    pub host: Part,
    /// The options that request the file.
    #[serde(skip)]
    pub words: Vec<String>,
    /// A difference between the tokens of a draft model and the model.
    #[serde(skip)]
    pub difference: Option<Difference>,
}

impl ExtraFileMemory {
    pub(crate) fn none(what: &'static str, file: &str, devices: usize) -> ExtraFileMemory {
        ExtraFileMemory {
            what,
            file: file.to_owned(),
            devices: vec![Part::default(); devices],
            host: Part::default(),
            words: Vec::new(),
            difference: None,
        }
    }

    /// Sums all bytes.
    pub fn total(&self) -> u64 {
        let devices = self.devices.iter().map(|p| p.total());
        devices.fold(self.host.total(), u64::saturating_add)
    }
}
