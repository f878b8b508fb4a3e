// Measures BullMQ: a queue, a flow of ten levels, and a parent with a hundred children. It has no signals.
import { FlowProducer, Queue, QueueEvents } from 'bullmq';
import { PAYLOAD, WorkerProcess, drive, emit, meter, quantile, run, sleep, spec, timed } from '../common/driver.mjs';

const { scale, submitters } = spec;
// 256 bytes of JSON, like the string of the others.
const data = { p: PAYLOAD.slice(6) };
const job = { name: 'noop', queueName: 'bench', data };

function chain() {
  let tree = { ...job };
  for (let level = 1; level < 10; level++) tree = { ...job, children: [tree] };
  return tree;
}

const fan = () => ({ ...job, children: Array.from({ length: 100 }, () => ({ ...job })) });

run(async () => {
  const connection = { host: '127.0.0.1', port: spec.port, maxRetriesPerRequest: null };
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();

  const worker = new WorkerProcess('worker.mjs', { port: spec.port, slots: spec.slots });
  await worker.next('up');
  const submit = () => queue.add('noop', data);

  const warm = await worker.count(scale.warm_up);
  await drive(scale.warm_up, submitters, submit);
  await warm.reached;

  await queue.pause();
  await sleep(200);
  const drained = await worker.count(scale.tasks);
  emit('submit_per_s', scale.tasks / (await drive(scale.tasks, submitters, submit)));
  await sleep(200);
  const used = meter({ store: spec.pids.store, worker: worker.pid, client: process.pid });
  const draining = await drive(1, 1, async () => {
    await queue.resume();
    await drained.reached;
  });
  used(scale.tasks);
  emit('drain_per_s', scale.tasks / draining);

  const through = await worker.count(scale.tasks);
  const endToEnd = await drive(1, 1, async () => {
    await drive(scale.tasks, submitters, submit);
    await through.reached;
  });
  emit('end_to_end_per_s', scale.tasks / endToEnd);

  // Results arrive as events. They are read from here on only, because the code above does not need them.
  const events = new QueueEvents('bench', { connection });
  const flows = new FlowProducer({ connection });
  for (const emitter of [queue, events, flows]) emitter.setMaxListeners(0);
  await events.waitUntilReady();
  const result = async () => (await submit()).waitUntilFinished(events);
  const flow = async tree => (await flows.add(tree)).job.waitUntilFinished(events);

  const idle = await timed(scale.idle, result);
  emit('idle_p50_ms', quantile(idle, 0.5));
  emit('idle_p99_ms', quantile(idle, 0.99));

  emit('chain_p50_ms', quantile(await timed(scale.chains, () => flow(chain())), 0.5));
  emit('chains_per_s', scale.chains_at_once / (await drive(scale.chains_at_once, submitters, () => flow(chain()))));

  emit('fan_p50_ms', quantile(await timed(scale.fans, () => flow(fan())), 0.5));
  emit('groups_per_s', scale.groups / (await drive(scale.groups, submitters, () => flow(fan()))));
  await worker.stop();
});
