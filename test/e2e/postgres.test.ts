/**
 * PostgreSQL from Debian's packages as a StatefulSet of three replicas, with a volume each, on a cluster of real nodes. One writer for each database records every
 * acknowledged commit, while faults hit pods, containers, nodes, agents and volumes at random: no acknowledged commit is ever lost. Each fault happens once;
 * `make soak` goes through 50 rounds.
 *   SKIFF_SOAK=1           50 rounds, each with any of the faults
 *   SKIFF_ROUNDS=…         so many rounds
 *   SKIFF_POSTGRES_SEED=…  another order, and other replicas (`random`: a new seed)
 */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { Chance } from '../robustness/fuzz/chance.ts'
import { PackagesMissing } from './support/debianImage.ts'
import { obstacleToCluster } from './support/localCluster.ts'
import { databaseImage } from './support/postgres/database.ts'
import { DatabaseCluster } from './support/postgres/databaseCluster.ts'
import { type Fault, faults } from './support/postgres/faults.ts'

const isSoak = process.env.SKIFF_SOAK === '1'
const rounds = Number(process.env.SKIFF_ROUNDS ?? (isSoak ? 50 : faults.length))
const roundsMs = isSoak ? rounds * 300_000 : 330_000
const skip = obstacleToCluster(true)
const replicas = 3
const { SKIFF_POSTGRES_SEED: wantedSeed = '1' } = process.env
const seed = wantedSeed === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wantedSeed)
let cluster: DatabaseCluster | undefined
let image = ''

after(async () => {
  await cluster?.end()
})

/** Each fault once in every so many rounds, in an order of chance. */
function plan(chance: Chance): Fault[] {
  const planned: Fault[] = []
  while (planned.length < rounds) {
    const left = [...faults]
    while (left.length > 0) planned.push(...left.splice(chance.int(left.length), 1))
  }
  return planned.slice(0, rounds)
}

async function round(databases: DatabaseCluster, fault: Fault, chance: Chance, t: TestContext): Promise<void> {
  const victim = chance.pick(databases.writers)
  const started = performance.now()
  await fault.inflict(databases, victim)
  await databases.recovered()
  await databases.assertNothingLost()
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  t.diagnostic(`${victim.name}: ${fault.name}: ${seconds} s, ${databases.writers.map(({ count }) => count).join(', ')} commits so far`)
}

/** @throws Error with the state of the cluster */
async function within<T>(what: string, databases: DatabaseCluster, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const state = await databases.local.kubectl(['get', 'nodes,pods,pvc,pv,volumeattachments,events', '-o', 'wide'])
    throw new Error(`${what}: ${(error as Error).message}\n${state.stdout}`, { cause: error })
  }
}

test('CTL-15 three databases of a StatefulSet start on volumes of their own, and commit', { skip, timeout: 250_000 }, async (t) => {
  try {
    image = await databaseImage()
  } catch (error) {
    if (error instanceof PackagesMissing) return t.skip(error.message)
    throw error
  }
  const databases = await DatabaseCluster.start('pg', replicas)
  cluster = databases
  await within('start', databases, () => databases.startDatabases(image))
  const claims = await databases.local.must(['get', 'pvc', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\\n"}{end}'])
  assert.deepEqual(
    claims.split('\n'),
    databases.writers.map(({ name }) => `data-${name} Bound`),
  )
  const places = await Promise.all(databases.writers.map(({ name }) => databases.nodeOf(name)))
  assert.deepEqual(places.sort(), databases.nodes)
})

test(`SDR-06 CTL-15 STO-12 STO-14 STO-15 no acknowledged commit is lost in ${rounds} rounds of faults`, { skip, timeout: roundsMs }, async (t) => {
  if (image === '') return t.skip("needs Debian's packages of PostgreSQL")
  const databases = cluster
  assert.ok(databases, 'the databases run')
  const chance = new Chance(seed)
  t.diagnostic(`SKIFF_POSTGRES_SEED=${seed}`)
  for (const fault of plan(chance)) await within(fault.name, databases, () => round(databases, fault, chance, t))
})

test('SDR-06 the check of acknowledged commits finds a row that was deleted', { skip, timeout: 60_000 }, async (t) => {
  if (image === '') return t.skip("needs Debian's packages of PostgreSQL")
  const writer = cluster?.writers[0]
  assert.ok(writer, 'the databases run')
  await writer.loseOne()
  await assert.rejects(writer.assertNothingLost(), /database-0 lost 1 of \d+ acknowledged commits/)
})
