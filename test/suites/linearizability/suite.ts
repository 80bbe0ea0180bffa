/**
 * Records what 16 clients see of two API servers over three members of etcd while the members are killed, paused and cut off, and has each round checked. Set
 * SKIFF_ROUNDS for another number of rounds than 5, and SKIFF_FUZZ_SEED to choose the same faults and operations again. `run` builds the checker into WORK/bin.
 */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startApiServer } from '../../e2e/support/apiServerProcess.ts'
import { Chance } from '../../robustness/fuzz/chance.ts'
import { type Operation, runClient, type Server } from './clients.ts'
import { type Members, startMembers } from './members.ts'

const { WORK = '', SKIFF_ROUNDS = '5', SKIFF_FUZZ_SEED = String(Date.now() % 1_000_000) } = process.env
const clients = 16
const keys = 12
const roundMs = 8000
const directory = fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'skiff-linearizability-'))
const counts = { operations: 0, unknown: 0, faults: 0 }

async function startServer(name: string, urls: readonly string[]) {
  const data = path.join(directory, name)
  const { port, end } = await startApiServer([`--data-dir=${data}`, `--cert-dir=${directory}/pki`, `--etcd-servers=${urls.join(',')}`])
  const file = (part: string) => fs.readFileSync(path.join(directory, 'pki', part), 'utf8')
  return { port, end, ca: file('ca.crt'), cert: file('admin.crt'), key: file('admin.key') }
}

/** Faults of one random member at a time, and now and then of a second one, until the signal aborts. Ended when it resolves. */
async function makeFaults(members: Members, chance: Chance, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const first = chance.int(members.urls.length)
    const chosen = chance.once(4) ? [first, (first + 1) % members.urls.length] : [first]
    const ends = await Promise.all(chosen.map((at) => members.fault(at, chance.pick(['kill', 'pause', 'cut'] as const))))
    counts.faults += chosen.length
    await sleep(300 + chance.int(1500))
    for (const end of ends) end()
    await sleep(chance.int(1000))
  }
}

async function round(number: number, servers: readonly Server[], members: Members): Promise<number> {
  const seed = Number(SKIFF_FUZZ_SEED) + number
  const history: Operation[] = []
  const names = Array.from({ length: keys }, (_, i) => `r${number}-${i}`)
  const [load, faults] = [new AbortController(), new AbortController()]
  const running = Array.from({ length: clients }, (_, id) => {
    const server = servers[id % servers.length] as Server
    return runClient({ id, server, keys: names, chance: new Chance(seed * 100 + id), history }, load.signal)
  })
  const faulty = makeFaults(members, new Chance(seed), faults.signal)
  await sleep(roundMs)
  faults.abort()
  await faulty
  await members.healthy()
  // What clients see afterwards must fit, too.
  await sleep(500)
  load.abort()
  await Promise.all(running)
  const file = path.join(WORK, `history-${number}.jsonl`)
  fs.writeFileSync(file, history.map((one) => `${JSON.stringify(one)}\n`).join(''))
  const { status, stdout, stderr } = spawnSync(path.join(WORK, 'bin/check'), [file], { encoding: 'utf8' })
  const unknown = history.filter(({ answer }) => answer === 'unknown').length
  counts.operations += history.length
  counts.unknown += unknown
  console.log(`round ${number}, seed ${seed}: ${history.length} operations, ${unknown} of unknown outcome: ${stdout.trim()}${stderr}`)
  return status ?? 1
}

const members = await startMembers(directory)
let failed = 0
try {
  await members.healthy()
  // The second one takes the certificates that the first one makes.
  const servers = [await startServer('a', members.urls)]
  servers.push(await startServer('b', members.urls))
  for (let number = 0; number < Number(SKIFF_ROUNDS); number++) if ((await round(number, servers, members)) !== 0) failed++
  for (const server of servers) await server.end('SIGKILL')
} finally {
  members.stop()
  fs.rmSync(directory, { recursive: true, force: true })
}
console.log(`${JSON.stringify(counts)}, SKIFF_FUZZ_SEED=${SKIFF_FUZZ_SEED}`)
if (counts.faults === 0 || counts.operations < 50 * Number(SKIFF_ROUNDS)) throw new Error('too little happened')
process.exit(failed > 0 ? 1 : 0)
