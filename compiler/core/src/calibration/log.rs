//! Logs of llama-server, llama-cli and other programs with llama.cpp's timings.

use super::measured::{Measurement, Test};
use super::reading::{LogBuffer, Reading};

/// True if a line begins with a time or a level in brackets, as in logs.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with('[')
        && line[1..]
            .split(']')
            .next()
            .is_some_and(|t| !t.contains(['{', '"']) && !t.trim().is_empty())
}

#[derive(Default)]
struct State {
    params: Option<f64>,
    gpu_layers: Option<u64>,
    ubatch: Option<u64>,
    types: [Option<String>; 2],
    prompt: u64,
    devices: Vec<String>,
}

pub(super) fn read(file: &str, text: &str, out: &mut Reading) {
    let mut state = State::default();
    for (i, line) in text.lines().enumerate() {
        if line.len() > 4096 {
            continue;
        }
        buffer(line, &mut state, out);
        state.facts(line);
        if line.contains("eval time =") {
            timing(file, i + 1, line, &mut state, out);
        }
    }
}

impl State {
    fn facts(&mut self, line: &str) {
        if let Some(text) = text_after(line, "model params") {
            self.params = count(text);
        }
        if let Some(text) = text_after(line, "n_ubatch") {
            self.ubatch = number(text).map(|n| n as u64).filter(|n| *n > 0);
        }
        if line.contains("offloaded ")
            && let Some(n) = line.split("offloaded ").nth(1)
        {
            // `offloaded 33/33 layers to GPU`
            self.gpu_layers = n.split('/').next().and_then(|n| n.trim().parse().ok());
        }
        for (i, which) in ["K (", "V ("].into_iter().enumerate() {
            let named = line.split(which).nth(1).and_then(|t| t.split(')').next());
            if let Some(name) = named.filter(|_| line.contains("kv_cache")) {
                self.types[i] = Some(name.trim().to_owned());
            }
        }
    }
}

fn text_after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split(name).nth(1)?.trim_start();
    Some(rest.strip_prefix('=')?.trim_start())
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

fn count(text: &str) -> Option<f64> {
    let factor = match text
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_start()
        .chars()
        .next()?
    {
        'K' => 1e3,
        'M' => 1e6,
        'B' => 1e9,
        'T' => 1e12,
        _ => return None,
    };
    Some(number(text)? * factor)
}

/// Reads a buffer, such as `CUDA0 model buffer size = 4437.81 MiB`.
fn buffer(line: &str, state: &mut State, out: &mut Reading) {
    let Some((before, after)) = line.split_once("buffer size =") else {
        return;
    };
    let mut words = before.split_whitespace().rev();
    let (Some(kind), Some(device)) = (words.next(), words.next()) else {
        return;
    };
    let Some(mib) = number(after).filter(|_| after.contains("MiB") && out.buffers.len() < 1000)
    else {
        return;
    };
    let device = device.trim_matches(':').to_owned();
    let is_host = device.starts_with("CPU") || device.ends_with("_Host");
    if kind == "model" && !is_host && !state.devices.contains(&device) {
        state.devices.push(device.clone());
    }
    out.buffers.push(LogBuffer {
        device,
        kind: kind.to_owned(),
        mib,
    });
}

/// Reads a timing, such as `prompt eval time = 123.45 ms / 64 tokens ( 1.93 ms per token, 518.43 tokens per second)`.
fn timing(file: &str, line_number: usize, line: &str, state: &mut State, out: &mut Reading) {
    let of_prompt = line.contains("prompt eval time");
    let rest = line.split("eval time =").nth(1).unwrap_or_default();
    let parts = rest.split_once('/').and_then(|(ms, rest)| {
        let tokens = number(rest)? as u64;
        Some((number(ms)?, tokens))
    });
    let Some((ms, tokens)) = parts else {
        let cure =
            "give a line such as `eval time = 2500.00 ms / 100 tokens (… tokens per second)`";
        return out.complain(file, line_number, "the timing is cut off", cure);
    };
    let stated = line.split(',').nth(1).and_then(number);
    let speed = stated.unwrap_or(tokens as f64 * 1e3 / ms);
    if of_prompt {
        state.prompt = tokens;
    }
    // Speeds of short runs are unreliable, because kernels load during the first tokens.
    let least = if of_prompt { 32 } else { 8 };
    if tokens < least {
        return;
    }
    let test = match of_prompt {
        true => Test::Prompt(tokens),
        false => Test::Generation(tokens),
    };
    let mut row = Measurement::new(line_number, test, speed);
    row.depth = if of_prompt { 0 } else { state.prompt };
    row.params = state.params;
    row.gpu_layers = state.gpu_layers;
    row.ubatch = state.ubatch;
    row.cache_types = state.types.clone();
    row.devices = Some(state.devices.len()).filter(|n| *n > 0);
    out.row(file, row);
}
