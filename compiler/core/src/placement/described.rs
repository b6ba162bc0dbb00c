use tpc_passes::machine::LinkKind;

use super::Placement;

/// Formats a placement's devices and links as a topology file.
pub fn describe(placement: &Placement) -> String {
    let mut out = "Topology(\n    devices: [\n".to_owned();
    let quoted = |text: &str| format!("{text:?}");
    for (i, device) in placement.devices.iter().enumerate() {
        let profile = placement.topology.device(i);
        let entry = match &device.card {
            Some(card) => format!("card: {}", quoted(card)),
            None => {
                let memory = profile.memory.map(|m| format!(", memory: {m:.0}"));
                format!(
                    "name: {}, bandwidth: {:.0}, flops: {:.0}{}",
                    quoted(&device.name),
                    profile.bandwidth,
                    profile.flops,
                    memory.unwrap_or_default()
                )
            }
        };
        out += &format!("        ({entry}),\n");
    }
    out += "    ],\n";
    let link = placement.topology.link;
    if placement.devices.len() > 1 {
        let kind = match link.kind {
            LinkKind::Unstated => String::new(),
            kind => format!(", kind: {}", quoted(kind.name())),
        };
        out += &format!(
            "    link: (bandwidth: {:.0}, latency_us: {:.1}{kind}),\n",
            link.bandwidth, link.latency_us
        );
    }
    out + ")\n"
}
