//! A member's events and messages, merged in time order. There may be a million of them, so the code steps
//! from item to neighbouring item and never walks over all of them.

use brigade_core::picture::{Act, Letter, Person, Picture};

/// One entry of the activity list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Act(Act),
    Letter(Letter),
}

/// A position between two items. `hidden` is the number of lines of the item before it that are below the
/// bottom of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    acts: usize,
    letters: usize,
    pub(super) hidden: usize,
}

/// The merged list.
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

    /// The position after the last item.
    pub(super) fn end(&self) -> Place {
        Place { acts: self.acts.len(), letters: self.letters.len(), hidden: 0 }
    }

    /// The item before a position, and the position before that item.
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

    /// The item after a position, and the position after that item.
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

    /// Moves up by `lines`, but keeps a full page visible. `None` means the end of the list.
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
        // Check that a full page remains above the new position.
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

    /// Moves down by `lines`. `None` means the end of the list.
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

    /// The position of the first page; `None` if everything fits on one page.
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

    /// The position, or `None` if no line follows it.
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
    use crate::ui::tests::{END, played};

    /// Every third item has no lines, the others have two.
    fn height(item: Item) -> usize {
        let at = match item {
            Item::Act(act) => act.at,
            Item::Letter(letter) => letter.at,
        };
        if at.0 % 3 == 0 { 0 } else { 2 }
    }

    #[test]
    fn forward_and_backward_visit_the_same_items() {
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
    fn down_undoes_up_and_neither_leaves_the_list() {
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
        // Each step up hides one line, and the step down shows it again.
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
