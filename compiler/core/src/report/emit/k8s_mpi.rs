//! A Kubernetes LeaderWorkerSet with one pod per machine: the leader starts tpc on all machines with MPI, and each worker
//! runs an SSH server.

use super::container::{gpus, image, mounted};
use super::k8s::{literal, resources, service, volumes};
use super::yaml::{list, string};
use super::{Deployment, Unfit};
use crate::report::commands::ONE_PER_MACHINE;

/// The file of the leader with the machines' addresses.
const HOST_FILE: &str = "/tmp/hosts";

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    let gpus = gpus(&deployment.backends)?;
    let image = string(&image(deployment, gpus)?);
    let name = &deployment.name;
    let size = deployment.machines.len();
    let (words, mounts) = mounted(deployment);
    let (inside, volumes) = volumes(&mounts);
    let comments = deployment.comments();
    // A pod requests the GPUs of the largest machine, because all workers share one template.
    let count = deployment.machines.iter().copied().max().unwrap_or(1);
    let resources = resources(gpus, count);
    let shell = |script: &str| {
        let words = ["bash".to_owned(), "-c".to_owned(), literal(script)];
        list(&words, 14)
    };
    let (wait, run) = (shell(&wait(size)), shell(&run(size)));
    let mut own: Vec<String> = vec!["tpc".to_owned(), "serve".to_owned()];
    own.extend(words.iter().skip(1).map(|w| literal(w)));
    own.extend(["--host", "0.0.0.0", "--port", "8080"].map(str::to_owned));
    let sshd = ["/usr/sbin/sshd", "-D", "-e"].map(str::to_owned);
    let (own, sshd) = (list(&own, 14), list(&sshd, 14));
    Ok(format!(
        "{comments}apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: {name}\nspec:\n\
         \x20 replicas: 1\n  leaderWorkerTemplate:\n    size: {size}\n    restartPolicy: RecreateGroupOnPodRestart\n\
         \x20   leaderTemplate:\n      metadata:\n        labels:\n          app: {name}\n          role: leader\n      spec:\n\
         \x20       initContainers:\n          - name: wait-for-workers\n            image: {image}\n            command:\n{wait}\
         \x20       containers:\n          - name: server\n            image: {image}\n            command:\n{run}            args:\n{own}\
         \x20           ports:\n              - containerPort: 8080\n            readinessProbe:\n              httpGet:\n\
         \x20               path: /health\n                port: 8080\n{resources}{inside}{volumes}\
         \x20   workerTemplate:\n      spec:\n        containers:\n          - name: worker\n            image: {image}\n\
         \x20           command:\n{sshd}            ports:\n              - containerPort: 22\n{resources}{inside}{volumes}---\n{}",
        service(name)
    ))
}

/// Returns the script that sets `workers` to the addresses of the workers. A worker's name is its leader's name with a
/// number.
fn workers(machines: usize) -> String {
    let each = (1..machines).map(|i| format!("$leader-{i}.$domain"));
    format!(
        "leader=${{LWS_LEADER_ADDRESS%%.*}} domain=${{LWS_LEADER_ADDRESS#*.}}\nworkers=\"{}\"\n",
        each.collect::<Vec<_>>().join(" ")
    )
}

fn wait(machines: usize) -> String {
    format!(
        "{}for host in $workers; do\n  until (: < /dev/tcp/$host/22) 2> /dev/null; do sleep 2; done\ndone\n",
        workers(machines)
    )
}

/// Returns the script that writes the host file, and starts one process per machine.
fn run(machines: usize) -> String {
    format!(
        "{}for host in $LWS_LEADER_ADDRESS $workers; do echo \"$host slots=1\"; done > {HOST_FILE}\n\
         exec mpirun --allow-run-as-root -np {machines} --hostfile {HOST_FILE} {} \"$@\"\n",
        workers(machines),
        ONE_PER_MACHINE.join(" ")
    )
}
