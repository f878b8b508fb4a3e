// A BullMQ worker that does nothing with its jobs; a job is finished when BullMQ has stored its result.
import { Worker } from 'bullmq';
import { finished, spec } from '../common/worker.mjs';

const connection = { host: '127.0.0.1', port: spec.port, maxRetriesPerRequest: null };
const worker = new Worker('bench', async () => 'ok', { connection, concurrency: spec.slots });
worker.on('completed', finished);
worker.on('error', error => console.error('worker:', error.message));
await worker.waitUntilReady();
process.send({ type: 'up' });
