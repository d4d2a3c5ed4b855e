//! The description of the API in the format `OpenAPI`, made from the table of calls and the types of their contents.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::access::Right;
use crate::endpoints::{ENDPOINTS, Endpoint, PREFIX};
use crate::problem::{PROBLEM_JSON, Problem, ProblemKind};

/// Returns the description.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = SchemaGenerator::new(settings);
    let problem = generator.subschema_for::<Problem>();
    let problem = json!(problem);
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(format!("{PREFIX}{}", endpoint.path)).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            let method = endpoint.method.as_str().to_lowercase();
            methods.insert(method, operation(endpoint, &mut generator, &problem));
        }
    }
    paths.insert(format!("{PREFIX}/events"), json!({ "get": events_operation(&problem) }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "brigade",
            "version": "1",
            "description": "Teams of coding agents. A change with the header `Idempotency-Key` is made once, also if it is sent again.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`brigade web token add NAME` makes a token." },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for part in endpoint.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "schema": { "type": "string" },
                "description": path_part(name),
            }));
        }
    }
    for parameter in endpoint.parameters {
        parameters.push(json!({
            "name": parameter.name, "in": "query", "description": parameter.about,
            "schema": { "type": parameter.kind },
        }));
    }
    if endpoint.right.changes() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string" },
            "description": "A change that is sent again with the same key is made once.",
        }));
    }
    let reply = (endpoint.reply)(generator);
    let content = endpoint.content.map(|content| content(generator));
    let mut responses = Map::new();
    let success =
        json!({ "description": "Done.", "content": { "application/json": { "schema": reply } } });
    responses.insert("2XX".to_owned(), success);
    for kind in problems(endpoint) {
        let (status, _, title) = kind.description();
        responses.insert(status.as_u16().to_string(), problem_response(title, problem));
    }
    let mut operation = Map::new();
    operation.insert("operationId".into(), endpoint.name.into());
    operation.insert("summary".into(), endpoint.about.into());
    let needs = format!("Needs {}.", right_text(endpoint.right));
    operation.insert("description".into(), needs.into());
    operation.insert("parameters".into(), parameters.into());
    operation.insert("responses".into(), responses.into());
    if let Some(content) = content {
        let body = json!({ "content": { "application/json": { "schema": content } } });
        operation.insert("requestBody".into(), body);
    }
    operation.into()
}

fn events_operation(problem: &Value) -> Value {
    json!({
        "operationId": "streamEvents",
        "summary": "The events of all teams as server-sent events.",
        "description": "A client that connects again sends `Last-Event-ID`, and misses no event. If the server was started again in the meantime, some events come twice; `key` in their data names them. An approve-only token gets events without content.",
        "parameters": [
            { "name": "team", "in": "query", "description": "Only this team.", "schema": { "type": "string" } },
            { "name": "Last-Event-ID", "in": "header", "description": "The id of the last event that the client received.", "schema": { "type": "string" } },
        ],
        "responses": {
            "200": { "description": "The stream.", "content": { "text/event-stream": { "schema": { "type": "string" } } } },
            "401": problem_response(ProblemKind::NoAccess.description().2, problem),
            "429": problem_response(ProblemKind::TooMany.description().2, problem),
        },
    })
}

fn problem_response(title: &str, problem: &Value) -> Value {
    json!({ "description": title, "content": { PROBLEM_JSON: { "schema": problem } } })
}

/// Returns the problems that a call can have.
fn problems(endpoint: &Endpoint) -> impl Iterator<Item = ProblemKind> {
    let changes = endpoint.right.changes();
    ProblemKind::ALL.into_iter().filter(move |kind| match kind {
        ProblemKind::NoSuchMethod | ProblemKind::TooMany => false,
        ProblemKind::Conflict | ProblemKind::TooLong => changes,
        _ => true,
    })
}

/// Returns the kinds of tokens that have a right, in words.
pub(crate) fn right_text(right: Right) -> &'static str {
    match right {
        Right::SeeRequests => "any token",
        Right::AnswerRequests => "a full or an approve-only token",
        Right::Read => "a full or a read-only token",
        Right::Write => "a full token",
    }
}

fn path_part(name: &str) -> &'static str {
    match name {
        "team" => "The name of the team.",
        "member" => "The name of the member.",
        "task" => "The number of the task.",
        "request" => "The number or the id of the request.",
        _ => "",
    }
}

/// Answers a request for the description. It contains nothing about teams, so it needs no token.
pub(crate) async fn serve() -> Response {
    let mut response = document().to_string().into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
