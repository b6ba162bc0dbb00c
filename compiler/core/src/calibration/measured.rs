/// The kind of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// A prompt of n tokens.
    Prompt(u64),
    /// Generation of n tokens.
    Generation(u64),
}

/// A measured speed, with the options of its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The line in the file, from 1.
    pub line: usize,
    /// The kind.
    pub test: Test,
    /// Tokens in the cache at the start.
    pub depth: u64,
    /// Tokens per second.
    pub speed: f64,
    /// Elements of the model's tensors.
    pub params: Option<f64>,
    /// Number of layers on devices.
    pub gpu_layers: Option<u64>,
    /// Number of layers whose experts stay on the host.
    pub host_experts: Option<u64>,
    /// llama.cpp's name of the split mode.
    pub split_mode: Option<String>,
    /// The devices' shares.
    pub shares: Option<Vec<f64>>,
    /// Largest batch of a prompt.
    pub ubatch: Option<u64>,
    /// K and V cache types.
    pub cache_types: [Option<String>; 2],
    /// Number of devices, if stated.
    pub devices: Option<usize>,
}

impl Measurement {
    /// Creates a measurement with only a test and a speed.
    pub const fn new(line: usize, test: Test, speed: f64) -> Measurement {
        Measurement {
            line,
            test,
            depth: 0,
            speed,
            params: None,
            gpu_layers: None,
            host_experts: None,
            split_mode: None,
            shares: None,
            ubatch: None,
            cache_types: [None, None],
            devices: None,
        }
    }

    /// Formats the test as llama-bench does.
    pub fn name(&self) -> String {
        let test = match self.test {
            Test::Prompt(n) => format!("pp{n}"),
            Test::Generation(n) => format!("tg{n}"),
        };
        match self.depth {
            0 => test,
            depth => format!("{test} @ d{depth}"),
        }
    }
}
