// The native protocol in Node: our own script, not Claude Code. The script changes an inbox as Claude Code 2.1.325
// does. It takes <inbox>.lock with proper-lockfile (ten retries), reads the inbox, changes it, writes a temporary
// file, renames it, and unlocks. A reader removes the messages that it read. For a fair comparison, the work under
// the lock is synchronous, because that is the fastest way in Node.
//
//   node native.js <node_modules> <root> <team> <name> <reader>
//
// The commands on standard input are documented at the top of src/main.rs.
'use strict';
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');
const readline = require('readline');
const [modules, root, team, name, reader] = process.argv.slice(2);
const lockfile = require(`${modules}/proper-lockfile`);

const inbox = (of) => path.join(root, 'claude/teams', team, 'inboxes', `${of}.json`);
const tasks = path.join(root, 'claude/tasks', team);
const retries = { retries: 10, minTimeout: 5, maxTimeout: 100, factor: 2 };

const say = (line) => fs.writeSync(1, `${line.replace(/\n/g, ' ')}\n`);
const now = () => process.hrtime.bigint();
const since = (start) => (now() - start) / 1000n;
const load = (file) => { try { return JSON.parse(fs.readFileSync(file, 'utf8')); } catch { return []; } };

function replace(file, value) {
  const temp = `${file}.tmp.${crypto.randomBytes(4).toString('hex')}`;
  fs.writeFileSync(temp, JSON.stringify(value, null, 2));
  fs.renameSync(temp, file);
}

async function locked(file, lockfilePath, work) {
  const unlock = await lockfile.lock(file, { lockfilePath, realpath: false, retries });
  try { return work(); } finally { await unlock(); }
}

async function send(number) {
  const file = inbox(reader);
  await locked(file, `${file}.lock`, () => {
    // Claude Code treats an unreadable inbox as empty.
    const messages = load(file);
    messages.push({
      from: name, text: `${name}/${number} `.padEnd(500, '.'), timestamp: new Date().toISOString(),
      color: 'blue', read: false, msgV: 1, msg_id: crypto.randomUUID(), type: 'message',
    });
    replace(file, messages);
  });
}

const unread = () => load(inbox(name)).filter((message) => !message.read).length;

async function mark() {
  const file = inbox(name);
  return locked(file, `${file}.lock`, () => {
    const messages = load(file);
    replace(file, messages.filter((message) => message.read));
    return messages.length;
  });
}

async function add(number) {
  const lock = path.join(tasks, '.lock');
  return locked(lock, `${lock}.lock`, () => {
    const ids = fs.readdirSync(tasks).map((file) => parseInt(file, 10)).filter(Number.isInteger);
    const id = String(Math.max(0, ...ids) + 1);
    fs.writeFileSync(path.join(tasks, `${id}.json`), JSON.stringify({
      id, subject: `task ${number}`, description: `task/${number} `.padEnd(500, '.'),
      status: 'pending', blocks: [], blockedBy: [],
    }, null, 2));
    return id;
  });
}

async function claim(id) {
  const file = path.join(tasks, `${id}.json`);
  return locked(file, `${file}.lock`, () => {
    const task = JSON.parse(fs.readFileSync(file, 'utf8'));
    if (task.owner || task.status !== 'pending') return false;
    fs.writeFileSync(file, JSON.stringify({ ...task, owner: name, status: 'in_progress' }, null, 2));
    return true;
  });
}

async function run([what, first, count]) {
  const start = now();
  if (what === 'send') {
    await send(first);
    say(`sent ${first} ${since(start)}`);
  } else if (what === 'burst') {
    for (let number = Number(first); number < Number(first) + Number(count); number += 1) {
      try { await send(number); say(`acked ${number}`); } catch (error) { say(`refused ${number} ${error}`); }
    }
    say(`end ${since(start)}`);
  } else if (what === 'read') {
    say(`read ${unread()} ${since(start)}`);
  } else if (what === 'mark') {
    say(`marked ${await mark()} ${since(start)}`);
  } else if (what === 'add') {
    say(`added ${await add(first)} ${since(start)}`);
  } else if (what === 'claim') {
    const got = await claim(first);
    say(`${got ? 'claimed' : 'taken'} ${first} ${since(start)}`);
  } else if (what === 'claims') {
    for (let id = 1; id <= Number(first); id += 1) {
      try { if (await claim(id)) say(`claimed ${id}`); } catch (error) { say(`failed ${id} ${error}`); }
    }
    say(`end ${since(start)}`);
  } else {
    throw new Error(`what is ${what}?`);
  }
}

(async () => {
  say('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) await run(line.split(' '));
})().catch((error) => { console.error(error); process.exit(1); });
