//! Teams that Claude Code made, and the modes of files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::roster;
use brigade_core::store::Mark;
use brigade_testkit::house::{House, member, member_plan, team};
use brigade_wire::name::TaskId;
use brigade_wire::team::Team;

use crate::Files;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/claude-code");

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn teams_of_both_generations_are_found_and_joined() {
    Files::run(async |files| {
        for (version, file, name) in [
            ("2.1.50", "0041-teams__labtui__config.json", "labtui"),
            ("2.1.325", "0030-teams__session-e04d42a1__config.json", "session-e04d42a1"),
        ] {
            let bytes = fs::read(format!("{FIXTURES}/{version}/{file}")).unwrap();
            let dir = files.home.path().join("claude/teams").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("config.json"), &bytes).unwrap();
            let mut seat = files.house.seat("team-lead");
            seat.team = name.parse().unwrap();
            roster::join(&seat, &member("carol"), member_plan()).await.unwrap();
            let after = fs::read(dir.join("config.json")).unwrap();
            let (before, after) = (Team::read(&bytes).unwrap(), Team::read(&after).unwrap());
            assert!(after.member("carol").is_some());
            for was in before.members() {
                let is = after.member(&was.name().unwrap()).unwrap();
                assert_eq!(is.json(), was.json(), "{name}");
            }
        }
        let teams = files.house.store.teams().await.unwrap();
        let names: Vec<&str> = teams.iter().map(brigade_wire::name::TeamName::as_str).collect();
        assert_eq!(names, ["demo", "labtui", "session-e04d42a1"]);
    });
}

#[test]
fn own_files_are_private_and_native_ones_keep_their_mode() {
    Files::run(async |files| {
        let house = &files.house;
        house.say("alice", "bob", "one").await;
        fs::set_permissions(files.inbox("bob"), fs::Permissions::from_mode(0o640)).unwrap();
        house.say("alice", "bob", "two").await;
        let keys: Vec<_> = house.store.inbox(&team(), &member("bob")).await.unwrap();
        let keys: Vec<_> = keys.iter().map(|mail| mail.key).collect();
        brigade_core::mail::mark(&house.seat("bob"), &keys, Mark::Read).await.unwrap();
        assert_eq!(mode(&files.inbox("bob")), 0o640);
        let mut todo = vec![files.home.path().join("state/brigade")];
        let mut seen = 0;
        while let Some(path) = todo.pop() {
            seen += 1;
            if path.is_dir() {
                assert_eq!(mode(&path), 0o700, "{}", path.display());
                todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
        assert!(seen > 8, "{seen}");
    });
}

#[test]
fn numbers_go_on_from_what_claude_code_gave() {
    Files::run(async |files| {
        let house = &files.house;
        let lead = house.seat("team-lead");
        let plan = TaskPlan { subject: "ours".into(), ..TaskPlan::default() };
        let native = |id: u64| {
            format!(
                "{{\n  \"id\": \"{id}\",\n  \"subject\": \"theirs\",\n  \"description\": \"d\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": []\n}}"
            )
        };
        // A board with tasks and no mark yet.
        for id in [1, 2, 7] {
            fs::write(files.task(id), native(id)).unwrap();
        }
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 8);
        // Claude Code adds two, and deletes the last, which raises the mark.
        fs::write(files.task(9), native(9)).unwrap();
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 10);
        fs::write(files.task(0).with_file_name(".highwatermark"), "12").unwrap();
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 13);
        let mark = fs::read_to_string(files.task(0).with_file_name(".highwatermark")).unwrap();
        assert_eq!(mark, "13");
        assert!(!files.task(0).with_file_name(".lock.lock").exists());
    });
}

