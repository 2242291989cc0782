//! One checkpoint's tokenizer: text to ids and ids to bytes.
//!
//! The work is Hugging Face tokenizers': normalizer, pre-tokenizer and model of tokenizer.json. Only
//! the cutting out of added (control) tokens is ours, because theirs cannot leave some ranges of a
//! text alone. Order of work: cut added tokens out of the raw text (longest at the leftmost
//! position), then normalise, pre-tokenise and encode each piece between them.
//!
//! Everything but the memory of pieces is immutable after construction; any number of threads may use
//! it at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};
use llguidance::ParserFactory;
use serde::Deserialize;
use tokenizers::{
    AddedToken, DecoderWrapper, Model, NormalizedString, Normalizer, OffsetReferential, OffsetType,
    PreTokenizedString, PreTokenizer,
};

use crate::abi::{sluice_range, Failure, Outcome};
use crate::encode_memory::{EncodeMemory, OwnedMemory};

/// The largest id a tokenizer may have: beyond it a file is not a real one (and tables explode).
const ID_MAX: u32 = (1 << 24) - 2;

/// The pre-tokenizer's patterns of the model family, that of Qwen 3.5 first. With these no word goes
/// over the border between a newline and an ASCII letter.
const LINE_PATTERNS: [&str; 2] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// Pieces to be remembered are cut at the first such border after so many bytes: a text that grows, or
/// begins like another one, shares all parts but the last.
const PART_BYTES_MIN: usize = 1 << 10;

pub struct Tokenizer {
    huggingface: tokenizers::Tokenizer,
    added: AddedTokens,
    /// Bytes of every id, back to back: id owns bytes[begins[id]..begins[id + 1]].
    bytes: Vec<u8>,
    begins: Vec<usize>,
    special: Vec<bool>,
    eos_token: Option<u32>,
    memory: EncodeMemory,
    /// Whether a piece may be cut between lines (see LINE_PATTERNS).
    cuts_lines: bool,
    /// Shared tables of grammars, for the stop ids they were last built for (see grammar.rs).
    pub(crate) grammar_factory: Mutex<Option<(Vec<u32>, Arc<ParserFactory>)>>,
}

/// The added tokens of a tokenizer: what they are called and where a text spells them.
pub struct AddedTokens {
    ids: HashMap<String, u32>,
    matcher: Option<AhoCorasick>, // none without added tokens
    matcher_ids: Vec<u32>,        // id of each pattern
    first_chars: Vec<char>,       // with which a spelling can begin
}

impl Tokenizer {
    /// tokenizer_json: the file's bytes. config_json: those of tokenizer_config.json, if there are any;
    /// it may name added tokens that tokenizer.json lacks, and names the eos_token.
    pub fn new(tokenizer_json: &[u8], config_json: Option<&[u8]>) -> Outcome<Self> {
        let mut huggingface = tokenizers::Tokenizer::from_bytes(tokenizer_json)
            .map_err(|error| Failure::corrupt(format!("tokenizer.json: {error}")))?;
        let config = match config_json {
            Some(bytes) => TokenizerConfig::parse(bytes)?,
            None => TokenizerConfig::default(),
        };
        check_decoder(huggingface.get_decoder())?;
        check_listed_ids(tokenizer_json, &huggingface)?;
        merge_added_tokens(&mut huggingface, &config)?;
        let added = AddedTokens::new(&huggingface)?;
        let (bytes, begins, special) = token_tables(&huggingface)?;
        let eos_token = match config.eos_token.as_ref().map(TokenName::text) {
            Some(name) => Some(huggingface.token_to_id(name).ok_or_else(|| {
                Failure::corrupt(format!("tokenizer_config.json: eos_token {name:?} has no id"))
            })?),
            None => None,
        };
        Ok(Tokenizer {
            cuts_lines: keeps_lines_apart(&huggingface),
            memory: EncodeMemory::new(),
            huggingface,
            added,
            bytes,
            begins,
            special,
            eos_token,
            grammar_factory: Mutex::new(None),
        })
    }

    /// Largest id + 1.
    pub fn vocab_size(&self) -> u32 {
        self.special.len() as u32
    }

    pub fn eos_token(&self) -> Option<u32> {
        self.eos_token
    }

