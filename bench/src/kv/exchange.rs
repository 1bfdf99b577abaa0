//! A request and its reply, both known beforehand but for the key in them: nothing is built or allocated per query.

use serde::{Deserialize, Serialize};

/// Seven digits.
pub(super) type Key = [u8; 7];

/// The key that templates are made with; no store ever holds it.
pub(super) const TEMPLATE_KEY: &Key = b"0000000";

pub(super) fn value(key: &Key) -> String {
    format!("value_{}", String::from_utf8_lossy(key))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: Vec<u8>,
    request_places: Vec<usize>,
    pub(super) reply: Vec<u8>,
    reply_places: Vec<usize>,
}

impl Exchange {
    /// Of a request for `key` and its reply: where either holds the key, it will hold another one.
    pub(super) fn new(request: Vec<u8>, reply: Vec<u8>, key: &Key) -> Self {
        let (request_places, reply_places) = (places(&request, key), places(&reply, key));
        let mut exchange = Self { request, request_places, reply, reply_places };
        exchange.set_key(TEMPLATE_KEY);
        exchange
    }

    pub(super) fn set_key(&mut self, key: &Key) {
        for place in &self.request_places {
            self.request[*place..*place + key.len()].copy_from_slice(key);
        }
        for place in &self.reply_places {
            self.reply[*place..*place + key.len()].copy_from_slice(key);
        }
    }

    /// The key in a request of this kind; None where it is of another length.
    pub(super) fn key_of(&self, request: &[u8]) -> Option<Key> {
        let place = *self.request_places.first().filter(|_| request.len() == self.request.len())?;
        request.get(place..place + TEMPLATE_KEY.len())?.try_into().ok()
    }
}

fn places(bytes: &[u8], key: &Key) -> Vec<usize> {
    let windows = bytes.windows(key.len()).enumerate();
    windows.filter(|(_, window)| window == key).map(|(place, _)| place).collect()
}

/// Every key once, in an order that looks random.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) count: u64,
}

impl Keys {
    /// A prime: it shares no factor with any count that it does not divide.
    const STEP: u64 = 7_368_787;
    const FIRST: u64 = 1_000_000;

    pub(super) fn at(self, position: u64) -> Key {
        let mut number = Self::FIRST + position % self.count * Self::STEP % self.count;
        let mut key = *TEMPLATE_KEY;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_reply_follow_the_key() {
        let key = b"1234567";
        let request = crate::kv::resp::command(&[b"SET", key, value(key).as_bytes()]);
        let mut exchange = Exchange::new(request, b"$7\r\n1234567\r\n".to_vec(), key);
        exchange.set_key(b"7654321");
        assert_eq!(exchange.request, crate::kv::resp::command(&[b"SET", b"7654321", b"value_7654321"]));
        assert_eq!(exchange.reply, b"$7\r\n7654321\r\n");
        assert_eq!(exchange.key_of(&exchange.request), Some(*b"7654321"));
        assert_eq!(exchange.key_of(b"GET"), None);
    }

    #[test]
    fn every_key_comes_once_and_has_seven_digits() {
        let keys = Keys { count: 20_000 };
        let all: std::collections::HashSet<Key> = (0..keys.count).map(|position| keys.at(position)).collect();
        assert_eq!(all.len(), 20_000);
        assert!(all.iter().all(|key| key[0] == b'1') && !all.contains(TEMPLATE_KEY));
        assert_eq!(keys.at(0), keys.at(keys.count), "then it begins again");
    }
}
