use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tpc_diag::Diagnostic;
use tpc_engine::embed::Embedder;
use tpc_engine::generate::Generator;
use tpc_engine::{AnySession, Error};

use crate::admission::AdmissionLimits;
use crate::app::App;
use crate::codes;
use crate::http::{accept, routes};
use crate::model::{Model, Served};
use crate::options::ServerOptions;
use crate::scheduler::{Command, Scheduler, Sizes, embed};
use crate::shared::Shared;

/// Time after the end of all requests in which the current batch must end.
const LAST_BATCH: Duration = Duration::from_secs(10);

/// A server that listens. Until it has a model, it answers requests with 503.
pub struct Server {
    app: Arc<App>,
    address: SocketAddr,
    commands: mpsc::Receiver<Command>,
    closed: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at the options' address, for a model with `slots` parallel requests.
    ///
    /// # Errors
    /// Returns TPC0462 if the address is in use or cannot be used.
    pub fn start(options: ServerOptions, slots: usize) -> Result<Server, Diagnostic> {
        let address = options.address;
        let failed = |e: std::io::Error| {
            let message = format!("cannot listen at {address}: {e}");
            Diagnostic::new(&codes::LISTEN, "--port", message).help(
                "stop the program that listens there, or choose another --port; 0 is any free port",
            )
        };
        let limits = AdmissionLimits {
            all: options.max_queue.saturating_add(slots),
            user: options.max_user,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tpc-http")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, commands) = mpsc::channel();
        let (closed, closing) = watch::channel(false);
        let shared = Arc::new(Shared::new(limits));
        let app = Arc::new(App::new(options, shared, sender));
        let served = Arc::clone(&app);
        let work = move || serve(&runtime, served, listener, closing);
        let thread = std::thread::Builder::new().name("tpc-http".to_owned());
        let thread = thread.spawn(work).map_err(failed)?;
        Ok(Server {
            app,
            address,
            commands,
            closed,
            thread: Some(thread),
        })
    }

    /// Returns the listen address with its port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if a signal has ended the server while the model was loading.
    pub fn is_stopped(&self) -> bool {
        self.app.shared.is_draining()
    }

    /// Answers requests for text until SIGTERM or Ctrl-C. `ready` is called when the server answers requests.
    ///
    /// # Errors
    /// Returns the model's error if its first batch fails.
    pub fn generate(
        self,
        model: Model,
        mut generator: Generator<'_>,
        ready: impl FnOnce(),
    ) -> Result<(), Error> {
        generator.chunk = self.app.options.chunk.max(1);
        let tokenizer = Arc::clone(&model.tokenizer);
        let sizes = Sizes {
            n: model.slots,
            n_vocab: model.n_vocab,
            bytes: self.app.options.prefix_bytes,
            recurrent: model.recurrent,
        };
        let shared = Arc::clone(&self.app.shared);
        let mut scheduler = Scheduler::new(generator, &tokenizer, sizes, &shared);
        scheduler.warm_up()?;
        self.app.set_model(Served::new(model));
        ready();
        scheduler.run(&self.commands);
        Ok(())
    }

    /// Answers requests for embeddings until SIGTERM or Ctrl-C. `ready` is called when the server answers requests.
    pub fn embed(
        self,
        model: Model,
        session: &mut AnySession<'_>,
        embedder: &Embedder,
        batch: usize,
        ready: impl FnOnce(),
    ) {
        let shared = Arc::clone(&self.app.shared);
        self.app.set_model(Served::new(model));
        ready();
        embed(session, embedder, batch, &self.commands, &shared);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.app.shared.drain();
        self.closed.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(runtime: &Runtime, app: Arc<App>, listener: TcpListener, closed: watch::Receiver<bool>) {
    let most = app.options.max_connections;
    let routes = routes(Arc::clone(&app));
    runtime.block_on(async {
        let signals = tokio::spawn(signals(app));
        accept(listener, routes, most, closed).await;
        signals.abort();
    });
}

/// Starts the shutdown at SIGTERM or Ctrl-C. Requests in progress end at a second signal, or after the time to drain.
async fn signals(app: Arc<App>) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::warn!("cannot listen for signals");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let open = app.shared.admission.open();
    tracing::info!(open, "shutting down after the requests in progress");
    app.shared.drain();
    let _ = app.send(Command::Wake);
    let drain = tokio::time::sleep(app.options.drain);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = drain => {}
    }
    app.shared.abort();
    let _ = app.send(Command::Wake);
    tokio::time::sleep(LAST_BATCH).await;
    // The scheduler's thread waits for a device, so the process can only end from here.
    tracing::error!("a device hangs: the process ends without it");
    (app.options.abandon)();
}
