//! A short list of small numbers, packed so that a whole state is one flat value.

use std::fmt;

/// Up to sixteen numbers from 1 to 15, in order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) fn from_slice(ids: &[u8]) -> Self {
        let mut list = Self::default();
        for &id in ids {
            list.push(id);
        }
        list
    }

    pub(crate) fn len(self) -> u8 {
        u8::try_from((67 - self.0.leading_zeros()) / 4).expect("a list has at most sixteen numbers")
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn push(&mut self, id: u8) {
        assert!((1..16).contains(&id) && self.len() < 16, "cannot add {id} to {self:?}");
        self.0 |= u64::from(id) << (4 * self.len());
    }

    pub(crate) fn get(self, index: u8) -> u8 {
        u8::try_from(self.0 >> (4 * index) & 15).expect("four bits")
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |index| self.get(index))
    }

    pub(crate) fn contains(self, id: u8) -> bool {
        self.iter().any(|other| other == id)
    }

    pub(crate) fn count(self, id: u8) -> usize {
        self.iter().filter(|&other| other == id).count()
    }

    pub(crate) fn filtered(self, mut keep: impl FnMut(u8) -> bool) -> Self {
        let mut list = Self::default();
        for id in self.iter().filter(|&id| keep(id)) {
            list.push(id);
        }
        list
    }

    pub(crate) fn followed_by(mut self, more: Self) -> Self {
        for id in more.iter() {
            self.push(id);
        }
        self
    }

    pub(crate) fn starting_at(self, offset: u8) -> Self {
        Self(if offset < 16 { self.0 >> (4 * offset) } else { 0 })
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
