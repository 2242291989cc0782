//! The exported functions. include/sluice_text.h is generated from this file and abi.rs.
//!
//! Rules for all of them. A pointer argument is valid or null; null where an object is needed is an
//! error, not a crash. Text is (pointer, length), UTF-8, not terminated. Results go to out
//! parameters, which are written only on success; what is written there belongs to the caller, who frees it
//! with the function named at its type. `error` may be null; on failure it receives an object for
//! sluice_text_error_free(), on success null.
//!
//! Threads: const objects may be used by any number of threads at once; others by one at a time.
//! Freeing an object needs that nobody uses it; what was made from it stays valid.

use std::ptr;
use std::sync::Arc;

use crate::abi::*;
use crate::grammar::{Grammar, GrammarKind};
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

pub use crate::abi::{
    sluice_bytes, sluice_ids, sluice_range, sluice_ranges, sluice_text_code, sluice_text_error,
};

/// tokenizer.json or tokenizer_config.json may have this many bytes.
pub const SLUICE_TOKENIZER_BYTES_MAX: usize = 256 << 20;
/// A text to encode may have this many bytes; encoding takes about 100 bytes of memory for each.
pub const SLUICE_ENCODE_BYTES_MAX: usize = 8 << 20;
/// A template's source may have this many bytes.
pub const SLUICE_TEMPLATE_BYTES_MAX: usize = 1 << 20;
/// The variables of a template may have this many bytes of JSON.
pub const SLUICE_VARIABLES_BYTES_MAX: usize = 64 << 20;
/// The text of a grammar may have this many bytes.
pub const SLUICE_GRAMMAR_BYTES_MAX: usize = 1 << 20;

/// One checkpoint's tokenizer. Const after construction.
pub struct sluice_tokenizer {
    inner: Arc<Tokenizer>,
}

/// A compiled chat template. Const after construction.
pub struct sluice_chat_template {
    inner: ChatTemplate,
}

/// The state of one constrained sequence. One thread at a time.
pub struct sluice_grammar {
    inner: Grammar,
}

/// What a grammar's text is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sluice_grammar_kind {
    SLUICE_GRAMMAR_JSON_SCHEMA = 0,
    SLUICE_GRAMMAR_REGEX = 1,
    SLUICE_GRAMMAR_LARK = 2,
}

/// The files of a tokenizer.
#[repr(C)]
pub struct sluice_tokenizer_source {
    /// sizeof(sluice_tokenizer_source) of the caller.
    pub struct_size: usize,
    pub tokenizer_json: *const u8,
    pub tokenizer_json_len: usize,
    /// May be null: then no token is added and there is no eos_token.
    pub tokenizer_config_json: *const u8,
    pub tokenizer_config_json_len: usize,
}

/// A text and how to read it.
#[repr(C)]
pub struct sluice_encode_input {
    /// sizeof(sluice_encode_input) of the caller.
    pub struct_size: usize,
    pub text: *const u8,
    pub text_len: usize,
    /// Where spellings of control tokens are ordinary characters: ascending, disjoint.
    pub literal_ranges: *const sluice_range,
    pub literal_ranges_len: usize,
    /// Ordinary characters everywhere.
    pub all_literal: bool,
    /// Not null: whose text this is. Long pieces of it are remembered for the next text of the same
    /// owner, which takes less time then and has the same ids.
    pub owner: *const u8,
    pub owner_len: usize,
}

/// What makes a sluice_grammar.
#[repr(C)]
pub struct sluice_grammar_source {
    /// sizeof(sluice_grammar_source) of the caller.
    pub struct_size: usize,
    /// One of sluice_grammar_kind.
    pub kind: i32,
    pub text: *const u8,
    pub text_len: usize,
    /// Tokens that end the sequence; at least one.
    pub stop_ids: *const i32,
    pub stop_ids_len: usize,
}

/// An options struct of an older or newer caller is refused, not misread.
fn check_size(struct_size: usize, want: usize, what: &str) -> Outcome<()> {
    if struct_size == want {
        return Ok(());
    }
    Err(Failure::invalid(format!("{what}: struct_size {struct_size}, want {want}")))
}

