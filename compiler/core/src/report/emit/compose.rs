//! A Docker Compose file. Compose expands `$`, so it is doubled.

use super::container::{Gpus, Mount, gpus, image, mounted};
use super::yaml::{list, string};
use super::{Deployment, Unfit};

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    let gpus = gpus(&deployment.backends)?;
    let image = image(deployment, gpus)?;
    let (mut words, mounts) = mounted(deployment);
    words.extend(["--host", "0.0.0.0", "--port", "8080"].map(str::to_owned));
    let words: Vec<String> = words.iter().map(|w| literal(w)).collect();
    let mut out = deployment.comments();
    out.push_str(&format!(
        "services:\n  {}:\n    image: {}\n    command:\n{}",
        deployment.name,
        string(&literal(&image)),
        list(&words, 6)
    ));
    out.push_str("    ports:\n      - \"127.0.0.1:8080:8080\"\n");
    out.push_str(&volumes(&mounts));
    out.push_str(&devices(deployment, gpus));
    out.push_str("    restart: unless-stopped\n");
    Ok(out)
}

fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

fn volumes(mounts: &[Mount]) -> String {
    let mut out = String::new();
    for m in mounts {
        let head = if out.is_empty() { "    volumes:\n" } else { "" };
        out.push_str(&format!(
            "{head}      - type: bind\n        source: {}\n        target: {}\n        read_only: true\n",
            string(&literal(&m.source)),
            m.target
        ));
    }
    out
}

fn devices(deployment: &Deployment, gpus: Gpus) -> String {
    let files = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|n| format!("{n}:{n}")).collect();
        format!("    devices:\n{}", list(&names, 6))
    };
    match gpus {
        Gpus::None => String::new(),
        Gpus::Cuda => {
            let count = match deployment.lists_devices {
                true => "all".to_owned(),
                false => deployment.backends.len().to_string(),
            };
            format!(
                "    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n\
                 \x20             count: {count}\n              capabilities: [gpu]\n"
            )
        }
        Gpus::Rocm => files(&["/dev/kfd", "/dev/dri"]),
        Gpus::Sycl | Gpus::Vulkan => files(&["/dev/dri"]),
    }
}
