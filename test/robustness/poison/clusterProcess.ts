/**
 * A cluster in a process of its own: API server with a port, controllers, scheduler and simulated nodes over an LMDB file. Its argument is
 * ClusterProcessOptions as JSON. Prints a line of JSON when it serves, and one for each line that it is sent: its longest turn since the last one.
 */
import { createInterface } from 'node:readline'
import { noLog } from '#base/log'
import { localPathProvisioner } from '#controllers/localPath/localPathProvisioner'
import { openLmdbStore } from '#store/drivers/lmdb'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { LongestTurn } from '../budget/longestTurn.ts'
import type { ClusterProcessOptions } from './killedCluster.ts'

const { path, nodes, apiServerArgs } = JSON.parse(process.argv[2] ?? '{}') as ClusterProcessOptions
const store = await openLmdbStore({ path, clock: realClock, log: noLog })
// Another seed for each life: uids must not repeat.
const cluster = await startCluster({ store, nodes, apiServerArgs, clock: 'real', seed: process.pid, controllers: ['*', localPathProvisioner.name] })
const served = await cluster.listen()
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`)
const longest = new LongestTurn()
const lines = createInterface({ input: process.stdin })
lines.on('line', () => say({ longestTurnMs: longest.take() }))
lines.on('close', async () => {
  longest.stop()
  await cluster.close()
  process.exit(0)
})
say(served)
