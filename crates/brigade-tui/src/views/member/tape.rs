//! What a member did and the mail it wrote and got, as one row of things in order of time. There may be a
//! million of them: one goes from each to the next, and never over all.

use brigade_core::projection::{Act, Letter, Person, Picture};

/// One thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Act(Act),
    Letter(Letter),
}

/// A place between two things, and how many lines of what stands before it are hidden below the screen's
/// last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    acts: usize,
    letters: usize,
    pub(super) hidden: usize,
}

/// All of it.
pub(super) struct Tape<'t> {
    acts: &'t [Act],
    letters: &'t [u32],
    all: &'t [Letter],
}

impl<'t> Tape<'t> {
    pub(super) fn of(picture: &'t Picture, person: &'t Person) -> Self {
        Self { acts: &person.acts, letters: &person.letters, all: picture.letters() }
    }

    fn letter(&self, place: usize) -> Option<Letter> {
        let number = usize::try_from(*self.letters.get(place)?).ok()?;
        self.all.get(number).copied()
    }

    /// Behind the last.
    pub(super) fn end(&self) -> Place {
        Place { acts: self.acts.len(), letters: self.letters.len(), hidden: 0 }
    }

    /// The thing before a place.
    pub(super) fn back(&self, place: Place) -> Option<(Place, Item)> {
        let (acts, letters) = (place.acts.checked_sub(1), place.letters.checked_sub(1));
        let act = acts.and_then(|last| self.acts.get(last)).copied();
        let letter = letters.and_then(|last| self.letter(last));
        let is_act = match (&act, &letter) {
            (Some(act), Some(letter)) => act.at > letter.at,
            (act, _) => act.is_some(),
        };
        if is_act {
            Some((Place { acts: acts?, hidden: 0, ..place }, Item::Act(act?)))
        } else {
            Some((Place { letters: letters?, hidden: 0, ..place }, Item::Letter(letter?)))
        }
    }

    /// The thing behind a place.
    fn on(&self, place: Place) -> Option<(Place, Item)> {
        let act = self.acts.get(place.acts).copied();
        let letter = self.letter(place.letters);
        let is_act = match (&act, &letter) {
            (Some(act), Some(letter)) => act.at <= letter.at,
            (act, _) => act.is_some(),
        };
        if is_act {
            Some((Place { acts: place.acts + 1, hidden: 0, ..place }, Item::Act(act?)))
        } else {
            Some((Place { letters: place.letters + 1, hidden: 0, ..place }, Item::Letter(letter?)))
        }
    }

    /// So many lines towards the beginning, but no further than to a full page; `None` is the end.
    pub(super) fn up(
        &self,
        from: Place,
        lines: usize,
        page: usize,
        height: impl Fn(Item) -> usize,
    ) -> Option<Place> {
        let (mut place, mut hidden) = (from, from.hidden + lines);
        while let Some((before, item)) = self.back(place) {
            let its = height(item);
            if hidden < its {
                break;
            }
            hidden -= its;
            place = before;
        }
        place.hidden = hidden;
        // Is there a page of it?
        let (mut above, mut seen) = (place, 0);
        while let Some((before, item)) = self.back(above) {
            seen += height(item);
            above = before;
            if seen >= page + hidden {
                return Some(place);
            }
        }
        self.first(page, height)
    }

    /// So many lines towards the end; `None` is the end.
    pub(super) fn down(
        &self,
        from: Place,
        lines: usize,
        height: impl Fn(Item) -> usize,
    ) -> Option<Place> {
        let (mut place, mut hidden) = (from, from.hidden);
        let mut left = lines;
        while left > hidden {
            left -= hidden;
            let (next, item) = self.on(place)?;
            (place, hidden) = (next, height(item));
        }
        place.hidden = hidden - left;
        self.unless_end(place, height)
    }

    /// The first page; `None` if there is no more than that.
    pub(super) fn first(&self, page: usize, height: impl Fn(Item) -> usize) -> Option<Place> {
        let (mut place, mut seen) = (Place { acts: 0, letters: 0, hidden: 0 }, 0);
        while seen < page {
            let (next, item) = self.on(place)?;
            seen += height(item);
            place = next;
        }
        place.hidden = seen - page;
        self.unless_end(place, height)
    }

    /// The place, unless no line stands behind it.
    fn unless_end(&self, place: Place, height: impl Fn(Item) -> usize) -> Option<Place> {
        let mut behind = place;
        while behind.hidden == 0 {
            let (next, item) = self.on(behind)?;
            behind = Place { hidden: height(item), ..next };
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{END, played};

    /// Each thing has two lines, but every third none.
    fn height(item: Item) -> usize {
        let at = match item {
            Item::Act(act) => act.at,
            Item::Letter(letter) => letter.at,
        };
        if at.0 % 3 == 0 { 0 } else { 2 }
    }

    #[test]
    fn forth_is_the_way_back_turned_round() {
        let screen = played(END);
        for person in screen.picture.people() {
            let tape = Tape::of(&screen.picture, person);
            let (mut place, mut back) = (tape.end(), Vec::new());
            while let Some((before, item)) = tape.back(place) {
                (place, _) = (before, back.push(item));
            }
            let mut forth = Vec::new();
            while let Some((next, item)) = tape.on(place) {
                (place, _) = (next, forth.push(item));
            }
            assert_eq!(place, tape.end());
            back.reverse();
            assert_eq!(back, forth, "{}", person.name);
            assert_eq!(back.len(), person.acts.len() + person.letters.len());
        }
    }

    #[test]
    fn down_undoes_up_and_neither_leaves_the_tape() {
        let screen = played(END);
        let ada = screen.picture.called("ada").unwrap();
        let tape = Tape::of(&screen.picture, ada);
        let mut places = vec![tape.end()];
        let first = tape.first(10, height).unwrap();
        while let Some(place) = tape.up(*places.last().unwrap(), 1, 10, height) {
            if places.last() == Some(&place) {
                break;
            }
            places.push(place);
        }
        assert!(places.len() > 50, "{}", places.len());
        assert_eq!(lines_before(&tape, *places.last().unwrap()), lines_before(&tape, first));
        // Line by line: each step shows one line less, and the way down one more.
        for pair in places.windows(2) {
            assert_eq!(lines_before(&tape, pair[0]), lines_before(&tape, pair[1]) + 1);
            let down = tape.down(pair[1], 1, height).unwrap_or_else(|| tape.end());
            assert_eq!(lines_before(&tape, down), lines_before(&tape, pair[0]));
        }
        assert_eq!(tape.up(tape.end(), 100_000, 10, height), Some(first));
        assert_eq!(tape.down(first, 100_000, height), None);
        assert_eq!(tape.first(100_000, height), None);
        assert_eq!(tape.up(tape.end(), 1, 100_000, height), None);
    }

    fn lines_before(tape: &Tape<'_>, place: Place) -> usize {
        let (mut at, mut lines) = (place, 0);
        while let Some((before, item)) = tape.back(at) {
            lines += height(item);
            at = before;
        }
        lines - place.hidden
    }
}
