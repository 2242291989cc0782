//! The text libraries of the field (tokenizers, minijinja, llguidance) behind one C ABI.
//!
//! * `tokenizer`, `template`, `grammar`: safe Rust, one noun each; they know nothing of C.
//! * `json_schema`, `lark_cost`: what a schema or a grammar needs, and what it may not ask for.
//! * `values`: JSON in, template values out, and Python's way of writing them.
//! * `abi`: errors, buffers and the panic guard; `ffi`: the exported functions.
//!
//! The crate reads no file, no environment variable and no network: callers pass bytes.

#![allow(non_camel_case_types)] // the names of the C ABI

mod abi;
mod encode_memory;
mod ffi;
mod grammar;
mod json_schema;
mod lark_cost;
mod template;
mod tokenizer;
mod values;

pub use ffi::*;
