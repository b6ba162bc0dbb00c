//! Configurations that start another engine with a plan: `tpc plan --emit`.
//!
//! [`EMITTERS`] has a row per target, and each target has a module. All start the plan's own command
//! ([`Commands`](super::Commands)).

mod compose;
mod container;
mod deployment;
mod k8s;
mod k8s_lws;
mod k8s_mpi;
mod llama_server;
mod llama_swap;
mod systemd;
mod yaml;

pub use deployment::Deployment;

use tpc_diag::{Diagnostic, codes};

/// A target of `--emit`.
pub struct Emitter {
    /// The name in `--emit`.
    pub name: &'static str,
    /// The written file.
    pub about: &'static str,
    /// True if the target starts several machines.
    starts_machines: bool,
    emit: fn(&Deployment) -> Result<String, Unfit>,
}

/// All targets.
pub static EMITTERS: [Emitter; 5] = [
    Emitter {
        name: "llama-server",
        about: "a shell script",
        starts_machines: false,
        emit: llama_server::emit,
    },
    Emitter {
        name: "llama-swap",
        about: "llama-swap's config.yaml",
        starts_machines: false,
        emit: llama_swap::emit,
    },
    Emitter {
        name: "compose",
        about: "a Docker Compose file",
        starts_machines: false,
        emit: compose::emit,
    },
    Emitter {
        name: "systemd",
        about: "a systemd unit",
        starts_machines: false,
        emit: systemd::emit,
    },
    Emitter {
        name: "k8s-lws",
        about: "a Kubernetes LeaderWorkerSet with RPC servers, or with MPI for tpc on several machines",
        starts_machines: true,
        emit: k8s_lws::emit,
    },
];

/// The reason why a target cannot hold a deployment, and the cure.
struct Unfit {
    reason: String,
    cure: String,
}

impl Unfit {
    fn new(reason: impl Into<String>, cure: impl Into<String>) -> Unfit {
        Unfit {
            reason: reason.into(),
            cure: cure.into(),
        }
    }
}

impl Emitter {
    /// Returns the target with this name.
    pub fn named(name: &str) -> Option<&'static Emitter> {
        EMITTERS.iter().find(|e| e.name == name)
    }

    /// Returns the file's text.
    ///
    /// # Errors
    /// Returns TPC0416 if the target cannot hold the deployment.
    pub fn emit(&self, deployment: &Deployment) -> Result<String, Diagnostic> {
        if !deployment.machines.is_empty() && !self.starts_machines {
            let reason = "the plan needs several machines, but the target starts one";
            let cure =
                "use `--emit k8s-lws`, or run the printed command, which starts tpc with mpirun";
            return Err(refusal(self.name, Unfit::new(reason, cure)));
        }
        (self.emit)(deployment).map_err(|u| refusal(self.name, u))
    }
}

fn refusal(target: &str, unfit: Unfit) -> Diagnostic {
    let d = Diagnostic::new(
        &codes::NO_CONFIGURATION,
        format!("--emit {target}"),
        unfit.reason,
    );
    d.help(unfit.cure)
}