// ---- errors and buffers --------------------------------------------------------------------------

/// The code of an error object; SLUICE_TEXT_OK for null.
#[no_mangle]
pub unsafe extern "C" fn sluice_text_error_code(error: *const sluice_text_error) -> sluice_text_code {
    error.as_ref().map_or(Code::SLUICE_TEXT_OK, |error| error.code)
}

/// The message of an error object: UTF-8, valid until the object is freed. Returns its length.
#[no_mangle]
pub unsafe extern "C" fn sluice_text_error_message(
    error: *const sluice_text_error,
    data: *mut *const u8,
) -> usize {
    let message = error.as_ref().map_or("", |error| error.message.as_str());
    if !data.is_null() {
        *data = message.as_ptr();
    }
    message.len()
}

/// All functions that free something accept null.
#[no_mangle]
pub unsafe extern "C" fn sluice_text_error_free(error: *mut sluice_text_error) {
    free_object(error);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_bytes_free(bytes: sluice_bytes) {
    free_raw(bytes.data, bytes.len);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_ids_free(ids: sluice_ids) {
    free_raw(ids.data, ids.len);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_ranges_free(ranges: sluice_ranges) {
    free_raw(ranges.data, ranges.len);
}

/// Frees a boxed object; a panic in its destructor stays here.
unsafe fn free_object<T>(pointer: *mut T) {
    if !pointer.is_null() {
        let _ = catch(|| drop(Box::from_raw(pointer)));
    }
}

// ---- tokenizer -----------------------------------------------------------------------------------

/// Builds a tokenizer from its files. Errors: corrupt_data, unsupported, resource_exhausted.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_new(
    source: *const sluice_tokenizer_source,
    tokenizer: *mut *mut sluice_tokenizer,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let source = object(source, "source")?;
        check_size(source.struct_size, size_of::<sluice_tokenizer_source>(), "source")?;
        let out = object_mut(tokenizer, "tokenizer")?;
        let file = |data, len: usize, name: &str| {
            if len > SLUICE_TOKENIZER_BYTES_MAX {
                let message = format!("{name}: {len} bytes, at most {SLUICE_TOKENIZER_BYTES_MAX}");
                return Err(Failure::exhausted(message));
            }
            slice::<u8>(data, len, name)
        };
        let json = file(source.tokenizer_json, source.tokenizer_json_len, "tokenizer.json")?;
        let config = match source.tokenizer_config_json.is_null() {
            true => None,
            false => Some(file(
                source.tokenizer_config_json,
                source.tokenizer_config_json_len,
                "tokenizer_config.json",
            )?),
        };
        // The library panics on some malformed files.
        let inner = catch(|| Tokenizer::new(json, config)).unwrap_or_else(|panic| {
            Err(Failure::corrupt(format!("tokenizer.json: {}", panic.message)))
        })?;
        *out = Box::into_raw(Box::new(sluice_tokenizer { inner: Arc::new(inner) }));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_free(tokenizer: *mut sluice_tokenizer) {
    free_object(tokenizer);
}

/// Text to ids. Errors: invalid_argument (not UTF-8, bad ranges), resource_exhausted.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_encode(
    tokenizer: *const sluice_tokenizer,
    input: *const sluice_encode_input,
    ids: *mut sluice_ids,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let tokenizer = &object(tokenizer, "tokenizer")?.inner;
        let input = object(input, "input")?;
        check_size(input.struct_size, size_of::<sluice_encode_input>(), "input")?;
        let out = object_mut(ids, "ids")?;
        let text = text(input.text, input.text_len, SLUICE_ENCODE_BYTES_MAX, "text")?;
        let ranges = slice(input.literal_ranges, input.literal_ranges_len, "literal_ranges")?;
        let result = match input.all_literal {
            true => tokenizer.encode_literal(text)?,
            false => {
                let owner = slice(input.owner, input.owner_len, "owner")?;
                tokenizer.encode(text, ranges, (!input.owner.is_null()).then_some(owner))?
            }
        };
        let (data, len) = into_raw(result);
        *out = sluice_ids { data, len };
        Ok(())
    })
}

