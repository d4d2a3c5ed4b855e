// Writes to an inbox as Claude Code 2.1.325 does. Takes <inbox>.lock with proper-lockfile (ten retries), reads the
// inbox, adds a message, writes a temporary file, renames it, and unlocks. For a fair comparison, the work under
// the lock is synchronous, because that is the fastest way in Node.
//
//   node peer.js <node_modules> append <inbox> <name> <seconds>
//   node peer.js <node_modules> hold <inbox> <name>
//   node peer.js <node_modules> read <inbox> <name> <seconds>
'use strict';
const fs = require('fs');
const crypto = require('crypto');
const [modules, what, inbox, name, seconds] = process.argv.slice(2);
const lockfile = require(`${modules}/proper-lockfile`);

const options = {
  lockfilePath: `${inbox}.lock`,
  realpath: false,
  retries: { retries: 10, minTimeout: 5, maxTimeout: 100, factor: 2 },
  // By default, a process that loses its lock exits. A stopped process must resume and write.
  onCompromised: () => {},
};

function entry(number) {
  return {
    from: name, text: `${name}/${number} `.padEnd(500, '.'), timestamp: new Date().toISOString(),
    color: 'blue', read: false, msgV: 1, msg_id: crypto.randomUUID(), type: 'message',
  };
}

function change(number, between) {
  let messages = [];
  // Claude Code treats an unreadable inbox as empty.
  try { messages = JSON.parse(fs.readFileSync(inbox, 'utf8')); } catch {}
  between();
  const message = entry(number);
  messages.push(message);
  const temp = `${inbox}.tmp.${crypto.randomBytes(4).toString('hex')}`;
  fs.writeFileSync(temp, JSON.stringify(messages, null, 2));
  fs.renameSync(temp, inbox);
  return message.msg_id;
}

function say(line) {
  fs.writeSync(1, `${line}\n`);
}

async function append() {
  const end = Date.now() + Number(seconds) * 1000;
  for (let number = 0; Date.now() < end; number += 1) {
    let unlock;
    try {
      unlock = await lockfile.lock(inbox, options);
    } catch {
      say(`refused ${number}`);
      continue;
    }
    const id = change(number, () => {});
    try { await unlock(); } catch {}
    say(`acked ${number} ${id}`);
  }
}

// Takes the lock, reads the inbox, prints "read", and writes half a second later. If the process is stopped in
// between, it writes an outdated copy.
async function hold() {
  const unlock = await lockfile.lock(inbox, options);
  const id = change(0, () => {
    say('read');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  });
  try { await unlock(); } catch {}
  say(`acked 0 ${id}`);
}

// Reads without a lock in a loop, as Claude Code's pollers do.
async function read() {
  const end = Date.now() + Number(seconds) * 1000;
  let [reads, torn] = [0, 0];
  while (Date.now() < end) {
    const text = await fs.promises.readFile(inbox, 'utf8');
    reads += 1;
    try { JSON.parse(text); } catch { torn += 1; }
  }
  say(`parsed ${reads} ${torn}`);
}

({ append, hold, read })[what]().catch((error) => { console.error(error); process.exit(1); });
