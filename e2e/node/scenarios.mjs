// Runs named scenarios with one SDK. A JSON document on standard input lists them; each result is a line of JSON on
// standard output. All run at once, each against an address of its own, so that waits cost no more than the longest.

import process from 'node:process';

// run plays every scenario of the list with the SDK: connect makes a client of a scenario, calls are what it may do.
export async function run({ connect, calls }) {
  let text = '';
  for await (const piece of process.stdin) text += piece;
  await Promise.all(JSON.parse(text).map(async (scenario) => {
    const result = await play(connect, calls, scenario);
    process.stdout.write(JSON.stringify({ name: scenario.name, ...result }) + '\n');
  }));
}

// add notes a piece of text that a stream has brought.
export function add(seen, piece) {
  if (seen.text === '' && piece !== '') seen.began?.();
  seen.text += piece;
}

async function play(connect, calls, scenario) {
  const start = performance.now();
  const seen = {}; // what a call saw before it failed
  const caller = new AbortController();
  const leave = () => { if (scenario.leave_ms) setTimeout(() => caller.abort(), scenario.leave_ms); };
  const options = { signal: caller.signal };
  if (scenario.leave_after_text) seen.began = leave; // the call says when its first text has come
  else leave();
  let result;
  try {
    const call = calls[scenario.call];
    if (!call) throw new Error(`there is no call ${scenario.call}`);
    Object.assign(seen, await call(connect(scenario), scenario, options, seen));
    result = { ok: true, ...seen };
  } catch (e) {
    result = { ok: false, ...seen, ...describe(e) };
  }
  delete result.began;
  return { ...result, elapsed_ms: Math.round(performance.now() - start) };
}

// describe says what a user of the SDK can know about an error. Its message is for people, so only errors of unknown
// classes bring it along.
function describe(e) {
  const known = {
    class: e.constructor.name, status: e.status, type: e.type ?? undefined, code: e.errorCode ?? e.code ?? undefined,
    request_id: e.requestID ?? undefined,
  };
  return known.status === undefined ? { ...known, message: String(e.message) } : known;
}
