//! Parts of Kubernetes objects.
//!
//! Kubernetes expands `$(…)` and reads `$$` as `$` in commands, so `$` is doubled.

use super::container::{Gpus, Mount};
use super::yaml::string;

/// Returns the service of a leader's HTTP port.
pub(super) fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}-http\nspec:\n  selector:\n    app: {name}\n\
         \x20   role: leader\n  ports:\n    - name: http\n      port: 8080\n      targetPort: 8080\n"
    )
}

/// Returns a text that Kubernetes does not expand.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// Returns the request for GPUs, with the names of the makers' device plugins.
pub(super) fn resources(gpus: Gpus, count: usize) -> String {
    let name = match gpus {
        Gpus::None | Gpus::Vulkan => return String::new(),
        _ if count == 0 => return String::new(),
        Gpus::Cuda => "nvidia.com/gpu",
        Gpus::Rocm => "amd.com/gpu",
        Gpus::Sycl => "gpu.intel.com/xe",
    };
    format!("            resources:\n              limits:\n                {name}: {count}\n")
}

/// Returns the mounts of a container and the volumes of its pod; empty texts without mounts.
pub(super) fn volumes(mounts: &[Mount]) -> (String, String) {
    let (mut inside, mut volumes) = (String::new(), String::new());
    for (i, m) in mounts.iter().enumerate() {
        let (source, target) = (string(&m.source), &m.target);
        inside += &format!(
            "              - name: models-{i}\n                mountPath: {target}\n                readOnly: true\n"
        );
        volumes += &format!(
            "          - name: models-{i}\n            hostPath:\n              path: {source}\n              type: Directory\n"
        );
    }
    if !mounts.is_empty() {
        inside.insert_str(0, "            volumeMounts:\n");
        volumes.insert_str(0, "        volumes:\n");
    }
    (inside, volumes)
}
