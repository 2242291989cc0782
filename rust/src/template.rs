//! A checkpoint's chat template, evaluated with Python's string methods and json.dumps().
//!
//! Whose text is it? Strings of the variables come from users, tools and documents: where they spell a
//! control token, the rendered prompt must carry the characters, not the token. So a *mark* (one
//! noncharacter that occurs nowhere in the input or the template) goes before every character of
//! theirs with which a control token can begin; for this family that is `<`. The template's own text
//! carries no marks. After rendering, a spelling whose first character is marked is reported as a
//! literal range, and all marks are removed. Marking first characters, not whole spellings, also
//! holds when a template joins strings: `<|im_` and `end|>` never make a token.
//!
//! Templates look into strings, too: does an assistant's text contain `</think>`, does a user's
//! text start with `<tool_response>`? Such questions get the answer they would get without marks:
//! `x in text`, split() and find() work since marks stand before spellings, not inside, and the
//! methods that look at the ends of a string (startswith, endswith, strip, trim) ignore marks there.
//! What a template makes of the answer is its own text: it may split an assistant's text at
//! `</think>` and write its own tags, but a user's spelling stays a spelling.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{from_args, Kwargs, Rest, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::abi::{shorten, sluice_range, Failure, Outcome};
use crate::tokenizer::AddedTokens;
use crate::values::{parse_variables, python_float, python_json, DumpStyle};

/// One render may execute this much, plus FUEL_PER_BYTE for every byte of variables. One fuel is one
/// instruction or 64 bytes made.
const FUEL: u64 = 4_000_000;
const FUEL_PER_BYTE: u64 = 32;
/// Macros calling macros.
const RECURSION_MAX: usize = 100;
/// Where the marks of a render are kept: no template can name it.
const MARK_VARIABLE: &str = "\u{0}mark";
const NAME: &str = "chat_template";

pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

/// A prompt, and where in it control-token spellings are ordinary characters.
#[derive(Debug)]
pub struct Rendered {
    pub text: String,
    pub literal: Vec<sluice_range>,
}

impl ChatTemplate {
    pub fn new(source: &str) -> Outcome<Self> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        let syntax = syntax.build().map_err(|error| Failure::internal(error.to_string()))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_recursion_limit(RECURSION_MAX);
        environment.set_formatter(|out, state, value| {
            match float_of(value) {
                Some(float) => write_all(out, &python_float(float)),
                None => minijinja::escape_formatter(out, state, value),
            }
        });
        environment.set_unknown_method_callback(string_method);
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter("tojson", tojson);
        environment.add_filter("trim", trim);
        environment.add_filter("string", string);
        environment.add_test("sequence", is_sequence);
        environment
            .add_template_owned(NAME, source.to_string())
            .map_err(|error| Failure::corrupt(describe(&error)))?;
        Ok(ChatTemplate { environment, source: source.to_string() })
    }

    /// variables_json: an object with everything the template sees.
    pub fn render(&self, variables_json: &str, added: &AddedTokens) -> Outcome<Rendered> {
        let mark = self.unused_mark(variables_json)?;
        let variables = parse_variables(variables_json, &mut |variable, text| {
            marked(variable, text, mark, added)
        })?;
        let mut environment = self.environment.clone(); // cheap: its tables are shared
        environment.add_global(MARK_VARIABLE, mark.to_string());
        environment.set_fuel(Some(FUEL + FUEL_PER_BYTE * variables_json.len() as u64));
        let text = environment
            .get_template(NAME)
            .and_then(|template| template.render(variables))
            .map_err(|error| failure(&error, mark))?;
        Ok(unmark(&text, mark, added))
    }

    /// The first noncharacter that neither the variables nor the template contain. They may be
    /// written as \ufdd0 in the JSON, so the strings are looked at, not the JSON text.
    fn unused_mark(&self, variables_json: &str) -> Outcome<char> {
        let is_candidate = |c: char| ('\u{FDD0}'..='\u{FDEF}').contains(&c);
        let mut free: Vec<char> = ('\u{FDD0}'..='\u{FDEF}').collect();
        let mut strike = |text: &str| {
            for used in text.chars().filter(|&c| is_candidate(c)) {
                free.retain(|&candidate| candidate != used);
            }
        };
        strike(&self.source);
        let escaped = |window: &[u8]| window.eq_ignore_ascii_case(b"\\ufd");
        if variables_json.contains(is_candidate) || variables_json.as_bytes().windows(4).any(escaped) {
            parse_variables(variables_json, &mut |_, text| {
                strike(text);
                None
            })?;
        }
        free.first().copied().ok_or_else(|| {
            Failure::invalid("template variables: all of U+FDD0 to U+FDEF occur in the text")
        })
    }
}

/// The text with a mark before every character that could begin a control token. A variable such as
/// eos_token that is exactly a control token is the server's, not a user's.
fn marked(variable: &str, text: &str, mark: char, added: &AddedTokens) -> Option<String> {
    if !text.chars().any(|c| added.is_first_char(c)) {
        return None;
    }
    if variable.ends_with("_token") && added.contains(text) {
        return None;
    }
    let mut result = String::with_capacity(text.len() + text.len() / 8 + 16);
    for c in text.chars() {
        if added.is_first_char(c) {
            result.push(mark);
        }
        result.push(c);
    }
    Some(result)
}

