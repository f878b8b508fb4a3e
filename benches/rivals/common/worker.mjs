// Shared by all worker processes: counting finished tasks, and ending with the driver.
let done = 0;
let target = -1;

export const spec = JSON.parse(process.argv[2]);

// Called once for each finished task.
export function finished() {
  if (++done === target) process.send({ type: 'reached' });
}

process.on('message', message => {
  if (message.type === 'count') {
    done = 0;
    target = message.target;
    process.send({ type: 'counting' });
  }
});
process.on('disconnect', () => process.exit(0));