#[test]
fn a_watch_tells_what_claude_code_does() {
    Files::run(async |files| {
        let house = &files.house;
        let mut watch = files.anew().store.watch(&team()).await.unwrap();
        let entry = r#"[{"from":"team-lead","text":"native","timestamp":"2026-11-15T00:00:00.000Z","read":false}]"#;
        fs::write(files.inbox("bob"), entry).unwrap();
        fs::write(files.task(1), r#"{"id":"1","subject":"s","description":"d","status":"pending","blocks":[],"blockedBy":[]}"#).unwrap();
        let config = fs::read(files.config()).unwrap();
        let without = Team::read(&config).unwrap().without_member("alice").into_owned();
        fs::write(files.config(), without).unwrap();
        let mut told = std::collections::BTreeSet::new();
        while told.len() < 3 {
            let next = tokio::time::timeout(std::time::Duration::from_secs(5), watch.next()).await;
            let record = next.expect("told in time").unwrap();
            told.insert(match record.event {
                Event::Seen { to, .. } => format!("mail for {to}"),
                Event::Task { id, .. } => format!("task {id}"),
                Event::MemberLeft { name } => format!("{name} left"),
                other => format!("{other:?}"),
            });
        }
        let told: Vec<String> = told.into_iter().collect();
        assert_eq!(told, ["alice left", "mail for bob", "task 1"]);
        fs::remove_file(files.task(1)).unwrap();
        let next = tokio::time::timeout(std::time::Duration::from_secs(5), watch.next()).await;
        assert!(matches!(next.unwrap().unwrap().event, Event::TaskDeleted { id: 1 }));
        assert!(house.texts("bob").await.len() == 1);
    });
}

/// What killed processes leave is swept by those who come after.
#[test]
fn litter_is_swept() {
    Files::run(async |files| {
        let house: &House = &files.house;
        let plan = TaskPlan { subject: "ours".into(), ..TaskPlan::default() };
        board::add(&house.seat("team-lead"), &plan).await.unwrap();
        house.say("alice", "bob", "one").await;
        // No process has this number: the kernel's limit is below it.
        let litter = [
            files.inbox("bob").with_file_name("bob.json.tmp.brigade-99999999-1"),
            files.task(1).with_file_name("1.json.tmp.brigade-99999999-7"),
        ];
        // Claude Code's own, which may be at work.
        let theirs = files.inbox("bob").with_file_name("bob.json.tmp.0123abcd");
        for path in litter.iter().chain([&theirs]) {
            fs::write(path, "x").unwrap();
        }
        house.texts("bob").await;
        house.store.tasks(&team()).await.unwrap();
        assert_eq!(litter.each_ref().map(|path| path.exists()), [false, false]);
        assert!(theirs.exists());
        assert!(house.store.task(&team(), TaskId::new(1).unwrap()).await.unwrap().is_some());
    });
}

/// 2.1.50 writes a roster back that it read before we wrote, without a lock: who joined stays joined,
/// who left stays gone.
#[test]
fn an_old_roster_written_back_undoes_nothing() {
    Files::run(async |files| {
        let config = || fs::read(files.config()).unwrap();
        let has = |name: &str| Team::read(&config()).is_ok_and(|team| team.member(name).is_some());
        // The sign that another program writes this roster.
        let text = String::from_utf8(config()).unwrap();
        fs::write(files.config(), text.replace("\"a test\"", "\"theirs\"")).unwrap();
        for (name, presence) in [("carol", true), ("bob", false)] {
            let before = config();
            let (seat, member) = (files.house.seat("team-lead"), member(name));
            let changing = tokio::spawn(async move {
                if presence {
                    roster::join(&seat, &member, member_plan()).await.map(drop)
                } else {
                    roster::leave(&seat, &member).await.map(drop)
                }
            });
            while has(name) != presence {
                tokio::task::yield_now().await;
            }
            fs::write(files.config(), &before).unwrap();
            assert_eq!(has(name), !presence, "undone");
            changing.await.unwrap().unwrap();
            assert_eq!(has(name), presence, "{name}");
        }
    });
}
