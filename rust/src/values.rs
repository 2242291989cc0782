//! JSON to template values, and values written the way Python writes them: json.dumps() for the
//! `tojson` filter, str() for numbers. Chat templates were written for Python; a `1e+20` or a
//! `", "` that differs is another prompt.

use std::fmt;
use std::fmt::Write;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::abi::{Failure, Outcome};

/// Parses a JSON object of template variables. `mark` is called with every string and every key
/// below the variables and returns the text the template shall see. Key order is kept; of equal
/// keys the last value counts. Integers beyond 64 bits become floats. Depth is limited (128).
pub fn parse_variables(
    json: &str,
    mark: &mut dyn FnMut(&str, &str) -> Option<String>,
) -> Outcome<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let seed = Variables { mark };
    let fail = |error: serde_json::Error| Failure::invalid(format!("template variables: {error}"));
    let value = seed.deserialize(&mut deserializer).map_err(fail)?;
    deserializer.end().map_err(fail)?;
    Ok(value)
}

/// Rewrites a string found below the variable with this name; None keeps it.
type Mark<'m> = &'m mut dyn FnMut(&str, &str) -> Option<String>;

struct Variables<'m> {
    mark: Mark<'m>,
}

impl<'de> DeserializeSeed<'de> for Variables<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Variables<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object of template variables")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Node { variable: &name, mark: &mut *self.mark })?;
            pairs.push((name, value));
        }
        Ok(Value::from_pairs(pairs))
    }
}

/// Any value below a variable.
struct Node<'v, 'm> {
    variable: &'v str,
    mark: Mark<'m>,
}

impl Node<'_, '_> {
    fn text(&mut self, text: &str) -> Value {
        match (self.mark)(self.variable, text) {
            Some(marked) => Value::from(marked),
            None => Value::from(text),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::from(()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(mut self, value: &str) -> Result<Value, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) =
            seq.next_element_seed(Node { variable: self.variable, mark: &mut *self.mark })?
        {
            items.push(item);
        }
        Ok(Value::from(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let key = self.text(&key);
            let node = Node { variable: self.variable, mark: &mut *self.mark };
            pairs.push((key, map.next_value_seed(node)?));
        }
        Ok(Value::from_pairs(pairs))
    }
}

/// Python's repr() of a float: shortest digits; exponent form below 1e-4 and from 1e16 on.
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let scientific = format!("{value:e}"); // shortest digits: "-1.25e-7"
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Options of json.dumps() that templates use.
pub struct DumpStyle {
    ensure_ascii: bool,
    indent: Option<usize>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl DumpStyle {
    /// From the arguments of `tojson`; the defaults are those of transformers' templates.
    pub fn from_arguments(positional: Option<&Value>, arguments: &Kwargs) -> Result<Self, Error> {
        const INDENT_MAX: usize = 16;
        let ensure_ascii = match positional {
            Some(value) => value.is_true(),
            None => arguments.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        };
        let indent = arguments.get::<Option<usize>>("indent")?;
        if indent.is_some_and(|indent| indent > INDENT_MAX) {
            return Err(Error::new(ErrorKind::InvalidOperation, "tojson: indent above 16"));
        }
        let separators = arguments.get::<Option<Vec<String>>>("separators")?;
        let sort_keys = arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
        arguments.assert_all_used()?;
        let item_default = if indent.is_some() { "," } else { ", " };
        let (item_separator, key_separator) = match separators.as_deref() {
            None => (item_default.to_string(), ": ".to_string()),
            Some([item, key]) => (item.clone(), key.clone()),
            Some(_) => {
                let message = "tojson: separators: want (item, key)";
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        };
        Ok(DumpStyle { ensure_ascii, indent, item_separator, key_separator, sort_keys })
    }
}

/// json.dumps(value). Control characters and quotes are escaped, nothing is escaped for HTML.
/// `mark` is never escaped: it is not part of the text (see template.rs).
pub fn python_json(value: &Value, style: &DumpStyle, mark: char) -> Result<String, Error> {
    let mut out = String::new();
    Dump { style, mark, out: &mut out }.value(value, 0)?;
    Ok(out)
}

struct Dump<'a> {
    style: &'a DumpStyle,
    mark: char,
    out: &'a mut String,
}

impl Dump<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        const DEPTH_MAX: usize = 200;
        if depth > DEPTH_MAX {
            return Err(Error::new(ErrorKind::BadSerialization, "tojson: nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            kind => {
                let message = format!("tojson: a value of kind {kind} is not JSON");
                return Err(Error::new(ErrorKind::BadSerialization, message));
            }
        }
        Ok(())
    }

    fn number(&mut self, value: &Value) {
        if value.is_integer() {
            let _ = write!(self.out, "{value}");
            return;
        }
        let float = f64::try_from(value.clone()).unwrap_or(f64::NAN);
        self.out.push_str(&match python_float(float).as_str() {
            "nan" => "NaN".to_string(),
            "inf" => "Infinity".to_string(),
            "-inf" => "-Infinity".to_string(),
            finite => finite.to_string(),
        });
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.begin_item(empty, depth);
            empty = false;
            self.value(&item, depth + 1)?;
        }
        self.end(empty, depth, ']');
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.style.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let empty = keys.is_empty();
        for (index, key) in keys.iter().enumerate() {
            self.begin_item(index == 0, depth);
            match key.as_str() {
                Some(text) => self.text(text),
                None => {
                    self.out.push('"');
                    self.value(key, depth + 1)?;
                    self.out.push('"');
                }
            }
            self.out.push_str(&self.style.key_separator);
            self.value(&value.get_item(key)?, depth + 1)?;
        }
        self.end(empty, depth, '}');
        Ok(())
    }

    fn begin_item(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.style.item_separator);
        }
        self.new_line(depth + 1);
    }

    fn end(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = self.style.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(c));
                }
                c if self.style.ensure_ascii && c > '~' && c != self.mark => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (0.0, "0.0"), (-0.0, "-0.0"), (3.0, "3.0"), (0.1, "0.1"), (1e15, "1000000000000000.0"),
            (1e16, "1e+16"), (1.5e300, "1.5e+300"), (1e-4, "0.0001"), (1.25e-7, "1.25e-07"),
            (123456789012345680.0, "1.2345678901234568e+17"), (-2.5, "-2.5"),
        ];
        for (value, want) in cases {
            assert_eq!(python_float(value), want);
        }
    }
}
