//! What every exported function shares: error objects, caller-owned buffers, the panic guard.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Why a call failed. 0 is success.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sluice_text_code {
    SLUICE_TEXT_OK = 0,
    /// The caller's value is wrong; repeating the call cannot help.
    SLUICE_TEXT_INVALID_ARGUMENT = 1,
    /// The file's content contradicts itself or its format.
    SLUICE_TEXT_CORRUPT_DATA = 2,
    /// Valid, but not something this build can do.
    SLUICE_TEXT_UNSUPPORTED = 3,
    /// A limit of size or work was reached.
    SLUICE_TEXT_RESOURCE_EXHAUSTED = 4,
    /// A panic or a broken invariant of ours.
    SLUICE_TEXT_INTERNAL = 5,
}

pub use sluice_text_code as Code;

/// Code and message of a failed call. Free it with sluice_text_error_free().
pub struct sluice_text_error {
    pub(crate) code: Code,
    pub(crate) message: String,
}

/// The crate's own error type: what becomes a `sluice_text_error` at the border.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(Code::SLUICE_TEXT_INVALID_ARGUMENT, message)
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Failure::new(Code::SLUICE_TEXT_CORRUPT_DATA, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Failure::new(Code::SLUICE_TEXT_UNSUPPORTED, message)
    }

    pub fn exhausted(message: impl Into<String>) -> Self {
        Failure::new(Code::SLUICE_TEXT_RESOURCE_EXHAUSTED, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Failure::new(Code::SLUICE_TEXT_INTERNAL, message)
    }
}

/// Runs the body of an exported function. A panic becomes SLUICE_TEXT_INTERNAL: it must never cross
/// into C++, where it would end the process. `error` may be null (the message is dropped then).
///
/// # Safety
/// `error` is null or valid for one write of a pointer.
pub unsafe fn guard(
    error: *mut *mut sluice_text_error,
    body: impl FnOnce() -> Outcome<()>,
) -> Code {
    if !error.is_null() {
        *error = std::ptr::null_mut();
    }
    let failure = match catch(body) {
        Ok(Ok(())) => return Code::SLUICE_TEXT_OK,
        Ok(Err(failure)) => failure,
        Err(failure) => failure,
    };
    let code = failure.code;
    if !error.is_null() {
        let object = sluice_text_error { code, message: failure.message };
        *error = Box::into_raw(Box::new(object));
    }
    code
}

/// Runs `body`; a panic comes back as an internal Failure with its message and place.
pub fn catch<T>(body: impl FnOnce() -> T) -> Outcome<T> {
    silence_panics();
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let place = PANIC_PLACE.with(|cell| cell.borrow_mut().take());
        let place = place.map_or(String::new(), |at| format!(" at {at}"));
        Failure::internal(format!("panic in the text library{place}: {}", panic_text(&*payload)))
    })
}

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A library prints nothing: the panic's place is kept for the error message instead.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
            let _ = PANIC_PLACE.try_with(|cell| *cell.borrow_mut() = place);
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// A byte string owned by the caller: free it with sluice_bytes_free(). data is null when len is 0.
#[repr(C)]
pub struct sluice_bytes {
    pub data: *mut u8,
    pub len: usize,
}

/// Token ids owned by the caller: free them with sluice_ids_free(). data is null when len is 0.
#[repr(C)]
pub struct sluice_ids {
    pub data: *mut i32,
    pub len: usize,
}

/// The bytes [begin, end) of a text.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sluice_range {
    pub begin: usize,
    pub end: usize,
}

/// Ranges owned by the caller: free them with sluice_ranges_free(). data is null when len is 0.
#[repr(C)]
pub struct sluice_ranges {
    pub data: *mut sluice_range,
    pub len: usize,
}

/// Hands a vector to the caller as (data, len).
pub fn into_raw<T>(values: Vec<T>) -> (*mut T, usize) {
    if values.is_empty() {
        return (std::ptr::null_mut(), 0);
    }
    let len = values.len();
    (Box::into_raw(values.into_boxed_slice()) as *mut T, len)
}

/// Takes back what into_raw() gave and frees it.
///
/// # Safety
/// (data, len) came from into_raw() and was not freed yet, or data is null.
pub unsafe fn free_raw<T>(data: *mut T, len: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, len)));
    }
}

/// The bytes at (data, len); `what` names the argument in the error.
///
/// # Safety
/// data is null or valid for reads of len values for as long as the result lives.
pub unsafe fn slice<'a, T>(data: *const T, len: usize, what: &str) -> Outcome<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::invalid(format!("{what}: null pointer with length {len}")));
    }
    Ok(std::slice::from_raw_parts(data, len))
}

/// As slice(), for UTF-8 text of at most bytes_max bytes.
///
/// # Safety
/// As slice().
pub unsafe fn text<'a>(
    data: *const u8,
    len: usize,
    bytes_max: usize,
    what: &str,
) -> Outcome<&'a str> {
    if len > bytes_max {
        return Err(Failure::exhausted(format!("{what}: {len} bytes, at most {bytes_max}")));
    }
    std::str::from_utf8(slice(data, len, what)?).map_err(|error| {
        Failure::invalid(format!("{what}: not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// # Safety
/// pointer is null or points to a live object that nobody changes while the result lives.
pub unsafe fn object<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    pointer.as_ref().ok_or_else(|| Failure::invalid(format!("{what}: null pointer")))
}

/// # Safety
/// pointer is null or valid for writes and not aliased while the result lives.
pub unsafe fn object_mut<'a, T>(pointer: *mut T, what: &str) -> Outcome<&'a mut T> {
    pointer.as_mut().ok_or_else(|| Failure::invalid(format!("{what}: null pointer")))
}

/// Cuts a message that may quote user input, at a character border.
pub fn shorten(message: &str) -> String {
    const BYTES_MAX: usize = 1000;
    if message.len() <= BYTES_MAX {
        return message.to_string();
    }
    let end = (0..=BYTES_MAX).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
    format!("{}...", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let mut error = std::ptr::null_mut();
        let code = unsafe { guard(&mut error, || panic!("broken {}", 42)) };
        assert_eq!(code, Code::SLUICE_TEXT_INTERNAL);
        let error = unsafe { Box::from_raw(error) };
        assert!(error.message.contains("broken 42"), "{}", error.message);
        assert!(error.message.contains("abi.rs:"), "{}", error.message);
    }

    #[test]
    fn an_error_without_an_out_pointer_is_only_a_code() {
        let code = unsafe { guard(std::ptr::null_mut(), || Err(Failure::invalid("x"))) };
        assert_eq!(code, Code::SLUICE_TEXT_INVALID_ARGUMENT);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let text = "é".repeat(2000);
        assert!(shorten(&text).len() <= 1003);
    }
}
