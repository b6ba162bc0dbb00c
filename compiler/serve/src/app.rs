use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use crate::admission::Refusal;
use crate::error::ApiError;
use crate::model::Served;
use crate::options::ServerOptions;
use crate::scheduler::Command;
use crate::shared::Shared;

/// The state of all request handlers.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServerOptions,
    pub(crate) shared: Arc<Shared>,
    model: OnceLock<Served>,
    commands: Mutex<mpsc::Sender<Command>>,
}

/// The health of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Requests are answered.
    Ok,
    /// The model is being loaded.
    Loading,
    /// The server is shutting down.
    Draining,
    /// The model cannot answer, for this reason.
    Failing(String),
}

impl App {
    pub(crate) fn new(
        options: ServerOptions,
        shared: Arc<Shared>,
        commands: mpsc::Sender<Command>,
    ) -> App {
        App {
            options,
            shared,
            model: OnceLock::new(),
            commands: Mutex::new(commands),
        }
    }

    /// Sets the loaded model; requests are answered from now on.
    pub(crate) fn set_model(&self, served: Served) {
        let _ = self.model.set(served);
    }

    /// Returns the loaded model, even if it cannot answer now.
    pub(crate) fn loaded(&self) -> Option<&Served> {
        self.model.get()
    }

    pub(crate) fn health(&self) -> Health {
        if self.shared.is_draining() {
            Health::Draining
        } else if self.model.get().is_none() {
            Health::Loading
        } else if let Some(hung) = self.shared.pulse.hung() {
            Health::Failing(format!(
                "a device hangs: a batch has run for {:.1} s, and its limit is {:.1} s",
                hung.since.as_secs_f64(),
                hung.limit.as_secs_f64()
            ))
        } else if let Some(why) = self.shared.broken() {
            Health::Failing(why)
        } else {
            Health::Ok
        }
    }

    /// Returns the model if it can answer.
    ///
    /// # Errors
    /// Returns 503 with the cause.
    pub(crate) fn ready(&self) -> Result<&Served, ApiError> {
        match (self.health(), self.model.get()) {
            (Health::Ok, Some(served)) => Ok(served),
            (Health::Draining, _) => Err(ApiError::unavailable("the server is shutting down")),
            (Health::Failing(why), _) => Err(ApiError::unavailable(why)),
            _ => Err(ApiError::unavailable("the model is being loaded")),
        }
    }

    /// Sends a command to the scheduler.
    ///
    /// # Errors
    /// Returns 503 if the scheduler has ended.
    pub(crate) fn send(&self, command: Command) -> Result<(), ApiError> {
        let commands = self.commands.lock();
        let sent = commands
            .unwrap_or_else(PoisonError::into_inner)
            .send(command);
        sent.map_err(|_| ApiError::unavailable("the server is shutting down"))
    }

    /// Returns the error of a request that is not admitted.
    pub(crate) fn refusal(&self, refusal: Refusal) -> ApiError {
        self.shared.metrics.refused.add(1);
        match refusal {
            Refusal::ServerFull => {
                ApiError::unavailable("too many requests are waiting; try again later")
            }
            Refusal::UserFull => ApiError::too_many(self.options.max_user),
        }
    }
}
