//! Constrained decoding: which tokens may come next so that the text follows a JSON Schema, a regular
//! expression or a Lark grammar (llguidance).
//!
//! Tables over the vocabulary (a trie of all token bytes) are built on first use and shared by all
//! grammars of a tokenizer. Added tokens never match text: a grammar reaches them only by name
//! (`<think>` outside quotes in Lark), so a constrained string cannot smuggle in a control token.

use std::sync::{Arc, PoisonError};

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::{Matcher, ParserFactory};
use toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::abi::{shorten, Code, Failure, Outcome};
use crate::json_schema;
use crate::lark_cost;
use crate::tokenizer::Tokenizer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrammarKind {
    JsonSchema,
    Regex,
    Lark,
}

/// One sequence's state. Not for concurrent use.
pub struct Grammar {
    matcher: Matcher,
    _tokenizer: Arc<Tokenizer>, // the matcher only holds it weakly
    stop_ids: Vec<u32>,
    vocab_size: u32,
    finished: bool,
    /// Of the current state, when somebody asked for it.
    mask: Option<SimpleVob>,
}

impl Grammar {
    /// stop_ids: the tokens that end the sequence; allowed where the grammar may end.
    pub fn new(
        tokenizer: &Arc<Tokenizer>,
        kind: GrammarKind,
        text: &str,
        stop_ids: &[u32],
    ) -> Outcome<Self> {
        let mut stop_ids = stop_ids.to_vec();
        stop_ids.sort_unstable();
        stop_ids.dedup();
        let vocab_size = tokenizer.vocab_size();
        match stop_ids.last() {
            None => return Err(Failure::invalid("grammar: no stop token")),
            Some(&id) if id >= vocab_size => {
                let message = format!("grammar: stop token {id}, ids are below {vocab_size}");
                return Err(Failure::invalid(message));
            }
            Some(_) => {}
        }
        let factory = factory(tokenizer, &stop_ids)?;
        let parser = match kind {
            GrammarKind::JsonSchema => {
                let schema = json_schema::parse(text)?;
                let grammar = TopLevelGrammar::from_json_schema(schema.clone());
                let parser = factory.create_parser(grammar);
                parser.map_err(|error| json_schema::refused(&schema, &error))?
            }
            GrammarKind::Regex => {
                let parser = factory.create_parser(TopLevelGrammar::from_regex(text));
                parser.map_err(|error| refused("regular expression", &error))?
            }
            GrammarKind::Lark => {
                lark_cost::check(text)?;
                let parser = factory.create_parser(TopLevelGrammar::from_lark(text.to_string()));
                parser.map_err(|error| refused("grammar", &error))?
            }
        };
        let mut grammar = Grammar {
            matcher: Matcher::new(Ok(parser)),
            _tokenizer: tokenizer.clone(),
            stop_ids,
            vocab_size,
            finished: false,
            mask: None,
        };
        grammar.current_mask()?; // finds out now whether the grammar can be run at all
        Ok(grammar)
    }

    /// The same state again, sharing nothing that changes. Far cheaper than new().
    pub fn deep_clone(&self) -> Self {
        Grammar {
            matcher: self.matcher.deep_clone(),
            _tokenizer: self._tokenizer.clone(),
            stop_ids: self.stop_ids.clone(),
            vocab_size: self.vocab_size,
            finished: self.finished,
            mask: self.mask.clone(),
        }
    }

    /// Sets bit id % 32 of mask[id / 32] for each token that may come next, clears all other bits.
    /// Nothing may come after the end.
    pub fn allowed_mask(&mut self, mask: &mut [u32]) -> Outcome<()> {
        let words = self.vocab_size.div_ceil(32) as usize;
        if mask.len() < words {
            let message = format!("mask: {} words, want at least {words}", mask.len());
            return Err(Failure::invalid(message));
        }
        mask.fill(0);
        if !self.finished {
            let vocab_size = self.vocab_size;
            let allowed = self.current_mask()?;
            mask[..words].copy_from_slice(&allowed.as_slice()[..words]);
            if vocab_size % 32 != 0 {
                mask[words - 1] &= (1 << (vocab_size % 32)) - 1;
            }
        }
        Ok(())
    }

