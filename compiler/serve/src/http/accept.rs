use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Time limit for the headers of a request, from the connection or the last answer on.
const HEADERS: Duration = Duration::from_secs(60);
/// Time limit for the last answers after the shutdown.
const LAST_WRITES: Duration = Duration::from_secs(2);
/// Pause after a failed accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts up to `most` connections at a time until `closed` is true, then lets the answers in progress be written.
pub(crate) async fn accept(
    listener: TcpListener,
    routes: Router,
    most: usize,
    mut closed: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(most));
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = closing(&mut closed) => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing(&mut closed) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                let serving = serve(TokioIo::new(stream), peer, routes.clone(), closed.clone());
                tokio::spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(LAST_WRITES, places.acquire_many(all)).await;
}

async fn serve(
    stream: TokioIo<tokio::net::TcpStream>,
    peer: SocketAddr,
    routes: Router,
    mut closed: watch::Receiver<bool>,
) {
    let routes = routes.layer(axum::Extension(ConnectInfo(peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(stream, TowerToHyperService::new(routes));
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = closing(&mut closed) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = result {
        tracing::debug!(%peer, "the connection ended: {e}");
    }
}

/// Waits for the shutdown.
async fn closing(closed: &mut watch::Receiver<bool>) {
    let _ = closed.wait_for(|closed| *closed).await;
}