    pub fn added(&self) -> &AddedTokens {
        &self.added
    }

    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.huggingface.token_to_id(token)
    }

    /// What decode() writes for this id; empty for an id without a token.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        let index = id as usize;
        if index >= self.special.len() {
            return &[];
        }
        &self.bytes[self.begins[index]..self.begins[index + 1]]
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }

    /// Every character is ordinary text.
    pub fn encode_literal(&self, text: &str) -> Outcome<Vec<i32>> {
        let mut ids = Vec::new();
        self.encode_piece(text, None, &mut ids)?;
        Ok(ids)
    }

    /// Spellings of added tokens become their ids, except where they touch a literal range.
    /// Ranges: ascending, disjoint, at character borders. What has an owner is remembered for the owner's
    /// next texts.
    pub fn encode(
        &self,
        text: &str,
        literal: &[sluice_range],
        owner: Option<&[u8]>,
    ) -> Outcome<Vec<i32>> {
        check_ranges(text, literal)?;
        let memory = owner.map(|owner| OwnedMemory { memory: &self.memory, owner });
        let mut ids = Vec::new();
        let mut piece_begin = 0;
        let mut gap_begin = 0;
        let cuts = literal.iter().map(|range| (range.begin, range.end)).filter(|(b, e)| b < e);
        for (gap_end, next_gap) in cuts.chain([(text.len(), text.len())]) {
            for (begin, end, id) in self.added.find(text, gap_begin, gap_end) {
                self.encode_piece(&text[piece_begin..begin], memory, &mut ids)?;
                ids.push(id as i32);
                piece_begin = end;
            }
            gap_begin = next_gap;
        }
        self.encode_piece(&text[piece_begin..], memory, &mut ids)?;
        Ok(ids)
    }

    pub fn decode(&self, ids: &[i32], skip_special: bool) -> Outcome<String> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for (index, &id) in ids.iter().enumerate() {
            let known = u32::try_from(id).ok().filter(|&id| !self.token_bytes(id).is_empty());
            let Some(id) = known else {
                let limit = self.vocab_size();
                return Err(Failure::invalid(format!(
                    "token_ids[{index}] = {id}: no such token (ids are 0 to {})",
                    limit.saturating_sub(1)
                )));
            };
            if !(skip_special && self.is_special(id)) {
                bytes.extend_from_slice(self.token_bytes(id));
            }
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Encodes text without control tokens; with a memory, part by part.
    fn encode_piece(
        &self,
        text: &str,
        memory: Option<OwnedMemory>,
        ids: &mut Vec<i32>,
    ) -> Outcome<()> {
        let Some(memory) = memory else {
            return self.encode_part(text, ids);
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(self.part_len(rest));
            rest = after;
            if let Some(known) = memory.find(part) {
                ids.extend_from_slice(&known);
                continue;
            }
            let begin = ids.len();
            self.encode_part(part, ids)?;
            memory.keep(part, &ids[begin..]);
        }
        Ok(())
    }

    /// Bytes of the first part of a text that is not empty.
    fn part_len(&self, text: &str) -> usize {
        if !self.cuts_lines || text.len() <= PART_BYTES_MIN {
            return text.len();
        }
        text.as_bytes()[PART_BYTES_MIN..]
            .windows(2)
            .position(|pair| pair[0] == b'\n' && pair[1].is_ascii_alphabetic())
            .map_or(text.len(), |newline| PART_BYTES_MIN + newline + 1)
    }

    /// Normalise, pre-tokenise and encode text without control tokens.
    fn encode_part(&self, text: &str, ids: &mut Vec<i32>) -> Outcome<()> {
        if text.is_empty() {
            return Ok(());
        }
        let fail = |error: tokenizers::Error| Failure::internal(format!("encoding: {error}"));
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.huggingface.get_normalizer() {
            normalizer.normalize(&mut normalized).map_err(fail)?;
        }
        let mut pieces = PreTokenizedString::from(normalized);
        if let Some(pre_tokenizer) = self.huggingface.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(fail)?;
        }
        let model = self.huggingface.get_model();
        pieces.tokenize(|piece| model.tokenize(piece.get())).map_err(fail)?;
        for (_, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            ids.extend(tokens.iter().flatten().map(|token| token.id as i32));
        }
        Ok(())
    }
}

