use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tpc_diag::Diagnostic;

/// An error in OpenAI's form.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    status: StatusCode,
    kind: &'static str,
    message: String,
    param: Option<String>,
    code: Option<String>,
    /// Seconds before the client's next try.
    retry_after: Option<u32>,
    /// Tokens of a prompt that is too long, and of the context.
    sizes: Option<[usize; 2]>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError(Box::new(Details {
            status,
            kind,
            message: message.into(),
            param: None,
            code: None,
            retry_after: None,
            sizes: None,
        }))
    }

    /// Returns an error of the request's field `param`.
    pub(crate) fn field(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError(Box::new(Details {
            param: Some(param.into()),
            ..*ApiError::request(message).0
        }))
    }

    /// Returns an error of the whole request.
    pub(crate) fn request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// Returns the error of a prompt with `n` tokens that does not fit the context.
    pub(crate) fn too_long(param: &str, n: usize, n_ctx: usize) -> ApiError {
        let message = format!(
            "the prompt has {n} tokens, but a request may have at most {n_ctx} tokens with its answer; \
             send a shorter prompt, or start the server with a larger context (-c) or fewer slots (-np)"
        );
        ApiError(Box::new(Details {
            code: Some("context_length_exceeded".to_owned()),
            sizes: Some([n, n_ctx]),
            ..*ApiError::field(param, message).0
        }))
    }

    /// Returns the error of a missing or wrong API key.
    pub(crate) fn unauthorised() -> ApiError {
        let message = "missing or wrong API key; send the header `Authorization: Bearer KEY`";
        ApiError(Box::new(Details {
            code: Some("invalid_api_key".to_owned()),
            ..*ApiError::new(StatusCode::UNAUTHORIZED, "authentication_error", message).0
        }))
    }

    /// Returns the error of an unknown path.
    pub(crate) fn not_found(what: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found_error", what)
    }

    /// Returns the error of a method that a path does not support.
    pub(crate) fn method() -> ApiError {
        let message = "this path does not support the request's method";
        ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request_error",
            message,
        )
    }

    /// Returns the error of a body above the limit.
    pub(crate) fn too_large(limit: usize) -> ApiError {
        let message = format!("the request's body has more than {limit} bytes");
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            message,
        )
    }

    /// Returns the error of a body that does not arrive within `seconds`.
    pub(crate) fn slow_body(seconds: u64) -> ApiError {
        let message = format!("the request's body was not complete after {seconds} s");
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            message,
        )
    }

    /// Returns the error of a function that the model or server does not have.
    pub(crate) fn unsupported(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_supported_error", message)
    }

    /// Returns the error of a user with too many requests.
    pub(crate) fn too_many(limit: usize) -> ApiError {
        let message = format!("this user already has {limit} requests in progress");
        ApiError(Box::new(Details {
            retry_after: Some(1),
            code: Some("rate_limit_exceeded".to_owned()),
            ..*ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message).0
        }))
    }

    /// Returns the error of a server that cannot answer now.
    pub(crate) fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError(Box::new(Details {
            retry_after: Some(1),
            ..*ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable_error",
                message,
            )
            .0
        }))
    }

    /// Returns the error of a fault of the server.
    pub(crate) fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// Returns the error of a page that may not call the server.
    pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// Returns the error of a request that exceeded its time.
    pub(crate) fn deadline(seconds: u64) -> ApiError {
        let message = format!("the answer was not complete after {seconds} s");
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout_error", message)
    }

    /// Returns the error of a request with the message of a diagnostic.
    pub(crate) fn of_request(param: &str, d: &Diagnostic) -> ApiError {
        ApiError(Box::new(Details {
            code: Some(d.code.id.to_owned()),
            ..*ApiError::field(param, text(d)).0
        }))
    }

    /// Returns the error of a failed model.
    pub(crate) fn of_model(d: &Diagnostic) -> ApiError {
        let (status, kind) = match d.code.id {
            id if id == crate::codes::SHUTDOWN.id => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable_error")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        };
        ApiError(Box::new(Details {
            code: Some(d.code.id.to_owned()),
            ..*ApiError::new(status, kind, text(d)).0
        }))
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the body.
    pub(crate) fn body(&self) -> Value {
        let mut error = json!({
            "message": self.0.message,
            "type": self.0.kind,
            "param": self.0.param,
            "code": self.0.code,
        });
        if let Some([n, n_ctx]) = self.0.sizes {
            error["n_prompt_tokens"] = n.into();
            error["n_ctx"] = n_ctx.into();
        }
        json!({ "error": error })
    }
}

fn text(d: &Diagnostic) -> String {
    match &d.help {
        Some(help) => format!("{}; {help}", d.message),
        None => d.message.to_string(),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.0.status, axum::Json(self.body())).into_response();
        if let Some(seconds) = self.0.retry_after {
            let value = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        // The log's line of the request shows the message.
        response.extensions_mut().insert(self);
        response
    }
}
