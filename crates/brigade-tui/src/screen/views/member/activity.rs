//! A member's events and messages, merged in time order. There may be a million of these items, so the code
//! steps from one item to the next and never iterates over all of them.

use brigade_core::projection::{MemberView, MessageRef, TeamProjection, WorkRef};

/// One entry of the activity list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivityItem {
    Event(WorkRef),
    Message(MessageRef),
}

/// A position between two activity items, at which the visible part ends. `hidden` is the number of lines of the
/// preceding item that lie below the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActivityPosition {
    acts: usize,
    messages: usize,
    pub(crate) hidden: usize,
}

/// A member's events and messages as one list.
pub(crate) struct ActivityList<'t> {
    acts: &'t [WorkRef],
    numbers: &'t [u32],
    messages: &'t [MessageRef],
}

impl<'t> ActivityList<'t> {
    pub(crate) fn new(projection: &'t TeamProjection, person: &'t MemberView) -> Self {
        Self { acts: &person.work, numbers: &person.messages, messages: projection.messages() }
    }

    fn message(&self, index: usize) -> Option<MessageRef> {
        let number = usize::try_from(*self.numbers.get(index)?).ok()?;
        self.messages.get(number).copied()
    }

    /// Returns the position after the last item.
    pub(crate) fn end(&self) -> ActivityPosition {
        ActivityPosition { acts: self.acts.len(), messages: self.numbers.len(), hidden: 0 }
    }

    /// Returns the item before a position, and the position before that item.
    pub(crate) fn previous(
        &self,
        position: ActivityPosition,
    ) -> Option<(ActivityPosition, ActivityItem)> {
        let (acts, messages) = (position.acts.checked_sub(1), position.messages.checked_sub(1));
        let act = acts.and_then(|last| self.acts.get(last)).copied();
        let message = messages.and_then(|last| self.message(last));
        let is_act = match (&act, &message) {
            (Some(act), Some(message)) => act.at > message.at,
            (act, _) => act.is_some(),
        };
        if is_act {
            Some((
                ActivityPosition { acts: acts?, hidden: 0, ..position },
                ActivityItem::Event(act?),
            ))
        } else {
            Some((
                ActivityPosition { messages: messages?, hidden: 0, ..position },
                ActivityItem::Message(message?),
            ))
        }
    }

    /// Returns the item after a position, and the position after that item.
    pub(crate) fn next(
        &self,
        position: ActivityPosition,
    ) -> Option<(ActivityPosition, ActivityItem)> {
        let act = self.acts.get(position.acts).copied();
        let message = self.message(position.messages);
        let is_act = match (&act, &message) {
            (Some(act), Some(message)) => act.at <= message.at,
            (act, _) => act.is_some(),
        };
        if is_act {
            Some((
                ActivityPosition { acts: position.acts + 1, hidden: 0, ..position },
                ActivityItem::Event(act?),
            ))
        } else {
            Some((
                ActivityPosition { messages: position.messages + 1, hidden: 0, ..position },
                ActivityItem::Message(message?),
            ))
        }
    }

    /// Moves a position up by `lines`, but keeps a full page visible. Returns `None` if all items fit on one
    /// page.
    pub(crate) fn up(
        &self,
        from: ActivityPosition,
        lines: usize,
        page: usize,
        height: impl Fn(ActivityItem) -> usize,
    ) -> Option<ActivityPosition> {
        let (mut position, mut hidden) = (from, from.hidden + lines);
        while let Some((before, item)) = self.previous(position) {
            let item_height = height(item);
            if hidden < item_height {
                break;
            }
            hidden -= item_height;
            position = before;
        }
        position.hidden = hidden;
        // Check that there is a full page above the new position.
        let (mut above, mut seen) = (position, 0);
        while let Some((before, item)) = self.previous(above) {
            seen += height(item);
            above = before;
            if seen >= page + hidden {
                return Some(position);
            }
        }
        self.first(page, height)
    }

