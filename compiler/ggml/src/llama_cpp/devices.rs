use super::command::CommandLine;
use super::option_spec::Setting;

/// The number of devices, if the line does not state it.
const ASSUMED: usize = 2;

/// The number of local devices in addition to RPC servers, if the line does not state it.
const LOCAL: usize = 1;

/// The number of devices of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCount {
    /// The number of devices.
    pub count: usize,
    /// True if the number is assumed.
    pub assumed: bool,
    /// The option with the highest device number, such as `-mg 3`, if the count comes from it.
    pub named_by: Option<String>,
}

/// Returns the number of devices that a line states: in a device list, in proportions, or as visible devices plus
/// servers.
pub fn stated_devices(line: &CommandLine) -> Option<usize> {
    listed_devices(line).or_else(|| entries(line, Setting::TensorSplit, &[',', '/']))
}

impl CommandLine {
    /// Returns the positions of RPC servers in the device list, if any.
    pub fn servers_at(&self) -> Option<Vec<usize>> {
        let list = self.value(Setting::Devices)?.split(',').enumerate();
        let is_remote = |d: &str| d.trim().to_ascii_uppercase().starts_with("RPC");
        Some(list.filter(|(_, d)| is_remote(d)).map(|(i, _)| i).collect())
    }

    /// Returns the `--rpc` servers in use. A device list may omit servers.
    pub fn servers(&self) -> Option<Vec<String>> {
        let all = self.value(Setting::Rpc)?.split(',').map(str::trim);
        let all = all.filter(|s| !s.is_empty());
        let used = self.servers_at().map(|at| at.len());
        let servers: Vec<String> = all
            .take(used.unwrap_or(usize::MAX))
            .map(str::to_owned)
            .collect();
        (!servers.is_empty()).then_some(servers)
    }
}

fn entries(line: &CommandLine, setting: Setting, separators: &[char]) -> Option<usize> {
    let text = line.value(setting)?;
    let n = text
        .split(separators)
        .filter(|t| !t.trim().is_empty())
        .count();
    (n > 0 && text != "none").then_some(n)
}

/// Returns the number of listed devices, or of visible devices plus `--rpc` servers.
fn listed_devices(line: &CommandLine) -> Option<usize> {
    let servers = || line.servers().map_or(0, |s| s.len());
    let visible = || line.visible.map(|n| n + servers());
    entries(line, Setting::Devices, &[',']).or_else(visible)
}

/// Returns the number of devices to plan for. Without a device list, an option such as `-mg 3` can raise it.
pub fn device_count(line: &CommandLine) -> DeviceCount {
    let stated = stated_devices(line);
    let servers = line.servers().map(|s| s.len() + LOCAL);
    let count = stated.or(servers).unwrap_or(ASSUMED);
    if let Some(count) = listed_devices(line) {
        return DeviceCount {
            count,
            assumed: false,
            named_by: None,
        };
    }
    let last = least_devices(line).filter(|(least, _)| *least > count);
    DeviceCount {
        assumed: stated.is_none() || last.is_some(),
        count: last.as_ref().map_or(count, |(least, _)| *least),
        named_by: last.map(|(_, by)| by),
    }
}

/// Returns the number of devices that device numbers imply, and the option with the highest number.
fn least_devices(line: &CommandLine) -> Option<(usize, String)> {
    let main = line.last(Setting::MainGpu).and_then(|given| {
        let n: usize = given.value.parse().ok()?;
        let by = format!("{} {}", given.spelling, given.value);
        Some((n.checked_add(1)?, by))
    });
    let overrides = line.all(Setting::Override).flat_map(|given| {
        let parts = given.value.split(',').filter_map(|p| p.rsplit_once('='));
        parts.filter_map(|(_, name)| match buffer(name) {
            Some(Buffer::Device(n)) => {
                Some((n.checked_add(1)?, format!("{} …={name}", given.spelling)))
            }
            _ => None,
        })
    });
    // A number above 64 is probably a typo.
    let all = main.into_iter().chain(overrides).filter(|(n, _)| *n <= 64);
    all.max_by_key(|(n, _)| *n)
}

/// A llama.cpp buffer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Host memory.
    Host,
    /// Memory of a device, by number.
    Device(usize),
}

const STEMS: [&str; 13] = [
    "cuda", "rocm", "hip", "vulkan", "sycl", "musa", "cann", "metal", "mtl", "webgpu", "opencl",
    "rpc", "dev",
];