impl AddedTokens {
    fn new(huggingface: &tokenizers::Tokenizer) -> Outcome<Self> {
        let mut tokens: Vec<_> = huggingface.get_added_tokens_decoder().into_iter().collect();
        tokens.retain(|(_, token)| !token.content.is_empty());
        tokens.sort_by_key(|(id, _)| *id);
        for (id, token) in &tokens {
            if token.lstrip || token.rstrip || token.single_word {
                return Err(Failure::unsupported(format!(
                    "added token {id} {:?}: lstrip, rstrip and single_word are not supported",
                    token.content
                )));
            }
        }
        let mut first_chars: Vec<char> =
            tokens.iter().filter_map(|(_, token)| token.content.chars().next()).collect();
        first_chars.sort_unstable();
        first_chars.dedup();
        let matcher = (!tokens.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .start_kind(StartKind::Both)
                    .build(tokens.iter().map(|(_, token)| token.content.as_bytes()))
            })
            .transpose()
            .map_err(|error| Failure::unsupported(format!("added tokens: {error}")))?;
        Ok(AddedTokens {
            matcher,
            matcher_ids: tokens.iter().map(|(id, _)| *id).collect(),
            ids: tokens.into_iter().map(|(id, token)| (token.content, id)).collect(),
            first_chars,
        })
    }

    pub fn is_first_char(&self, c: char) -> bool {
        self.first_chars.contains(&c)
    }

    pub fn contains(&self, text: &str) -> bool {
        self.ids.contains_key(text)
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.matcher_ids.iter().copied()
    }

    /// (begin, end, id) of the spellings inside text[begin..end], left to right, longest first.
    pub fn find<'a>(
        &'a self,
        text: &'a str,
        begin: usize,
        end: usize,
    ) -> impl Iterator<Item = (usize, usize, u32)> + 'a {
        let gap = &text.as_bytes()[begin..end];
        self.matcher.iter().flat_map(move |matcher| {
            matcher.find_iter(gap).map(move |found| {
                let id = self.matcher_ids[found.pattern().as_usize()];
                (begin + found.start(), begin + found.end(), id)
            })
        })
    }

    /// End of the longest spelling that begins exactly at `begin`.
    pub fn spelling_at(&self, text: &str, begin: usize) -> Option<usize> {
        let input = Input::new(&text.as_bytes()[begin..]).anchored(Anchored::Yes);
        let found = self.matcher.as_ref()?.try_find(input).ok()??;
        Some(begin + found.end())
    }
}

/// tokenizer_config.json, as far as it concerns us.
#[derive(Default, Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    added_tokens_decoder: HashMap<String, ConfigToken>,
    #[serde(default)]
    eos_token: Option<TokenName>,
}

impl TokenizerConfig {
    fn parse(json: &[u8]) -> Outcome<Self> {
        if json.trim_ascii_start().first() != Some(&b'{') {
            return Err(Failure::corrupt("tokenizer_config.json: want a JSON object"));
        }
        serde_json::from_slice(json)
            .map_err(|error| Failure::corrupt(format!("tokenizer_config.json: {error}")))
    }
}

#[derive(Deserialize)]
struct ConfigToken {
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

/// A token is named by its text or by an object with its content.
#[derive(Deserialize)]
#[serde(untagged)]
enum TokenName {
    Text(String),
    Object { content: String },
}

impl TokenName {
    fn text(&self) -> &str {
        match self {
            TokenName::Text(text) => text,
            TokenName::Object { content } => content,
        }
    }
}

/// Adds the tokens that only tokenizer_config.json lists, in id order; each must get its listed id.
fn merge_added_tokens(
    huggingface: &mut tokenizers::Tokenizer,
    config: &TokenizerConfig,
) -> Outcome<()> {
    let mut listed = Vec::with_capacity(config.added_tokens_decoder.len());
    for (key, token) in &config.added_tokens_decoder {
        let id = key.parse::<u32>().ok().filter(|&id| id <= ID_MAX).ok_or_else(|| {
            Failure::corrupt(format!("tokenizer_config.json: added_tokens_decoder: id {key:?}"))
        })?;
        listed.push((id, token));
    }
    listed.sort_by_key(|(id, _)| *id);
    let known = huggingface.get_added_tokens_decoder();
    for (id, token) in listed {
        if known.get(&id).is_some_and(|old| old.content == token.content) {
            continue;
        }
        let added = AddedToken::from(token.content.clone(), token.special)
            .normalized(false)
            .lstrip(token.lstrip)
            .rstrip(token.rstrip)
            .single_word(token.single_word);
        if token.special {
            huggingface.add_special_tokens(&[added]);
        } else {
            huggingface.add_tokens(&[added]);
        }
        let got = huggingface.token_to_id(&token.content);
        if got != Some(id) {
            return Err(Failure::corrupt(format!(
                "tokenizer_config.json: added_tokens_decoder: {:?} is listed as {id}, but \
                 tokenizer.json leaves it {}",
                token.content,
                got.map_or("no id".to_string(), |got| got.to_string())
            )));
        }
    }
    Ok(())
}

/// The library renumbers added tokens whose ids do not fit; here that is an error.
fn check_listed_ids(tokenizer_json: &[u8], huggingface: &tokenizers::Tokenizer) -> Outcome<()> {
    #[derive(Deserialize)]
    struct Listed {
        id: u32,
        content: String,
    }
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        added_tokens: Vec<Listed>,
    }
    let file: File = serde_json::from_slice(tokenizer_json)
        .map_err(|error| Failure::corrupt(format!("tokenizer.json: {error}")))?;
    for token in file.added_tokens {
        let got = huggingface.token_to_id(&token.content);
        if got != Some(token.id) {
            return Err(Failure::corrupt(format!(
                "tokenizer.json: added_tokens: {:?} is listed as {}, but the vocabulary leaves it {}",
                token.content,
                token.id,
                got.map_or("no id".to_string(), |got| got.to_string())
            )));
        }
    }
    Ok(())
}