    /// Moves a position down by `lines`. Returns `None` if the new position is the end of the list.
    pub(crate) fn down(
        &self,
        from: ActivityPosition,
        lines: usize,
        height: impl Fn(ActivityItem) -> usize,
    ) -> Option<ActivityPosition> {
        let (mut position, mut hidden) = (from, from.hidden);
        let mut left = lines;
        while left > hidden {
            left -= hidden;
            let (next, item) = self.next(position)?;
            (position, hidden) = (next, height(item));
        }
        position.hidden = hidden - left;
        self.unless_at_end(position, height)
    }

    /// Returns the position at the bottom of the first page; `None` if all items fit on one page.
    pub(crate) fn first(
        &self,
        page: usize,
        height: impl Fn(ActivityItem) -> usize,
    ) -> Option<ActivityPosition> {
        let (mut position, mut seen) = (ActivityPosition { acts: 0, messages: 0, hidden: 0 }, 0);
        while seen < page {
            let (next, item) = self.next(position)?;
            seen += height(item);
            position = next;
        }
        position.hidden = seen - page;
        self.unless_at_end(position, height)
    }

    /// Returns the given position, or `None` if no line follows that position.
    fn unless_at_end(
        &self,
        position: ActivityPosition,
        height: impl Fn(ActivityItem) -> usize,
    ) -> Option<ActivityPosition> {
        let mut behind = position;
        while behind.hidden == 0 {
            let (next, item) = self.next(behind)?;
            behind = ActivityPosition { hidden: height(item), ..next };
        }
        Some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::test_support::{END, recorded_screen};

    /// The height of an item in these tests: every third item has no lines, the others have two.
    fn height(item: ActivityItem) -> usize {
        let at = match item {
            ActivityItem::Event(act) => act.at,
            ActivityItem::Message(message) => message.at,
        };
        if at.0 % 3 == 0 { 0 } else { 2 }
    }

    #[test]
    fn forward_and_backward_visit_the_same_items() {
        let screen = recorded_screen(END);
        for person in screen.projection.all_members() {
            let activity = ActivityList::new(&screen.projection, person);
            let (mut position, mut backward) = (activity.end(), Vec::new());
            while let Some((before, item)) = activity.previous(position) {
                (position, _) = (before, backward.push(item));
            }
            let mut forward = Vec::new();
            while let Some((next, item)) = activity.next(position) {
                (position, _) = (next, forward.push(item));
            }
            assert_eq!(position, activity.end());
            backward.reverse();
            assert_eq!(backward, forward, "{}", person.name);
            assert_eq!(backward.len(), person.work.len() + person.messages.len());
        }
    }

    #[test]
    fn down_undoes_up_and_neither_leaves_the_list() {
        let screen = recorded_screen(END);
        let ada = screen.projection.member_named("ada").unwrap();
        let activity = ActivityList::new(&screen.projection, ada);
        let mut places = vec![activity.end()];
        let first = activity.first(10, height).unwrap();
        while let Some(position) = activity.up(*places.last().unwrap(), 1, 10, height) {
            if places.last() == Some(&position) {
                break;
            }
            places.push(position);
        }
        assert!(places.len() > 50, "{}", places.len());
        assert_eq!(
            lines_before(&activity, *places.last().unwrap()),
            lines_before(&activity, first)
        );
        // Each step up hides one line, and a step down shows that line again.
        for pair in places.windows(2) {
            assert_eq!(lines_before(&activity, pair[0]), lines_before(&activity, pair[1]) + 1);
            let down = activity.down(pair[1], 1, height).unwrap_or_else(|| activity.end());
            assert_eq!(lines_before(&activity, down), lines_before(&activity, pair[0]));
        }
        assert_eq!(activity.up(activity.end(), 100_000, 10, height), Some(first));
        assert_eq!(activity.down(first, 100_000, height), None);
        assert_eq!(activity.first(100_000, height), None);
        assert_eq!(activity.up(activity.end(), 1, 100_000, height), None);
    }

    fn lines_before(activity: &ActivityList<'_>, position: ActivityPosition) -> usize {
        let (mut at, mut lines) = (position, 0);
        while let Some((before, item)) = activity.previous(at) {
            lines += height(item);
            at = before;
        }
        lines - position.hidden
    }
}
