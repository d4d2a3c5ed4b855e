//! What is to be done about a task, by its two states and what is known of its past. No I/O.

use brigade_wire::task::Task;

use super::memory::Base;
use brigade_core::store::Document;

/// What is to be done about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is on neither side.
    Forget,
    /// Both sides have the same.
    Same,
    /// It was made here.
    New,
    /// It was changed here.
    Out,
    /// It was changed there, and here as well if it is lost.
    In { lost: bool },
    /// It was made there, or changed there after it was deleted here.
    Place,
    /// It was deleted there, and changed here if it is lost.
    DeleteHere { lost: bool },
    /// It was deleted here.
    DeleteThere,
}

/// What else is known of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past<'p> {
    /// How it was when it was last in step.
    pub(super) base: Option<&'p Base>,
    /// Whether both sides are known to speak of the same task, without a base.
    pub(super) same: bool,
    /// Whether it was in step at some time, without a base.
    pub(super) once: bool,
    /// Whether it was written here from there a moment ago.
    pub(super) late: bool,
}

/// What is to be done about a task with these two states.
pub(super) fn decide(here: Option<&Document>, there: Option<&Document>, past: Past<'_>) -> Step {
    match (here, there, past.base) {
        (None, None, _) => Step::Forget,
        (Some(here), Some(there), _) if here.bytes == there.bytes => Step::Same,
        (Some(_), Some(_), None) if past.same => Step::In { lost: true },
        (Some(_), None, None) if past.once => Step::DeleteHere { lost: false },
        (Some(_), _, None) => Step::New,
        (Some(here), Some(there), Some(base)) => {
            let (mine, theirs) = (!base.is(&here.bytes), there.revision.0 != base.revision);
            match (mine, theirs) {
                (true, false) if past.late && takes_away(base, here) => Step::In { lost: true },
                (true, false) => Step::Out,
                (lost, _) => Step::In { lost },
            }
        }
        (Some(here), None, Some(base)) => Step::DeleteHere { lost: !base.is(&here.bytes) },
        (None, Some(there), Some(base)) if there.revision.0 == base.revision => Step::DeleteThere,
        (None, Some(_), _) => Step::Place,
    }
}

/// Whether a change takes a task from somebody who has it. Right after it was written here that is a
/// write by one who had not seen so.
fn takes_away(base: &Base, here: &Document) -> bool {
    let owner = Task::read(&here.bytes).ok().and_then(|task| Some(task.owner()?.into_owned()));
    let had = base.owner.as_deref().filter(|owner| !owner.is_empty());
    had.is_some() && had != owner.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brigade_core::store::Revision;

    fn task(text: &str, revision: u64) -> Document {
        Document { bytes: text.as_bytes().to_vec(), revision: Revision(revision) }
    }

    #[test]
    fn what_is_done_about_a_task() {
        let (old, mine, theirs) = (task("{}", 1), task(r#"{"m":1}"#, 1), task(r#"{"t":1}"#, 2));
        let base = Base::of(&old.bytes, old.revision);
        let known = Past { base: Some(&base), ..Past::default() };
        let once = Past { once: true, same: true, ..Past::default() };
        let none = Past::default();
        let check = |here: Option<&Document>, there: Option<&Document>, past, expected| {
            assert_eq!(decide(here, there, past), expected, "{here:?} {there:?} {past:?}");
        };
        check(None, None, known, Step::Forget);
        check(Some(&old), Some(&old), none, Step::Same);
        check(Some(&mine), Some(&old), known, Step::Out);
        check(Some(&old), Some(&theirs), known, Step::In { lost: false });
        check(Some(&mine), Some(&theirs), known, Step::In { lost: true });
        check(Some(&mine), Some(&theirs), once, Step::In { lost: true });
        check(Some(&mine), Some(&theirs), none, Step::New);
        check(Some(&mine), None, none, Step::New);
        check(Some(&mine), None, once, Step::DeleteHere { lost: false });
        check(Some(&mine), None, known, Step::DeleteHere { lost: true });
        check(Some(&old), None, known, Step::DeleteHere { lost: false });
        check(None, Some(&old), known, Step::DeleteThere);
        check(None, Some(&theirs), known, Step::Place);
        check(None, Some(&theirs), none, Step::Place);
    }

    #[test]
    fn a_late_write_takes_nothing_away() {
        let bobs = task(r#"{"owner":"bob"}"#, 7);
        let alices = task(r#"{"owner":"alice"}"#, 1);
        let base = Base::of(&bobs.bytes, bobs.revision);
        let past = |late| Past { base: Some(&base), late, ..Past::default() };
        assert_eq!(decide(Some(&alices), Some(&bobs), past(true)), Step::In { lost: true });
        assert_eq!(decide(Some(&alices), Some(&bobs), past(false)), Step::Out);
        let done = task(r#"{"owner":"bob","status":"completed"}"#, 1);
        assert_eq!(decide(Some(&done), Some(&bobs), past(true)), Step::Out);
    }
}