    /// Advances by one token whose text may come next. That is more than the mask says: where only
    /// one text can go on, the mask has just the token that the tokenizer would take for it.
    pub fn accept(&mut self, id: u32) -> Outcome<()> {
        if self.finished || id >= self.vocab_size || !self.fits(id)? {
            return Err(Failure::invalid(format!("grammar: token {id} may not come here")));
        }
        self.mask = None;
        if self.stop_ids.binary_search(&id).is_ok() {
            self.finished = true;
            return Ok(());
        }
        self.matcher.consume_token(id).map_err(|error| broken(&error))?;
        Ok(())
    }

    /// Whether the sequence is over: a stop token came, or nothing else can.
    pub fn is_finished(&mut self) -> Outcome<bool> {
        if self.finished {
            return Ok(true);
        }
        let stop_ids = self.stop_ids.clone();
        let allowed = self.current_mask()?;
        Ok(allowed.iter().all(|id| stop_ids.binary_search(&id).is_ok()))
    }

    fn fits(&mut self, id: u32) -> Outcome<bool> {
        if self.stop_ids.binary_search(&id).is_ok() {
            return Ok(self.current_mask()?.is_allowed(id));
        }
        let count = self.matcher.validate_tokens(&[id]).map_err(|error| broken(&error))?;
        Ok(count == 1)
    }

    fn current_mask(&mut self) -> Outcome<&SimpleVob> {
        if self.mask.is_none() {
            let mut mask = self.matcher.compute_mask_or_eos().map_err(|error| broken(&error))?;
            // The library names the first stop token only in some states.
            let may_stop = self.stop_ids.iter().any(|&id| mask.is_allowed(id));
            for &id in &self.stop_ids {
                mask.set(id as usize, may_stop);
            }
            self.mask = Some(mask);
        }
        self.mask.as_ref().ok_or_else(|| Failure::internal("grammar: no mask"))
    }
}

fn refused(what: &str, error: &anyhow::Error) -> Failure {
    Failure::invalid(shorten(&format!("{what}: {error:#}")))
}

/// A failure after construction: mostly a limit of the parser.
fn broken(error: &anyhow::Error) -> Failure {
    Failure::new(Code::SLUICE_TEXT_RESOURCE_EXHAUSTED, shorten(&format!("grammar: {error:#}")))
}

/// The shared tables for these stop ids (they rarely change, so the last ones are kept).
fn factory(tokenizer: &Arc<Tokenizer>, stop_ids: &[u32]) -> Outcome<Arc<ParserFactory>> {
    let mut kept = tokenizer.grammar_factory.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((ids, factory)) = kept.as_ref() {
        if ids == stop_ids {
            return Ok(factory.clone());
        }
    }
    let trie = token_trie(tokenizer, stop_ids);
    // A copy of the handle inside itself would never be freed: the environment holds no factory.
    let environment: TokEnv = Arc::new(Environment { tokenizer: Arc::downgrade(tokenizer), trie });
    let mut factory = ParserFactory::new_simple(&environment)
        .map_err(|error| Failure::internal(format!("grammar tables: {error:#}")))?;
    factory.quiet();
    *factory.limits_mut() = ParserLimits { verbose_errors: false, ..ParserLimits::default() };
    let factory = Arc::new(factory);
    *kept = Some((stop_ids.to_vec(), factory.clone()));
    Ok(factory)
}

fn token_trie(tokenizer: &Tokenizer, stop_ids: &[u32]) -> TokTrie {
    let vocab_size = tokenizer.vocab_size();
    let mut words: Vec<Vec<u8>> =
        (0..vocab_size).map(|id| tokenizer.token_bytes(id).to_vec()).collect();
    for id in tokenizer.added().ids() {
        words[id as usize].insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
    }
    TokTrie::from(&TokRxInfo::new(vocab_size, stop_ids[0]), &words).with_eos_tokens(stop_ids)
}

/// What llguidance asks of a tokenizer.
struct Environment {
    tokenizer: std::sync::Weak<Tokenizer>,
    trie: TokTrie,
}

impl Environment {
    /// The tokens of a text, if they spell exactly this text (NFC may change it).
    fn exact_tokens(&self, text: &str) -> Option<Vec<TokenId>> {
        let tokenizer = self.tokenizer.upgrade()?;
        let ids = tokenizer.encode_literal(text).ok()?;
        let ids: Vec<TokenId> = ids.into_iter().map(|id| id as TokenId).collect();
        let spelled = ids.iter().flat_map(|&id| tokenizer.token_bytes(id));
        spelled.eq(text.as_bytes()).then_some(ids)
    }
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.exact_tokens(text).unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
