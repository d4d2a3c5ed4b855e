//! Generates the answer to a request that requires JSON of a given schema.

use serde_json::{Map, Value};

/// Returns a simple value that matches a schema, such as the first alternative, the minimum, or an empty array.
///
/// Gemini CLI asks its model internal questions: who speaks next, how complex a task is, whether the model is in a
/// loop. The simple answers (`user`, the lowest score, no confidence) do not change what Gemini CLI does.
pub(crate) fn example(schema: &Value) -> Value {
    let field = |name: &str| schema.get(name);
    if let Some(value) = field("const").or_else(|| first(field("enum"))) {
        return value.clone();
    }
    if let Some(choice) = first(field("anyOf")).or_else(|| first(field("oneOf"))) {
        return example(choice);
    }
    // Gemini's older schemas have types in upper case.
    let kind = field("type").map(|kind| kind.as_str().or_else(|| first(Some(kind))?.as_str()));
    match kind.flatten().unwrap_or_default().to_ascii_lowercase().as_str() {
        "string" => Value::String("scripted".into()),
        "integer" => field("minimum").cloned().unwrap_or_else(|| 1.into()),
        "number" => field("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => Value::Bool(false),
        "array" => Value::Array(Vec::new()),
        "object" => Value::Object(object(field("properties"))),
        _ => Value::Null,
    }
}

fn object(properties: Option<&Value>) -> Map<String, Value> {
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, schema)| (name.clone(), example(schema))).collect()
}

fn first(list: Option<&Value>) -> Option<&Value> {
    list?.as_array()?.first()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_of_schema_has_an_example() {
        let check = |schema: Value, expected: Value| assert_eq!(example(&schema), expected);
        check(json!({"type": "string"}), json!("scripted"));
        check(json!({"type": "string", "enum": ["user", "model"]}), json!("user"));
        check(json!({"const": 3}), json!(3));
        check(json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}), json!(false));
        check(json!({"type": ["integer", "null"], "minimum": 5}), json!(5));
        check(json!({"type": "INTEGER"}), json!(1));
        check(json!({"type": "NUMBER"}), json!(0));
        check(json!({"type": "array", "items": {}}), json!([]));
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}),
            json!({"a": "scripted", "b": null}),
        );
        check(json!({}), json!(null));
    }
}
