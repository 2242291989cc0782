//! JSON Schemas on their way to a grammar: whitespace with an end, and errors that say where.

use serde_json::{json, Map, Value};

use crate::abi::{shorten, Failure, Outcome};

/// Between two tokens of the JSON text: one blank, or a new line with its indentation. Without a bound a
/// model that is unsure can go on with blanks for ever.
const WHITESPACE: &str = r"[ \t]|\n[ \t]{0,32}";

/// Keywords whose value is a schema, a list of schemas or a map of schemas.
const SCHEMA: [&str; 10] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
];
const SCHEMA_LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const SCHEMA_MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// The schema as the grammar library takes it.
pub fn parse(text: &str) -> Outcome<Value> {
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| Failure::invalid(format!("JSON Schema: {error}")))?;
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(true) => Map::new(),
        Value::Bool(false) => {
            return Err(Failure::invalid("JSON Schema: false, which no value satisfies"));
        }
        _ => return Err(Failure::invalid("JSON Schema: want an object")),
    };
    // The library's own options are not for clients.
    schema.insert("x-guidance".to_string(), json!({ "whitespace_pattern": WHITESPACE }));
    Ok(Value::Object(schema))
}

/// What the library says, with the place in the schema when it is about a keyword.
pub fn refused(schema: &Value, error: &anyhow::Error) -> Failure {
    let message = format!("{error:#}");
    let place = find(schema, "#", &|keyword, value| is_refused(&message, keyword, value));
    let failure = match place {
        Some(place) => format!("JSON Schema: {place} is not supported: {message}"),
        None => format!("JSON Schema: {message}"),
    };
    Failure::invalid(shorten(&failure))
}

/// Whether the message is about this keyword with this value.
fn is_refused(message: &str, keyword: &str, value: &Value) -> bool {
    let text = || value.as_str().unwrap_or_default();
    match keyword {
        "oneOf" => message.contains("oneOf constraints are not supported"),
        "format" => message.contains(&format!("Unknown format: {}", text())),
        "type" => message.contains(&format!("Invalid type: {}", text())) && !text().is_empty(),
        "$ref" => message.contains(&format!("'{}'", text())) && !text().is_empty(),
        "minProperties" | "maxProperties" => message.contains("min/maxProperties"),
        _ => {
            message.contains("Unimplemented keys") && message.contains(&format!("\"{keyword}\""))
        }
    }
}

/// The path of the first keyword that `is_it`, in the order of the text.
fn find(schema: &Value, path: &str, is_it: &dyn Fn(&str, &Value) -> bool) -> Option<String> {
    for (keyword, value) in schema.as_object()? {
        let here = format!("{path}/{keyword}");
        if is_it(keyword, value) {
            return Some(here);
        }
        let found = if SCHEMA_MAPS.contains(&keyword.as_str()) && value.is_object() {
            let entries = value.as_object().into_iter().flatten();
            entries.into_iter().find_map(|(name, inner)| {
                find(inner, &format!("{here}/{name}"), is_it)
            })
        } else if SCHEMA_LISTS.contains(&keyword.as_str()) && value.is_array() {
            let entries = value.as_array().into_iter().flatten().enumerate();
            entries.into_iter().find_map(|(at, inner)| find(inner, &format!("{here}/{at}"), is_it))
        } else if SCHEMA.contains(&keyword.as_str()) {
            find(value, &here, is_it)
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(schema: Value, message: &str) -> String {
        refused(&schema, &anyhow::anyhow!("{message}")).message
    }

    #[test]
    fn errors_say_where() {
        let schema = json!({"properties": {"not": {"type": "string"}, "a": {
            "anyOf": [{"type": "null"}, {"items": {"not": {}}}]}}});
        let message = place(schema, "Unimplemented keys: [\"not\"]");
        assert!(message.contains("#/properties/a/anyOf/1/items/not is not supported"), "{message}");
        let schema = json!({"$defs": {"x": {"format": "date"}, "y": {"format": "colour"}}});
        let message = place(schema, "Unknown format: colour");
        assert!(message.contains("#/$defs/y/format"), "{message}");
        let message = place(json!({"enum": [{"not": 1}]}), "Unimplemented keys: [\"not\"]");
        assert_eq!(message, "JSON Schema: Unimplemented keys: [\"not\"]");
    }

    #[test]
    fn clients_cannot_set_options_of_the_library() {
        let schema = parse(r#"{"x-guidance": {"lenient": true}}"#).unwrap();
        assert_eq!(schema["x-guidance"], json!({ "whitespace_pattern": WHITESPACE }));
        assert!(parse("false").is_err() && parse("1").is_err() && parse("[]").is_err());
        assert!(parse("true").is_ok());
    }
}
