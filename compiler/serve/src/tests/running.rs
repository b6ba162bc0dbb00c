use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value as Json;
use tower::ServiceExt;
use tpc_engine::generate::Generator;

use super::model::{Oracle, VOCAB, model};
use crate::ServerOptions;
use crate::admission::AdmissionLimits;
use crate::app::App;
use crate::http::routes;
use crate::model::Served;
use crate::scheduler::{Command, Scheduler, Sizes};
use crate::shared::Shared;

/// A server without connections.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) app: Arc<App>,
    routes: Router,
}

/// Sizes of a test's server.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) slots: usize,
    pub(super) n_ctx: usize,
    pub(super) batch: usize,
    pub(super) chunk: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            slots: 3,
            n_ctx: 200,
            batch: 32,
            chunk: 8,
        }
    }
}

/// Runs a scheduler with a model while `clients` sends requests. Returns the model.
pub(super) fn run<R: Future<Output = ()>>(
    oracle: Oracle,
    setup: Setup,
    clients: impl FnOnce(Running) -> R + Send,
) -> Oracle {
    let mut oracle = oracle;
    let (sender, commands) = mpsc::channel();
    let limits = AdmissionLimits { all: 64, user: 64 };
    let shared = Arc::new(Shared::new(limits));
    let address = ([127, 0, 0, 1], 0).into();
    let app = App::new(ServerOptions::new(address), Arc::clone(&shared), sender);
    let app = Arc::new(app);
    let described = model(setup.slots, setup.n_ctx);
    let tokenizer = Arc::clone(&described.tokenizer);
    app.set_model(Served::new(described));
    let running = Running {
        routes: routes(Arc::clone(&app)),
        app,
    };
    std::thread::scope(|s| {
        s.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            let app = Arc::clone(&running.app);
            runtime.block_on(clients(running));
            app.shared.abort();
            let _ = app.send(Command::Wake);
        });
        let generator = Generator {
            chunk: setup.chunk,
            ..Generator::new(&mut oracle, setup.n_ctx, setup.batch)
        };
        let sizes = Sizes {
            n: setup.slots,
            n_vocab: VOCAB,
            bytes: 0,
            recurrent: false,
        };
        Scheduler::new(generator, &tokenizer, sizes, &shared).run(&commands);
    });
    oracle
}

impl Running {
    /// Waits until the server has closed all requests. A client may have its answer a moment earlier.
    pub(super) async fn close_all(&self) {
        for _ in 0..500 {
            if self.app.shared.admission.open() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.app.shared.admission.open(), 0);
    }

    /// Sends a request. Returns the status and the body.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> (StatusCode, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::from(body));
        let Ok(request) = request else {
            return (StatusCode::BAD_REQUEST, Vec::new());
        };
        let response = self.routes.clone().oneshot(request).await;
        let response = response.unwrap_or_else(|e| match e {});
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        (status, body.expect("a body").to_vec())
    }

    /// Posts JSON. Returns the JSON of an answer with this status.
    pub(super) async fn post(&self, path: &str, body: &Json, status: u16) -> Json {
        let (found, body) = self.send("POST", path, body.to_string().into_bytes()).await;
        let text = String::from_utf8_lossy(&body);
        assert_eq!(found.as_u16(), status, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }
}
