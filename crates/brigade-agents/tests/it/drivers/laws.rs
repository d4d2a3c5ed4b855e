//! What holds for any driver, whatever the bytes.

use brigade_agents::driver::{
    AGENTS, Access, AskId, Driver, Invocation, Note, Output, Verdict, agent,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::play::{Program, play};
use super::transcript::Replayed;
use super::{Scenario, launch, scenarios};

/// A replayed program whose lines reach the driver in other pieces.
struct Cut<F> {
    replayed: Replayed,
    how: F,
}

impl<F: FnMut(Vec<u8>) -> Vec<Vec<u8>>> Program for Cut<F> {
    fn line(&mut self) -> Vec<u8> {
        self.replayed.line()
    }
    fn write(&mut self, bytes: &[u8]) {
        self.replayed.write(bytes);
    }
    fn start(&mut self, invocation: Invocation) {
        self.replayed.start(invocation);
    }
    fn end(&mut self) {
        self.replayed.end();
    }
    fn familiar(&self, story: String) -> String {
        self.replayed.familiar(story)
    }
    fn cut(&mut self, line: Vec<u8>) -> Vec<Vec<u8>> {
        (self.how)(line)
    }
}

fn whole(scenario: &Scenario) -> String {
    play(scenario, &mut Replayed::of(scenario))
}

fn with(scenario: &Scenario, how: impl FnMut(Vec<u8>) -> Vec<Vec<u8>>) -> String {
    play(scenario, &mut Cut { replayed: Replayed::of(scenario), how })
}

fn any_scenario() -> impl Strategy<Value = &'static Scenario> {
    any::<Index>().prop_map(|index| *index.get(&scenarios().collect::<Vec<_>>()))
}

/// A driver after the whole of a scenario, with every line of the transcript for it once more.
fn lines(scenario: &Scenario) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    with(scenario, |line| {
        lines.push(line.clone());
        vec![line]
    });
    lines
}

fn drain(driver: &mut dyn Driver) {
    while let Some(output) = driver.next() {
        if let Output::Write(bytes) = output {
            let line: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert!(line.is_object() && bytes.iter().filter(|byte| **byte == b'\n').count() == 1);
        }
    }
}

fn call(driver: &mut dyn Driver, which: u8) {
    let note = Note(u64::from(which));
    match which % 8 {
        0 => driver.prompt(note, "a\nb\u{2028}c"),
        1 => driver.steer(note, "more"),
        2 => driver.answer(AskId(u64::from(which / 8)), &Verdict::Allow),
        3 => driver.answer(AskId(u64::from(which / 8)), &Verdict::Deny("no".to_owned())),
        4 => driver.interrupt(),
        5 => driver.set_access(Access::ReadOnly),
        6 => driver.set_access(Access::Full),
        _ => driver.start(),
    }
}

#[test]
fn one_byte_at_a_time_is_the_same() {
    for scenario in scenarios() {
        let story = with(scenario, |line| line.chunks(1).map(<[u8]>::to_vec).collect());
        assert_eq!(story, whole(scenario));
    }
}

#[test]
fn what_is_no_json_is_passed_over() {
    let long = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
    for scenario in scenarios() {
        let mut first = true;
        let story = with(scenario, |line| {
            let mut pieces =
                vec![b"warning: \xff{\"id\":\n\n[1]\nnull\n{}\n{\"id\":1}\n".to_vec(), line];
            if std::mem::take(&mut first) {
                pieces.insert(0, long.clone());
            }
            pieces
        });
        assert_eq!(story, whole(scenario));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_line_cut_anywhere_is_the_same(
        scenario in any_scenario(),
        cuts in prop::collection::vec(any::<Index>(), 1..40),
    ) {
        let mut cuts = cuts.into_iter().cycle();
        let story = with(scenario, |line| {
            let (first, second) = line.split_at(cuts.next().unwrap().index(line.len()));
            vec![first.to_vec(), second.to_vec()]
        });
        prop_assert_eq!(story, whole(scenario));
    }

    /// Real lines, mutilated and out of order, between calls at the wrong time.
    #[test]
    fn nothing_panics(
        scenario in any_scenario(),
        moves in prop::collection::vec((any::<Index>(), any::<Index>(), any::<u8>(), any::<u8>()), 0..60),
    ) {
        let lines = lines(scenario);
        let mut driver = (agent(scenario.agent).unwrap().agent.driver)(launch(scenario, None));
        driver.start();
        for (which, place, byte, what) in moves {
            if what < 120 {
                call(&mut *driver, what);
            } else {
                let mut line = which.get(&lines).clone();
                if what > 180 {
                    let place = place.index(line.len());
                    line[place] = byte;
                }
                driver.hear(&line);
            }
            drain(&mut *driver);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        which in any::<Index>(),
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<u8>()), 0..20),
    ) {
        let scenario = scenarios().next().unwrap();
        let mut driver = (which.get(AGENTS).driver)(launch(scenario, None));
        driver.start();
        for (bytes, what) in pieces {
            driver.hear(&bytes);
            call(&mut *driver, what);
            drain(&mut *driver);
        }
    }
}

#[test]
fn any_command_that_speaks_acp_is_an_agent() {
    let choice = agent("acp:goose acp --quiet").unwrap();
    assert_eq!((choice.agent.name, choice.program.as_str()), ("acp", "goose"));
    assert_eq!(choice.arguments, ["acp", "--quiet"]);
    assert!(agent("acp:").is_none() && agent("nobody").is_none());
    let mut names: Vec<_> = AGENTS.iter().map(|agent| agent.name).collect();
    names.dedup();
    assert_eq!(names.len(), AGENTS.len());
    for row in AGENTS {
        assert_eq!(agent(row.name).unwrap().program, row.program);
    }
}