/// token_bytes() is only true for byte-level vocabularies.
fn check_decoder(decoder: Option<&DecoderWrapper>) -> Outcome<()> {
    match decoder {
        Some(DecoderWrapper::ByteLevel(_)) => Ok(()),
        Some(_) => Err(Failure::unsupported("tokenizer.json: decoder: want ByteLevel")),
        None => Err(Failure::unsupported("tokenizer.json: decoder: none, want ByteLevel")),
    }
}

/// Bytes of every id (see Tokenizer) and whether it is special.
fn token_tables(
    huggingface: &tokenizers::Tokenizer,
) -> Outcome<(Vec<u8>, Vec<usize>, Vec<bool>)> {
    let vocabulary = huggingface.get_vocab(true);
    let Some(id_max) = vocabulary.values().copied().max() else {
        return Err(Failure::corrupt("tokenizer.json: the vocabulary is empty"));
    };
    if id_max > ID_MAX {
        return Err(Failure::corrupt(format!("tokenizer.json: id {id_max}, at most {ID_MAX}")));
    }
    let count = id_max as usize + 1;
    let mut spellings: Vec<&str> = vec![""; count];
    for (token, &id) in &vocabulary {
        spellings[id as usize] = token;
    }
    let mut special = vec![false; count];
    for (id, token) in huggingface.get_added_tokens_decoder() {
        special[id as usize] = token.special;
    }
    let table = byte_table();
    let mut bytes = Vec::with_capacity(count * 6);
    let mut begins = Vec::with_capacity(count + 1);
    begins.push(0);
    for spelling in spellings {
        let begin = bytes.len();
        for c in spelling.chars() {
            match table.get(&c) {
                Some(&byte) => bytes.push(byte),
                None => {
                    // A spelling outside the stand-in alphabet stands for itself, as a whole.
                    bytes.truncate(begin);
                    bytes.extend_from_slice(spelling.as_bytes());
                    break;
                }
            }
        }
        begins.push(bytes.len());
    }
    Ok((bytes, begins, special))
}

/// Whether the pre-tokenizer is one of LINE_PATTERNS and bytes, and no normalizer looks across lines.
fn keeps_lines_apart(huggingface: &tokenizers::Tokenizer) -> bool {
    let is_nfc_or_none = huggingface.get_normalizer().is_none_or(|normalizer| {
        serde_json::to_value(normalizer).ok() == Some(serde_json::json!({"type": "NFC"}))
    });
    let pre_tokenizer =
        huggingface.get_pre_tokenizer().and_then(|known| serde_json::to_value(known).ok());
    is_nfc_or_none
        && LINE_PATTERNS.iter().any(|pattern| {
            pre_tokenizer
                == Some(serde_json::json!({"type": "Sequence", "pretokenizers": [
                    {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
                     "invert": false},
                    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                     "use_regex": false},
                ]}))
        })
}

/// GPT-2's printable stand-ins: printable Latin-1 bytes are themselves, the others are U+0100 and up
/// in byte order.
fn byte_table() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| {
            let code = if printable(byte) {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            (char::from_u32(code).unwrap_or_default(), byte)
        })
        .collect()
}

fn check_ranges(text: &str, ranges: &[sluice_range]) -> Outcome<()> {
    let mut last_end = 0;
    for (index, range) in ranges.iter().enumerate() {
        let ordered = last_end <= range.begin && range.begin <= range.end && range.end <= text.len();
        if !ordered {
            return Err(Failure::invalid(format!(
                "literal_ranges[{index}] = [{}, {}): want ascending, disjoint ranges in a text of {} bytes",
                range.begin, range.end, text.len()
            )));
        }
        if !text.is_char_boundary(range.begin) || !text.is_char_boundary(range.end) {
            return Err(Failure::invalid(format!(
                "literal_ranges[{index}] = [{}, {}): inside a character",
                range.begin, range.end
            )));
        }
        last_end = range.end;
    }
    Ok(())
}
