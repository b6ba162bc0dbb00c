//! Containers: the image, and the folders with files.

use tpc_passes::machine::{Backend, Engine};

use super::deployment::Word;
use super::{Deployment, Unfit};

/// A folder of the host in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) source: String,
    pub(super) target: String,
}

/// Returns the command's words with paths inside the container, and the folders to mount.
pub(super) fn mounted(deployment: &Deployment) -> (Vec<String>, Vec<Mount>) {
    let mut mounts: Vec<Mount> = Vec::new();
    let mut inside = |path: &str| {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let source = if folder.is_empty() { "/" } else { folder };
        let known = mounts.iter().position(|m| m.source == source);
        let at = known.unwrap_or_else(|| {
            let target = match mounts.len() {
                0 => "/models".to_owned(),
                n => format!("/models{}", n + 1),
            };
            mounts.push(Mount {
                source: source.to_owned(),
                target,
            });
            mounts.len() - 1
        });
        format!("{}/{file}", mounts[at].target)
    };
    let words = deployment.words.iter().map(|w| match w {
        Word::Path(path) => inside(path),
        Word::Text(text) => text.clone(),
    });
    (words.collect(), mounts)
}

/// The GPUs of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gpus {
    None,
    Cuda,
    Rocm,
    Sycl,
    Vulkan,
}

/// Returns the kind of GPUs that devices with these back ends need.
pub(super) fn gpus<'b>(backends: impl IntoIterator<Item = &'b Backend>) -> Result<Gpus, Unfit> {
    let of = |backend: &Backend| match backend {
        Backend::Cuda => Ok(Gpus::Cuda),
        Backend::Rocm => Ok(Gpus::Rocm),
        Backend::Sycl => Ok(Gpus::Sycl),
        Backend::Vulkan => Ok(Gpus::Vulkan),
        Backend::Cpu | Backend::Rpc => Ok(Gpus::None),
        Backend::Metal => Err(Unfit::new(
            "containers cannot use Metal",
            "use `--emit llama-server` or `--emit llama-swap`",
        )),
    };
    let all: Vec<Gpus> = backends.into_iter().map(of).collect::<Result<_, _>>()?;
    let mut own = all.into_iter().filter(|g| *g != Gpus::None);
    let first = own.next().unwrap_or(Gpus::None);
    match own.all(|g| g == first) {
        true => Ok(first),
        false => Err(Unfit::new(
            "the devices need several back ends, but a container image has one",
            "plan for devices of one maker, or add `--backend vulkan`",
        )),
    }
}

/// Returns the image of `--emit-image`, or else llama.cpp's published image.
pub(super) fn image(deployment: &Deployment, gpus: Gpus) -> Result<String, Unfit> {
    if let Some(image) = &deployment.image {
        return Ok(image.clone());
    }
    if deployment.engine == Engine::Tpc {
        return Err(Unfit::new(
            "tpc has no published container image with MPI",
            "build an image with tpc (feature `mpi`), mpirun and an SSH server with keys, and add `--emit-image NAME`",
        ));
    }
    if deployment.engine == Engine::IkLlamaCpp {
        return Err(Unfit::new(
            "ik_llama.cpp has no published container image",
            "build an image whose entry point is llama-server, and add `--emit-image NAME`",
        ));
    }
    if !deployment.server_backends.is_empty() {
        return Err(Unfit::new(
            "llama.cpp's published container images lack the RPC back end",
            "build an image with `-DGGML_RPC=ON` whose entry point is llama-server, and add `--emit-image NAME`",
        ));
    }
    let tag = match gpus {
        Gpus::None => "server",
        Gpus::Cuda => "server-cuda",
        Gpus::Rocm => "server-rocm",
        Gpus::Sycl => "server-intel",
        Gpus::Vulkan => "server-vulkan",
    };
    Ok(format!("ghcr.io/ggml-org/llama.cpp:{tag}"))
}
