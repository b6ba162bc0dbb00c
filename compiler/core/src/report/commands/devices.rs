use super::refusal::Refusal;
use crate::cards::{CardMatch, Vendor, find, table};
use crate::placement::{DeviceKind, DeviceSpec, Placement};

/// Returns the value of `-dev`; `None` if the command uses all devices.
pub(super) fn devices(all: &[DeviceSpec]) -> Result<Option<String>, Refusal> {
    let mut names: Vec<String> = Vec::new();
    for (d, device) in all.iter().enumerate() {
        match device.kind {
            DeviceKind::Generic => return Ok(None),
            DeviceKind::Cpu | DeviceKind::Numa(_) if all.len() == 1 => {
                return Ok(Some("none".to_owned()));
            }
            DeviceKind::Cpu | DeviceKind::Numa(_) => {
                let why = "it splits only among GPUs; a CPU can be a device only of its RPC server";
                return Err(Refusal::new(why));
            }
            DeviceKind::Cuda(_) => {
                let name = buffer(all, d)?;
                if names.contains(&name) {
                    return Err(Refusal::new(format!(
                        "it uses {name} as one device, not as two"
                    )));
                }
                names.push(name);
            }
        }
    }
    Ok(Some(names.join(",")))
}

/// Returns the back end of a device's card; CUDA if unknown.
fn backend(device: &DeviceSpec) -> &'static str {
    let vendor = device
        .card
        .as_deref()
        .and_then(|name| match find(name, &[], table()) {
            CardMatch::Card(card) | CardMatch::Meant { card, .. } => card.vendor,
            _ => None,
        });
    match vendor {
        Some(Vendor::Amd) => "ROCm",
        Some(Vendor::Intel) => "SYCL",
        Some(Vendor::Apple) => "MTL",
        Some(Vendor::Nvidia) | None => "CUDA",
    }
}

/// Returns the name of a device's buffers, with the device's number in its back end.
pub(super) fn buffer(all: &[DeviceSpec], d: usize) -> Result<String, Refusal> {
    let Some(device) = all.get(d) else {
        let why = "an override names a device that does not exist";
        return Err(Refusal::new(why));
    };
    Ok(match device.kind {
        DeviceKind::Cuda(n) => format!("CUDA{n}"),
        DeviceKind::Generic => {
            let backend = backend(device);
            let before = all[..d].iter().filter(|o| self::backend(o) == backend);
            format!("{backend}{}", before.count())
        }
        DeviceKind::Cpu | DeviceKind::Numa(_) => "CPU".to_owned(),
    })
}

/// Describes the device order that a command assumes, if devices differ and options refer to them by number.
pub(super) fn order(placement: &Placement, words: &[String]) -> Option<String> {
    let all = &placement.devices;
    let profile = |d: usize| {
        let p = placement.topology.device(d);
        (p.memory, p.bandwidth)
    };
    let unlike = (1..all.len()).any(|d| all[d].card != all[0].card || profile(d) != profile(0));
    let counts = |w: &String| w == "-ts" || w == "-mg" || w == "-ot";
    let listed = words.iter().any(|w| w == "-dev");
    if !unlike || listed || !words.iter().any(counts) {
        return None;
    }
    let names: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
    Some(format!(
        "llama.cpp numbers devices in the order of `llama-server --list-devices`, the fastest CUDA device first; this \
         command expects {}: set the order with -dev",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{DeviceList, Machine, parse_devices};

    #[test]
    fn devices_have_the_names_of_the_program() {
        let list = |text| devices(&parse_devices(text).expect("a list of devices"));
        assert_eq!(list("2"), Ok(None));
        assert_eq!(list("cuda:1,cuda:0"), Ok(Some("CUDA1,CUDA0".to_owned())));
        assert_eq!(list("cpu"), Ok(Some("none".to_owned())));
        assert_eq!(list("numa:1"), Ok(Some("none".to_owned())));
        assert!(list("numa:0,numa:1").is_err());
        assert!(list("cuda:0,cuda:0").is_err() && list("cpu,cuda:0").is_err());
    }

    fn placement(text: &str) -> Placement {
        let machine = Machine::of(&DeviceList::parse(text).expect("a list")).expect("cards");
        let mut out = Placement::on(machine.devices);
        out.topology = machine.topology;
        out
    }

    #[test]
    fn buffers_are_named_after_the_maker_of_the_card() {
        let of = |text, d| buffer(&placement(text).devices, d).expect("a device");
        assert_eq!(of("2x3090", 1), "CUDA1");
        assert_eq!(of("2x7900XTX", 1), "ROCm1");
        assert_eq!(of("3090,7900XTX", 1), "ROCm0");
        assert_eq!(of("2", 1), "CUDA1");
    }

    #[test]
    fn the_order_of_unlike_devices_is_told() {
        let told = |text, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
            order(&placement(text), &words).is_some()
        };
        assert!(told("4090,3090", &["-sm", "layer", "-ts", "3,1"]));
        assert!(!told("4090,3090", &["-sm", "none"]));
        assert!(!told("2x3090", &["-ts", "1,1"]));
    }
}
