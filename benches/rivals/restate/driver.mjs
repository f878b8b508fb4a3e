// Measures Restate: one service, called through its ingress.
import { Pool } from 'undici';
import { PAYLOAD, WorkerProcess, drive, emit, meter, now, quantile, run, sleep, spec, timed } from '../common/driver.mjs';

const { scale, submitters } = spec;
const admin = new Pool(`http://127.0.0.1:${spec.ports.admin}`, { connections: 2 });
const ingress = new Pool(`http://127.0.0.1:${spec.ports.ingress}`, { connections: 256 });
const payload = JSON.stringify(PAYLOAD);

async function post(pool, path, body) {
  const reply = await pool.request({ path, method: 'POST', body, headers: { 'content-type': 'application/json' } });
  const text = await reply.body.text();
  if (reply.statusCode >= 300) throw new Error(`${path}: ${reply.statusCode} ${text}`);
  return text;
}

// Repeats a call until it succeeds, for at most a minute: the server and its partitions start in their own time.
async function until(call) {
  const began = now();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (now() - began > 60_000) throw error;
      await sleep(200);
    }
  }
}

const call = handler => post(ingress, `/Bench/${handler}`, payload);

run(async () => {
  const worker = new WorkerProcess('worker.mjs', { port: spec.ports.worker });
  await worker.next('up');
  await until(() => post(admin, '/deployments', JSON.stringify({ uri: `http://127.0.0.1:${spec.ports.worker}` })));
  await until(() => call('noop'));
  await drive(scale.warm_up, submitters, () => call('noop'));

  const through = await worker.count(scale.tasks);
  let submitting;
  const endToEnd = await drive(1, 1, async () => {
    submitting = await drive(scale.tasks, submitters, () => call('noop/send'));
    await through.reached;
  });
  emit('end_to_end_per_s', scale.tasks / endToEnd);

  // Restate has no paused queue: the tasks are submitted with a delay, so that all of them become due at one time.
  const drained = await worker.count(scale.tasks);
  const due = Math.round(Date.now() + submitting * 2_000 + 2_000);
  const send = () => call(`noop/send?delay=${Math.max(1, due - Date.now())}ms`);
  emit('submit_per_s', scale.tasks / (await drive(scale.tasks, submitters, send)));
  const left = due - Date.now();
  if (left < 0) throw new Error(`submitting took ${-left} ms more than planned`);
  await sleep(left);
  const used = meter({ server: spec.pids.server, worker: worker.pid, client: process.pid });
  const draining = await drive(1, 1, () => drained.reached);
  used(scale.tasks);
  emit('drain_per_s', scale.tasks / draining);

  const idle = await timed(scale.idle, () => call('noop'));
  emit('idle_p50_ms', quantile(idle, 0.5));
  emit('idle_p99_ms', quantile(idle, 0.99));

  emit('chain_p50_ms', quantile(await timed(scale.chains, () => call('chain')), 0.5));
  emit('chains_per_s', scale.chains_at_once / (await drive(scale.chains_at_once, submitters, () => call('chain'))));

  // The signal is sent 20 ms after the handler has begun to wait.
  const signals = [];
  const waits = [];
  for (let n = 0; n < scale.signals; n++) {
    const began = now();
    const published = worker.next(`waits-${n}`);
    const result = post(ingress, '/Bench/wait', JSON.stringify(String(n)));
    const { id } = await published;
    const waiting = now() - began;
    await sleep(20);
    const signalled = now();
    const resolved = post(ingress, `/restate/awakeables/${id}/resolve`, payload);
    await result;
    const resumed = now() - signalled;
    await resolved;
    signals.push(resumed);
    waits.push(waiting + resumed);
  }
  emit('signal_p50_ms', quantile(signals, 0.5));
  emit('wait_p50_ms', quantile(waits, 0.5));

  emit('fan_p50_ms', quantile(await timed(scale.fans, () => call('fan')), 0.5));
  emit('groups_per_s', scale.groups / (await drive(scale.groups, submitters, () => call('fan'))));
  await worker.stop();
});