/// Ids to text; bytes that are not UTF-8 become U+FFFD. Error: invalid_argument (no such id).
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_decode(
    tokenizer: *const sluice_tokenizer,
    ids: *const i32,
    ids_len: usize,
    skip_special_tokens: bool,
    text: *mut sluice_bytes,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let tokenizer = &object(tokenizer, "tokenizer")?.inner;
        let ids = slice(ids, ids_len, "ids")?;
        let out = object_mut(text, "text")?;
        let (data, len) = into_raw(tokenizer.decode(ids, skip_special_tokens)?.into_bytes());
        *out = sluice_bytes { data, len };
        Ok(())
    })
}

/// The bytes of one token, valid until the tokenizer is freed. Returns their number; 0 for an id without
/// a token.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_token_bytes(
    tokenizer: *const sluice_tokenizer,
    id: i32,
    data: *mut *const u8,
) -> usize {
    let bytes = match (tokenizer.as_ref(), u32::try_from(id)) {
        (Some(tokenizer), Ok(id)) => tokenizer.inner.token_bytes(id),
        _ => &[],
    };
    if !data.is_null() {
        *data = bytes.as_ptr();
    }
    bytes.len()
}

/// Whether decoding with skip_special_tokens leaves this token out.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_is_special(
    tokenizer: *const sluice_tokenizer,
    id: i32,
) -> bool {
    match (tokenizer.as_ref(), u32::try_from(id)) {
        (Some(tokenizer), Ok(id)) => tokenizer.inner.is_special(id),
        _ => false,
    }
}

/// The id of an exact token spelling, or -1.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_token_id(
    tokenizer: *const sluice_tokenizer,
    token: *const u8,
    token_len: usize,
) -> i32 {
    let find = || -> Outcome<i32> {
        let tokenizer = &object(tokenizer, "tokenizer")?.inner;
        let token = text(token, token_len, SLUICE_ENCODE_BYTES_MAX, "token")?;
        Ok(tokenizer.token_id(token).map_or(-1, |id| id as i32))
    };
    catch(find).and_then(|found| found).unwrap_or(-1)
}

/// Largest id + 1; 0 for null.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_vocab_size(tokenizer: *const sluice_tokenizer) -> i32 {
    tokenizer.as_ref().map_or(0, |tokenizer| tokenizer.inner.vocab_size() as i32)
}

/// The id of the token named eos_token in tokenizer_config.json, or -1.
#[no_mangle]
pub unsafe extern "C" fn sluice_tokenizer_eos_token_id(tokenizer: *const sluice_tokenizer) -> i32 {
    let id = tokenizer.as_ref().and_then(|tokenizer| tokenizer.inner.eos_token());
    id.map_or(-1, |id| id as i32)
}

// ---- chat template -------------------------------------------------------------------------------

/// Compiles a template. Error: corrupt_data (syntax, with line).
#[no_mangle]
pub unsafe extern "C" fn sluice_chat_template_new(
    source: *const u8,
    source_len: usize,
    chat_template: *mut *mut sluice_chat_template,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let source = text(source, source_len, SLUICE_TEMPLATE_BYTES_MAX, "chat template")?;
        let out = object_mut(chat_template, "chat_template")?;
        let inner = ChatTemplate::new(source)?;
        *out = Box::into_raw(Box::new(sluice_chat_template { inner }));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_chat_template_free(chat_template: *mut sluice_chat_template) {
    free_object(chat_template);
}

/// Renders a JSON object of variables. `literal_ranges` receives where `text` spells control tokens
/// in characters that came from the variables. Errors: invalid_argument (the JSON, or the template's
/// own words when it calls raise_exception), resource_exhausted (it ran too long).
#[no_mangle]
pub unsafe extern "C" fn sluice_chat_template_render(
    chat_template: *const sluice_chat_template,
    tokenizer: *const sluice_tokenizer,
    variables_json: *const u8,
    variables_json_len: usize,
    text: *mut sluice_bytes,
    literal_ranges: *mut sluice_ranges,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let chat_template = &object(chat_template, "chat_template")?.inner;
        let tokenizer = &object(tokenizer, "tokenizer")?.inner;
        let variables = crate::abi::text(
            variables_json,
            variables_json_len,
            SLUICE_VARIABLES_BYTES_MAX,
            "template variables",
        )?;
        let text = object_mut(text, "text")?;
        let ranges = object_mut(literal_ranges, "literal_ranges")?;
        let rendered = chat_template.render(variables, tokenizer.added())?;
        let (data, len) = into_raw(rendered.text.into_bytes());
        *text = sluice_bytes { data, len };
        let (data, len) = into_raw(rendered.literal);
        *ranges = sluice_ranges { data, len };
        Ok(())
    })
}

