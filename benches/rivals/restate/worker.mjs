// The handlers that Restate calls: nothing, ten steps, a fan-out with a join, and a wait for a signal.
import http2 from 'node:http2';
import { finished, spec } from '../common/worker.mjs';

// Node 20 lacks this function, and the SDK calls it.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new this((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
};
const restate = await import('@restatedev/restate-sdk');

const Bench = { name: 'Bench' };
const bench = restate.service({
  name: 'Bench',
  handlers: {
    noop: async () => {
      finished();
      return 'ok';
    },
    chain: async ctx => {
      let value = 0;
      for (let step = 0; step < 10; step++) value = await ctx.run(`s${step}`, async () => value + 1);
      return value;
    },
    fan: async (ctx, payload) => {
      const calls = Array.from({ length: 100 }, () => ctx.serviceClient(Bench).noop(payload));
      return (await restate.RestatePromise.all(calls)).length;
    },
    wait: async (ctx, key) => {
      const { id, promise } = ctx.awakeable();
      await ctx.run('publish', async () => {
        process.send({ type: `waits-${key}`, id });
      });
      return await promise;
    },
  },
});

const endpoint = restate.createEndpointHandler({ services: [bench], logger: () => {} });
http2.createServer(endpoint).listen(spec.port, '127.0.0.1', () => process.send({ type: 'up' }));
