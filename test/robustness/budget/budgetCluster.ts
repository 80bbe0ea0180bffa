/**
 * The cluster whose time and memory are measured, in a process of its own: API server with its security, all controllers, scheduler and two simulated
 * nodes, on the memory store. Its argument is the file of the tokens. Prints a line of JSON when it serves, and one for each line that it is sent:
 * `turn` asks for the longest turn of the event loop since the last time, `memory` for what is held once all garbage is gone. Ends when its standard
 * input does.
 */
import { createInterface } from 'node:readline'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { LongestTurn } from './longestTurn.ts'

const collections = 4
const collectGarbage = globalThis.gc ?? (() => assertExposed())
const cluster = await startCluster({
  clock: 'real',
  nodes: 2,
  apiServerArgs: ['--authorization-mode=Node,RBAC', `--token-auth-file=${process.argv[2]}`, '--enable-priority-and-fairness=true'],
})
const { url, ca, token } = await cluster.listen()
const longest = new LongestTurn()
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`)
const lines = createInterface({ input: process.stdin })
lines.on('line', async (line) => {
  if (line === 'turn') return say({ turnMs: longest.take() })
  await cluster.compact()
  // Buffers are freed a turn after the objects that held them.
  for (let round = 0; round < collections; round++) {
    collectGarbage()
    await realClock.turn()
  }
  const { heapUsed, external } = process.memoryUsage()
  longest.take()
  say({ heldBytes: heapUsed + external })
})
lines.on('close', async () => {
  longest.stop()
  await cluster.close()
})
say({ url, ca, token })

function assertExposed(): never {
  throw new Error('the process was started without --expose-gc')
}
