/**
 * Records what 16 clients see of two API servers over three members of etcd under faults at random, and has each round checked: of members, which are killed, paused,
 * cut off from the network in two ways or have a full disk, one or two at a time; of the API servers, which are killed; and compactions. Checked are the histories of the
 * clients, by porcupine, the events of a watch at each server, and the longest time of a request. Set SKIFF_ROUNDS for another number of rounds than 5, and
 * SKIFF_FUZZ_SEED to choose the same faults and operations again. `run` builds the checker into WORK/bin.
 */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Chance } from '../../robustness/fuzz/chance.ts'
import { until } from '../../support/until.ts'
import { ask, longest, type Operation, runClient } from './clients.ts'
import { type Members, memberFaults, startMembers } from './members.ts'
import { type KilledServer, startServer } from './servers.ts'
import { faultsOf, follow } from './watchers.ts'

const { WORK = '', SKIFF_ROUNDS = '5', SKIFF_FUZZ_SEED = String(Date.now() % 1_000_000) } = process.env
const clients = 16
const keys = 12
const roundMs = 8000
const directory = fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'skiff-linearizability-'))
const counts = { operations: 0, unknown: 0, changes: 0, lists: 0 }
const faults: Record<string, number> = {}
const collection = '/api/v1/namespaces/default/configmaps'

interface World {
  readonly members: Members
  readonly servers: readonly KilledServer[]
}

/** Begins faults. @returns what ends them */
async function begin({ members, servers }: World, chance: Chance): Promise<(() => Promise<void> | void)[]> {
  const count = (kind: string) => {
    faults[kind] = (faults[kind] ?? 0) + 1
  }
  if (chance.once(3)) {
    count('compact')
    await members.compact()
  }
  if (chance.once(6)) {
    count('server')
    const server = chance.pick(servers)
    await server.kill()
    return [() => server.restart()]
  }
  const first = chance.int(members.urls.length)
  const chosen = chance.once(4) ? [first, (first + 1) % members.urls.length] : [first]
  if (chosen.length > 1) count('quorum')
  return Promise.all(
    chosen.map((at) => {
      const kind = chance.pick(memberFaults)
      count(kind)
      return members.fault(at, kind)
    }),
  )
}

/** One fault or two at a time until the signal aborts. Ended when it resolves. */
async function makeFaults(world: World, chance: Chance, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const ends = await begin(world, chance)
    // Now and then longer than a request waits.
    await sleep(chance.once(30) ? 12_000 : 300 + chance.int(1500))
    await Promise.all(ends.map((end) => end()))
    await sleep(chance.int(1000))
  }
}

/** Objects as a list has them, once the watches have shown an object that is created now. */
async function settled(server: KilledServer, marker: string, watches: readonly { readonly objects: ReadonlyMap<string, string> }[]) {
  const agent = new https.Agent({ ca: server.ca, cert: server.cert, key: server.key })
  await until('a write succeeds', async () => {
    const answer = await ask(agent, server.port, 'POST', collection, { metadata: { name: marker }, data: { value: marker } })
    return answer?.status === 201 || answer?.status === 409
  })
  await until('each watch has the last object', () => watches.every(({ objects }) => objects.has(marker)), { timeoutMs: 60_000 })
  const list = await ask(agent, server.port, 'GET', collection)
  agent.destroy()
  return new Map<string, string>(list?.json.items.map((item: { metadata: { name: string }; data: { value: string } }) => [item.metadata.name, item.data.value]))
}

function linearizable(number: number, history: readonly Operation[]): string {
  const file = path.join(WORK, `history-${number}.jsonl`)
  fs.writeFileSync(file, history.map((one) => `${JSON.stringify(one)}\n`).join(''))
  const { stdout, stderr, status } = spawnSync(path.join(WORK, 'bin/check'), [file], { encoding: 'utf8' })
  // WORK is removed with the cluster of the suite.
  if (status !== 0) fs.copyFileSync(file, path.join(os.tmpdir(), `skiff-history-${SKIFF_FUZZ_SEED}-${number}.jsonl`))
  return `${stdout}${stderr}`.trim()
}

/** @returns whether all is right */
async function round(number: number, world: World): Promise<boolean> {
  const seed = Number(SKIFF_FUZZ_SEED) + number
  const history: Operation[] = []
  const names = Array.from({ length: keys }, (_, i) => `r${number}-${i}`)
  const [load, faulty, watching] = [new AbortController(), new AbortController(), new AbortController()]
  const watches = world.servers.map((server) => follow(server, watching.signal))
  await until('the watches have begun', () => watches.every(({ watched }) => watched.listed.length > 0))
  const running = Array.from({ length: clients }, (_, id) => {
    const server = world.servers[id % world.servers.length] as KilledServer
    return runClient({ id, server, keys: names, chance: new Chance(seed * 100 + id), history }, load.signal)
  })
  const making = makeFaults(world, new Chance(seed), faulty.signal)
  await Promise.race([sleep(roundMs), Promise.all(running)])
  faulty.abort()
  await making
  await world.members.healthy()
  // What clients see afterwards must fit, too.
  await sleep(500)
  load.abort()
  await Promise.all(running)
  const watched = watches.map((one) => one.watched)
  const list = await settled(world.servers[0] as KilledServer, `r${number}-last`, watched)
  watching.abort()
  await Promise.all(watches.map(({ done }) => done))
  const wrong = watched.flatMap((one) => faultsOf(one, history, list))
  const verdict = linearizable(number, history)
  const unknown = history.filter(({ answer }) => answer === 'unknown').length
  counts.operations += history.length
  counts.unknown += unknown
  for (const one of watched) {
    counts.changes += one.changes.size
    counts.lists += one.listed.length
  }
  console.log(
    `round ${number}, seed ${seed}: ${history.length} operations, ${unknown} of unknown outcome: ${verdict}${wrong.map((one) => `\n  ${one}`).join('')}`,
  )
  return verdict === 'Ok' && wrong.length === 0
}

const members = await startMembers(directory)
let failed = 0
try {
  await members.healthy()
  // The second one takes the certificates that the first one makes.
  const servers = [await startServer(directory, 'a', members.urls)]
  servers.push(await startServer(directory, 'b', members.urls))
  for (let number = 0; number < Number(SKIFF_ROUNDS); number++) if (!(await round(number, { members, servers }))) failed++
  for (const server of servers) await server.kill()
} finally {
  members.stop()
  fs.rmSync(directory, { recursive: true, force: true })
}
console.log(`${JSON.stringify({ ...counts, longestMs: Math.round(longest.ms), faults })}, SKIFF_FUZZ_SEED=${SKIFF_FUZZ_SEED}`)
if (Object.keys(faults).length === 0 || counts.operations < 50 * Number(SKIFF_ROUNDS)) throw new Error('too little happened')
process.exit(failed > 0 ? 1 : 0)