// ---- grammar -------------------------------------------------------------------------------------

/// Compiles a grammar. The first one of a tokenizer builds tables over the vocabulary.
/// Errors: invalid_argument (what is wrong in the text), resource_exhausted.
#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_new(
    tokenizer: *const sluice_tokenizer,
    source: *const sluice_grammar_source,
    grammar: *mut *mut sluice_grammar,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let tokenizer = &object(tokenizer, "tokenizer")?.inner;
        let source = object(source, "source")?;
        check_size(source.struct_size, size_of::<sluice_grammar_source>(), "source")?;
        let out = object_mut(grammar, "grammar")?;
        let kind = match source.kind {
            0 => GrammarKind::JsonSchema,
            1 => GrammarKind::Regex,
            2 => GrammarKind::Lark,
            kind => return Err(Failure::invalid(format!("grammar: kind {kind}"))),
        };
        let text = text(source.text, source.text_len, SLUICE_GRAMMAR_BYTES_MAX, "grammar")?;
        let stop_ids = slice(source.stop_ids, source.stop_ids_len, "stop_ids")?
            .iter()
            .map(|&id| u32::try_from(id))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| Failure::invalid("grammar: negative stop token"))?;
        let inner = Grammar::new(tokenizer, kind, text, &stop_ids)?;
        *out = Box::into_raw(Box::new(sluice_grammar { inner }));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_free(grammar: *mut sluice_grammar) {
    free_object(grammar);
}

/// A grammar in the same state as this one, which is not changed; the two share nothing that changes.
#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_clone(
    grammar: *const sluice_grammar,
    clone: *mut *mut sluice_grammar,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let grammar = &object(grammar, "grammar")?.inner;
        let out = object_mut(clone, "clone")?;
        *out = Box::into_raw(Box::new(sluice_grammar { inner: grammar.deep_clone() }));
        Ok(())
    })
}

/// Sets bit id % 32 of mask[id / 32] for every token that may come next and clears all others.
/// mask_words: at least vocab_size / 32, rounded up. After the end all bits are 0.
#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_allowed_mask(
    grammar: *mut sluice_grammar,
    mask: *mut u32,
    mask_words: usize,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let grammar = &mut object_mut(grammar, "grammar")?.inner;
        if mask.is_null() {
            return Err(Failure::invalid("mask: null pointer"));
        }
        grammar.allowed_mask(std::slice::from_raw_parts_mut(mask, mask_words))
    })
}

/// Advances by a token whose text may come next, if the mask has it or not. Error invalid_argument,
/// without effect, when it may not.
#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_accept(
    grammar: *mut sluice_grammar,
    id: i32,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let grammar = &mut object_mut(grammar, "grammar")?.inner;
        let id = u32::try_from(id)
            .map_err(|_| Failure::invalid(format!("grammar: token {id} may not come here")))?;
        grammar.accept(id)
    })
}

/// Whether nothing but a stop token can come next, or one came.
#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_is_finished(
    grammar: *mut sluice_grammar,
    finished: *mut bool,
    error: *mut *mut sluice_text_error,
) -> sluice_text_code {
    guard(error, || {
        let grammar = &mut object_mut(grammar, "grammar")?.inner;
        let out = object_mut(finished, "finished")?;
        ptr::write(out, grammar.is_finished()?);
        Ok(())
    })
}
