use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::time::timeout;

use super::guard;
use super::page::page;
use crate::api::{self, Caller, Fields};
use crate::app::App;
use crate::error::ApiError;

/// Time limit for the body of a request.
const BODY: Duration = Duration::from_secs(120);

/// Paths that monitors poll. The log omits their successes.
const POLLED: [&str; 4] = ["/health", "/v1/health", "/metrics", "/slots"];

/// Returns the table of all paths.
pub(crate) fn routes(app: Arc<App>) -> Router {
    let mut routes = Router::new()
        .route(
            "/health",
            get(|app: Shared| async move { api::health(&app.0) }),
        )
        .route(
            "/v1/health",
            get(|app: Shared| async move { api::health(&app.0) }),
        )
        .route(
            "/metrics",
            get(|app: Shared| async move { api::metrics(&app.0) }),
        )
        .route(
            "/props",
            get(|app: Shared| async move { api::props(&app.0) }),
        )
        .route(
            "/slots",
            get(|app: Shared| async move { api::slots(&app.0) }),
        )
        .route(
            "/models",
            get(|app: Shared| async move { api::models(&app.0) }),
        )
        .route(
            "/v1/models",
            get(|app: Shared| async move { api::models(&app.0) }),
        )
        .route(
            "/v1/models/{*name}",
            get(|app: Shared, name: Path<String>| async move { api::model(&app.0, &name.0) }),
        );
    for prefix in ["", "/v1"] {
        routes = routes
            .route(&format!("{prefix}/chat/completions"), asks(api::chat))
            .route(&format!("{prefix}/completions"), asks(api::completions))
            .route(&format!("{prefix}/embeddings"), asks(api::embeddings));
    }
    routes = routes
        .route(
            "/tokenize",
            asks(|app, _, fields| api::tokenize(app, fields)),
        )
        .route(
            "/detokenize",
            asks(|app, _, fields| api::detokenize(app, fields)),
        )
        .route(
            "/apply-template",
            asks(|app, _, fields| api::apply_template(app, fields)),
        );
    if app.options.ui {
        routes = routes
            .route("/", get(|| async { page() }))
            .route("/index.html", get(|| async { page() }));
    }
    routes
        .fallback(|request: Request| async move {
            ApiError::not_found(format!(
                "the server does not have the path {}",
                request.uri().path()
            ))
        })
        .method_not_allowed_fallback(|| async { ApiError::method() })
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guarded))
        .with_state(app)
}

type Shared = State<Arc<App>>;

/// Returns the route of requests with a JSON object.
fn asks<F, R>(handler: F) -> axum::routing::MethodRouter<Arc<App>>
where
    F: Fn(Arc<App>, Caller, Fields) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Response, ApiError>> + Send,
{
    post(
        move |State(app): Shared, caller: axum::Extension<Caller>, body: Body| async move {
            let limit = app.options.max_body;
            let bytes = timeout(BODY, axum::body::to_bytes(body, limit)).await;
            let bytes = bytes.map_err(|_| ApiError::slow_body(BODY.as_secs()))?;
            let bytes: Bytes = bytes.map_err(|_| ApiError::too_large(limit))?;
            let fields = Fields::parse(&bytes)?;
            drop(bytes);
            handler(app, caller.0, fields).await
        },
    )
}

/// Checks a request, runs its handler, and logs the result.
async fn guarded(State(app): Shared, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let origin = request.headers().get(header::ORIGIN);
    let origin = origin.and_then(|o| o.to_str().ok());
    let origin = guard::cors(&app.options.origins, origin);
    let checked = guard::check(&app, &method, request.uri(), request.headers());
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let ip = peer.map(|peer| peer.0.ip());
    let mut response = match checked {
        Err(e) => e.into_response(),
        Ok(_) if method == Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        Ok(key) => {
            request.extensions_mut().insert(Caller { ip, key });
            next.run(request).await
        }
    };
    if let Some(origin) = origin.and_then(|o| HeaderValue::from_str(&o).ok()) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let any = HeaderValue::from_static("GET, POST, OPTIONS");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, any);
        let any = HeaderValue::from_static("authorization, content-type, x-api-key");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, any);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    let ip = ip.map_or_else(String::new, |ip| ip.to_string());
    let status = response.status().as_u16();
    let ms = (begun.elapsed().as_secs_f64() * 1e4).round() / 10.0;
    match response.extensions().get::<ApiError>() {
        Some(e) => tracing::info!(%method, path, status, ms, ip, "{}", e.message()),
        None if POLLED.contains(&path.as_str()) => tracing::debug!(%method, path, status, ms, ip),
        None => tracing::info!(%method, path, status, ms, ip),
    }
    response
}