/// Removes the marks and reports the spellings they stood before.
fn unmark(text: &str, mark: char, added: &AddedTokens) -> Rendered {
    let mut clean = String::with_capacity(text.len());
    let mut begins = Vec::new();
    for (index, part) in text.split(mark).enumerate() {
        if index > 0 {
            begins.push(clean.len());
        }
        clean.push_str(part);
    }
    let mut literal: Vec<sluice_range> = Vec::new();
    for begin in begins {
        if literal.last().is_some_and(|last| begin < last.end) {
            continue;
        }
        if let Some(end) = added.spelling_at(&clean, begin) {
            literal.push(sluice_range { begin, end });
        }
    }
    Rendered { text: clean, literal }
}

fn mark_of(state: &State) -> char {
    let mark = state.lookup(MARK_VARIABLE);
    mark.and_then(|mark| mark.as_str().and_then(|text| text.chars().next())).unwrap_or('\u{FDD0}')
}

/// The template's own words, told apart from errors of the engine.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let words = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, words.clone()).with_source(Raised(words)))
}

fn failure(error: &Error, mark: char) -> Failure {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(words)) = current.downcast_ref() {
            return Failure::invalid(shorten(&words.replace(mark, "")));
        }
        let kind = current.downcast_ref::<Error>().map(Error::kind);
        if kind == Some(ErrorKind::OutOfFuel) {
            let message = "chat template: ran longer than its limit allows";
            return Failure::exhausted(message);
        }
        cause = current.source();
    }
    Failure::invalid(shorten(&describe(error).replace(mark, "")))
}

fn describe(error: &Error) -> String {
    let line = error.line().map_or(String::new(), |line| format!(" line {line}"));
    let detail = error.detail().map_or(String::new(), |detail| format!(": {detail}"));
    format!("chat template{line}: {}{detail}", error.kind())
}

fn write_all(out: &mut minijinja::Output, text: &str) -> Result<(), Error> {
    std::fmt::Write::write_str(out, text)
        .map_err(|_| Error::new(ErrorKind::WriteFailure, "output refused"))
}

fn float_of(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    is_float.then(|| f64::try_from(value.clone()).ok()).flatten()
}

/// str() of a value.
fn string(value: &Value) -> Value {
    match float_of(value) {
        Some(float) => Value::from(python_float(float)),
        None if value.kind() == ValueKind::String => value.clone(),
        None => Value::from(value.to_string()),
    }
}

/// In Python strings, mappings and lists all have a length and indices.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
}

fn tojson(state: &State, value: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let style = DumpStyle::from_arguments(rest.first(), &kwargs)?;
    python_json(value, &style, mark_of(state)).map(Value::from)
}

fn trim(state: &State, value: &Value, chars: Option<&str>) -> Result<Value, Error> {
    let text = string(value);
    let text = text.as_str().unwrap_or_default();
    Ok(Value::from(strip(text, chars, Ends::Both, mark_of(state))))
}

/// Python's str methods where marks or Python's idea of white space matter; the rest is pycompat.
fn string_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return unknown_method_callback(state, value, method, args);
    };
    let mark = mark_of(state);
    let ends = match method {
        "strip" => Ends::Both,
        "lstrip" => Ends::Left,
        "rstrip" => Ends::Right,
        "startswith" | "endswith" if text.contains(mark) => {
            let bare = Value::from(text.replace(mark, ""));
            return unknown_method_callback(state, &bare, method, args);
        }
        "split" if text.contains(mark) => {
            let pieces = unknown_method_callback(state, value, method, args)?;
            // The mark of a separator that was cut away.
            let bare = |piece: Value| match piece.as_str().and_then(|text| text.strip_suffix(mark)) {
                Some(bare) => Value::from(bare),
                None => piece,
            };
            return Ok(Value::from(pieces.try_iter()?.map(bare).collect::<Vec<_>>()));
        }
        _ => return unknown_method_callback(state, value, method, args),
    };
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(Value::from(strip(text, chars, ends, mark)))
}

#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Left,
    Right,
    Both,
}

/// str.strip(): a mark is part of the character it stands before, and goes with it; a mark that
/// stands before nothing goes, too.
fn strip<'a>(text: &'a str, chars: Option<&str>, ends: Ends, mark: char) -> &'a str {
    let strippable = |c: char| match chars {
        Some(chars) => chars.contains(c),
        None => c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c),
    };
    let mut rest = text;
    if ends != Ends::Right {
        loop {
            let bare = rest.strip_prefix(mark).unwrap_or(rest);
            match bare.chars().next() {
                Some(c) if strippable(c) => rest = &bare[c.len_utf8()..],
                Some(_) => break,
                None => return "",
            }
        }
    }
    if ends != Ends::Left {
        loop {
            match rest.chars().next_back() {
                Some(c) if c == mark || strippable(c) => rest = &rest[..rest.len() - c.len_utf8()],
                _ => break,
            }
        }
    }
    rest
}