/// Parses a buffer name such as `CPU`, `CUDA1` or `Vulkan_Host`.
pub fn buffer(name: &str) -> Option<Buffer> {
    let lower = name.trim().to_ascii_lowercase();
    if lower.starts_with("cpu") || lower.ends_with("_host") || lower == "host" {
        return Some(Buffer::Host);
    }
    let bare = lower.split(['[', '_']).next().unwrap_or(&lower);
    let stem = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &bare[stem.len()..];
    match stem {
        "metal" | "mtl" => Some(Buffer::Device(0)),
        // Some builds omit the first device's number.
        _ if STEMS.contains(&stem) && number.is_empty() => Some(Buffer::Device(0)),
        _ if STEMS.contains(&stem) => number.parse().ok().map(Buffer::Device),
        _ => None,
    }
}

/// Returns the position of a buffer's device in the device list (`-dev`).
pub fn position(line: &CommandLine, name: &str, number: usize) -> Option<usize> {
    match line.value(Setting::Devices) {
        None => Some(number),
        Some(list) => {
            let mut all = list.split(',').map(str::trim);
            all.position(|d| d.eq_ignore_ascii_case(name.trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn a_line_names_at_least_so_many_devices() {
        let of = |line| {
            let DeviceCount {
                count,
                assumed,
                named_by,
            } = device_count(&read(line));
            (count, assumed, named_by.is_some())
        };
        assert_eq!(of("llama-server"), (2, true, false));
        assert_eq!(of("llama-server -mg 0"), (2, true, false));
        assert_eq!(of("llama-server -sm none -mg 3"), (4, true, true));
        assert_eq!(
            of("llama-server -ot a=CPU,b=CUDA3 -ot c=Vulkan2"),
            (4, true, true)
        );
        assert_eq!(of("llama-server -ts 1,1,1,1"), (4, false, false));
        assert_eq!(of("llama-server -ts 1,1 -ot a=CUDA2"), (3, true, true));
        assert_eq!(
            of("llama-server -dev CUDA0,CUDA3 -ot a=CUDA3"),
            (2, false, false)
        );
        assert_eq!(
            of("CUDA_VISIBLE_DEVICES=0 llama-server -mg 1"),
            (1, false, false)
        );
        assert_eq!(of("llama-server -mg 1000000"), (2, true, false));
        assert_eq!(of("llama-server --rpc a:1"), (2, true, false));
        assert_eq!(of("llama-server --rpc a:1,b:1"), (3, true, false));
        assert_eq!(of("llama-server --rpc a:1 -ts 1,1,2"), (3, false, false));
        assert_eq!(
            of("CUDA_VISIBLE_DEVICES=0,1 llama-server --rpc a:1"),
            (3, false, false)
        );
        assert_eq!(
            of("llama-server --rpc a:1,b:1 -dev RPC0,CUDA0"),
            (2, false, false)
        );
    }

    #[test]
    fn a_list_of_devices_says_which_are_servers() {
        let of = |line| (read(line).servers(), read(line).servers_at());
        let a = || Some(vec!["a:1".to_owned()]);
        assert_eq!(
            of("llama-server --rpc a:1,b:1 -dev CUDA0,RPC0"),
            (a(), Some(vec![1]))
        );
        assert_eq!(
            of("llama-server --rpc a:1 -dev CUDA0,CUDA1"),
            (None, Some(Vec::new()))
        );
        assert_eq!(of("llama-server --rpc a:1"), (a(), None));
        assert_eq!(of("llama-server"), (None, None));
    }

    #[test]
    fn buffers_have_devices() {
        for (name, expected) in [
            ("CPU", Some(Buffer::Host)),
            ("CUDA_Host", Some(Buffer::Host)),
            ("CUDA1", Some(Buffer::Device(1))),
            ("Vulkan0", Some(Buffer::Device(0))),
            ("Metal", Some(Buffer::Device(0))),
            ("RPC1[10.0.0.1:50052]", Some(Buffer::Device(1))),
            ("Nowhere", None),
            ("", None),
        ] {
            assert_eq!(buffer(name), expected, "{name}");
        }
        let line = read("llama-server -dev CUDA2,CUDA0");
        assert_eq!(position(&line, "cuda0", 0), Some(1));
        assert_eq!(position(&line, "CUDA1", 1), None);
        assert_eq!(position(&read("llama-server"), "CUDA1", 1), Some(1));
    }
}
