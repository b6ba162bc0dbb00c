//! A Kubernetes LeaderWorkerSet: the leader runs `llama-server`, and each worker runs an RPC server.

use super::container::{Gpus, Mount, gpus, image, mounted};
use super::deployment::PROGRAM;
use super::k8s::{literal, resources, service, volumes};
use super::yaml::{list, string};
use super::{Deployment, Unfit, k8s_mpi};

/// The port of the RPC servers.
const PORT: u16 = 50052;

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    if !deployment.machines.is_empty() {
        return k8s_mpi::emit(deployment);
    }
    let servers = &deployment.server_backends;
    if servers.is_empty() {
        return Err(Unfit::new(
            "a LeaderWorkerSet needs a worker per RPC server, but the plan has no servers",
            "add `--rpc HOST:PORT,…` with an address per worker, plan several machines for tpc (`--devices \
             2*8xH100-SXM@ib-ndr`), or use `--emit compose` for one machine",
        ));
    }
    // The leader and the workers use one image.
    let gpus = gpus(deployment.backends.iter().chain(servers))?;
    let image = string(&image(deployment, gpus)?);
    let name = &deployment.name;
    let size = servers.len() + 1;
    let (words, mounts) = mounted(deployment);
    let comments = deployment.comments();
    let leader = leader(deployment, &image, gpus, (&words, &mounts));
    let worker = worker(&image, gpus);
    Ok(format!(
        "{comments}apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: {name}\nspec:\n\
         \x20 replicas: 1\n  leaderWorkerTemplate:\n    size: {size}\n    restartPolicy: RecreateGroupOnPodRestart\n\
         {leader}{worker}---\n{}",
        service(name)
    ))
}

/// Returns the script that sets `servers` to the addresses of the workers. A worker's name is its leader's name with a
/// number.
fn addresses(servers: usize) -> String {
    let each = (1..=servers).map(|i| format!("$leader-{i}.$domain:{PORT}"));
    format!(
        "leader=${{LWS_LEADER_ADDRESS%%.*}} domain=${{LWS_LEADER_ADDRESS#*.}}\nservers={}\n",
        each.collect::<Vec<_>>().join(",")
    )
}

fn leader(
    deployment: &Deployment,
    image: &str,
    gpus: Gpus,
    (words, mounts): (&[String], &[Mount]),
) -> String {
    let addresses = addresses(deployment.server_backends.len());
    let wait = format!(
        "{addresses}for server in $(echo $servers | tr , ' '); do\n  \
         until (: < /dev/tcp/${{server%:*}}/${{server#*:}}) 2> /dev/null; do sleep 2; done\ndone\n"
    );
    let run = format!("{addresses}exec {PROGRAM} \"$@\" --rpc \"$servers\"\n");
    let shell = |script: &str| vec!["bash".to_owned(), "-c".to_owned(), literal(script)];
    // The plan's own addresses give way to the workers' addresses.
    let mut own: Vec<String> = vec![PROGRAM.to_owned()];
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--rpc" => drop(rest.next()),
            _ => own.push(literal(word)),
        }
    }
    own.extend(["--host", "0.0.0.0", "--port", "8080"].map(str::to_owned));
    let count = deployment.backends.len();
    let (inside, volumes) = volumes(mounts);
    format!(
        "    leaderTemplate:\n      metadata:\n        labels:\n          app: {}\n          role: leader\n      spec:\n\
         \x20       initContainers:\n          - name: wait-for-servers\n            image: {image}\n            command:\n{}\
         \x20       containers:\n          - name: server\n            image: {image}\n            command:\n{}            args:\n{}\
         \x20           ports:\n              - containerPort: 8080\n            readinessProbe:\n              httpGet:\n\
         \x20               path: /health\n                port: 8080\n{}{inside}{volumes}",
        deployment.name,
        list(&shell(&wait), 14),
        list(&shell(&run), 14),
        list(&own, 14),
        resources(gpus, count),
    )
}

fn worker(image: &str, gpus: Gpus) -> String {
    let words = ["ggml-rpc-server", "-H", "0.0.0.0", "-p", &PORT.to_string()];
    format!(
        "    workerTemplate:\n      spec:\n        containers:\n          - name: rpc\n            image: {image}\n\
         \x20           command:\n{}            ports:\n              - containerPort: {PORT}\n{}",
        list(&words.map(str::to_owned), 14),
        resources(gpus, 1),
    )
}
