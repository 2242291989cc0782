//! What pieces of prompts became when they were encoded before. A conversation is sent again with
//! every turn, and encoding takes half a second a megabyte; what a piece becomes depends on nothing
//! but its text. Pieces are remembered by owner, so that nobody learns from the time it takes what
//! another one wrote. Any number of threads may use it at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

/// Text and ids of all pieces; the least recently used go first.
const BYTES_MAX: usize = 64 << 20;
/// Shorter ones are encoded as fast as they are found.
const PIECE_BYTES_MIN: usize = 128;
/// A longer one would push out all others.
const PIECE_BYTES_MAX: usize = BYTES_MAX / 16;

pub struct EncodeMemory {
    kept: Mutex<Kept>,
}

struct Kept {
    pieces: LruCache<Vec<u8>, Arc<[i32]>>,
    bytes: usize,
}

/// The memory as one owner sees it.
#[derive(Clone, Copy)]
pub struct OwnedMemory<'a> {
    pub memory: &'a EncodeMemory,
    pub owner: &'a [u8],
}

impl EncodeMemory {
    pub fn new() -> Self {
        EncodeMemory { kept: Mutex::new(Kept { pieces: LruCache::unbounded(), bytes: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedMemory<'_> {
    pub fn find(&self, piece: &str) -> Option<Arc<[i32]>> {
        let key = self.key(piece)?;
        self.memory.lock().pieces.get(&key).cloned()
    }

    pub fn keep(&self, piece: &str, ids: &[i32]) {
        let Some(key) = self.key(piece) else { return };
        let mut kept = self.memory.lock();
        kept.bytes += cost(&key, ids);
        if let Some((key, ids)) = kept.pieces.push(key, ids.into()) {
            kept.bytes -= cost(&key, &ids); // another thread kept it meanwhile
        }
        while kept.bytes > BYTES_MAX {
            let Some((key, ids)) = kept.pieces.pop_lru() else { break };
            kept.bytes -= cost(&key, &ids);
        }
    }

    /// None of a piece that is not remembered.
    fn key(&self, piece: &str) -> Option<Vec<u8>> {
        if piece.len() < PIECE_BYTES_MIN || piece.len() > PIECE_BYTES_MAX {
            return None;
        }
        let mut key = Vec::with_capacity(size_of::<usize>() + self.owner.len() + piece.len());
        key.extend_from_slice(&self.owner.len().to_le_bytes());
        key.extend_from_slice(self.owner);
        key.extend_from_slice(piece.as_bytes());
        Some(key)
    }
}

fn cost(key: &[u8], ids: &[i32]) -> usize {
    const ENTRY_BYTES: usize = 128; // of tables and allocations, about
    key.len() + size_of_val(ids) + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_the_same_owner_kept() {
        let memory = EncodeMemory::new();
        let text = "a".repeat(PIECE_BYTES_MIN);
        let of = |owner: &'static [u8]| OwnedMemory { memory: &memory, owner };
        assert!(of(b"x").find(&text).is_none());
        of(b"x").keep(&text, &[1, 2]);
        assert_eq!(of(b"x").find(&text).as_deref(), Some(&[1, 2][..]));
        assert!(of(b"").find(&text).is_none());
        assert!(of(b"y").find(&text).is_none());
        assert!(of(b"x").find(&text[1..]).is_none());
    }

    #[test]
    fn stays_within_its_bytes() {
        let memory = EncodeMemory::new();
        let own = OwnedMemory { memory: &memory, owner: b"" };
        let text = |i: usize| format!("{i:08}{}", "b".repeat(1 << 20));
        let first = text(0);
        for i in 0..100 {
            own.keep(&text(i), &[i as i32; 1000]);
            assert!(own.find(&first).is_some()); // used again and again
            own.keep(&first, &[0; 1000]);
        }
        let kept = memory.lock();
        assert!(kept.bytes <= BYTES_MAX);
        let bytes: usize = kept.pieces.iter().map(|(key, ids)| cost(key, ids)).sum();
        assert_eq!(bytes, kept.bytes);
        assert!(kept.pieces.len() > 50 && kept.pieces.len() < 64);
    }
}
