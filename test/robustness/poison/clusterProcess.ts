/**
 * A cluster in a process of its own: API server with a port, controllers, scheduler and simulated nodes over an LMDB file. Its argument is
 * ClusterProcessOptions as JSON. Prints a line of JSON when it serves, and one for each line that it is sent: its longest turn since the last one.
 */
import { createInterface } from 'node:readline'
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import type { ClusterProcessOptions } from './killedCluster.ts'

const { path, nodes, apiServerArgs } = JSON.parse(process.argv[2] ?? '{}') as ClusterProcessOptions
const store = await openLmdbStore({ path, clock: realClock, log: noLog })
// Another seed for each life: uids must not repeat.
const cluster = await startCluster({ store, nodes, apiServerArgs, clock: 'real', seed: process.pid })
const served = await cluster.listen()
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`)
const turns = watchTurns()
const lines = createInterface({ input: process.stdin })
lines.on('line', () => say({ longestTurnMs: turns() }))
lines.on('close', async () => {
  await cluster.close()
  process.exit(0)
})
say(served)

/**
 * How long the longest turn of the event loop was: no longer than by the clock, which counts what others do on a machine that is shared, and no
 * longer than by the processor time, which counts what other threads of this process do.
 */
function watchTurns(): () => number {
  const everyMs = 5
  const usedMs = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  let longest = 0
  let before = { used: usedMs(), at: performance.now() }
  setInterval(() => {
    const now = { used: usedMs(), at: performance.now() }
    longest = Math.max(longest, Math.min(now.used - before.used, now.at - before.at))
    before = now
  }, everyMs).unref()
  return () => {
    const answer = longest
    longest = 0
    return answer
  }
}
