// Shared by all drivers: settings, worker process, clocks and figures.
import { fork } from 'node:child_process';
import fs from 'node:fs';

// The settings that the bench passes as one JSON argument.
export const spec = JSON.parse(process.argv[2]);

// Milliseconds of a monotonic clock.
export const now = () => Number(process.hrtime.bigint()) / 1e6;

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// 256 bytes as a JSON string.
export const PAYLOAD = 'a'.repeat(254);

// Prints one figure.
export function emit(figure, value) {
  console.log(JSON.stringify({ figure, value }));
}

// The value within which this share of the times stays.
export function quantile(times, share) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

// Runs `work` `count` times, `atOnce` at a time; returns how long all of it took in seconds.
export async function drive(count, atOnce, work) {
  const began = now();
  let next = 0;
  const slot = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, slot));
  return (now() - began) / 1e3;
}

// The time of each of `count` runs, one after the other, in milliseconds; the first tenth is warm-up.
export async function timed(count, work) {
  const warmUp = Math.ceil(count / 10);
  const times = [];
  for (let n = 0; n < warmUp + count; n++) {
    const began = now();
    await work(n);
    if (n >= warmUp) times.push(now() - began);
  }
  return times;
}

// CPU seconds of a process so far; Linux counts in hundredths.
function cpuSeconds(pid) {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

// Reads the CPU time of the named processes. The returned function emits the time used since then, per 1_000 tasks.
export function meter(pids) {
  const read = () => Object.entries(pids).map(([name, pid]) => [name, cpuSeconds(pid)]);
  const before = Object.fromEntries(read());
  return tasks => {
    let total = 0;
    for (const [name, seconds] of read()) {
      const each = ((seconds - before[name]) * 1e3) / tasks;
      total += each;
      emit(`cpu_${name}`, each);
    }
    emit('cpu_total', total);
  };
}

// A worker process that replies to messages.
export class WorkerProcess {
  #waiting = new Map();

  constructor(file, argument) {
    this.child = fork(file, [JSON.stringify(argument)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.child.on('message', message => this.#waiting.get(message.type)?.shift()?.(message));
    this.child.on('exit', code => {
      if (!this.stopping) {
        console.error(`the worker ended with ${code}`);
        process.exit(1);
      }
    });
  }

  get pid() {
    return this.child.pid;
  }

  // The next message of this type.
  next(type) {
    return new Promise(resolve => {
      if (!this.#waiting.has(type)) this.#waiting.set(type, []);
      this.#waiting.get(type).push(resolve);
    });
  }

  // Starts counting from zero; the returned promise resolves when this many tasks are done.
  async count(target) {
    const reached = this.next('reached');
    const counting = this.next('counting');
    this.child.send({ type: 'count', target });
    await counting;
    return { reached };
  }

  // Ends the process and waits until it has ended, so that its CPU time counts as this process's.
  async stop() {
    this.stopping = true;
    const ended = new Promise(resolve => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }
}

// Runs a driver: it ends when the bench closes its input, whatever it is doing.
export async function run(driver) {
  process.stdin.on('end', () => process.exit(1)).resume();
  try {
    await driver();
    process.exit(0);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
}
