/**
 * The independent load generator that the project is judged by, if it is found next to the checkout: unchanged, with a service account's token,
 * in the order of its own `all-api`, several rounds on one API server that runs alone. What it measures of other servers it measures here.
 */
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Measurement, Scenario } from '../scenario.ts'
import { type ApiServerAlone, withApiServer } from '../tools/apiServerAlone.ts'
import { createLoadClient } from '../tools/load.ts'

const generator = path.resolve(import.meta.dirname, '../../../shared/tools/kbench.mjs')
const rounds = 3
const execute = promisify(execFile)

/** One line of its output. */
interface Line {
  readonly scenario: string
  readonly failed?: string
  readonly errors?: number
  readonly ops_s?: number
  readonly p99_ms?: number
  readonly server_cpu_us_per_op?: number
  readonly watchers?: number
  readonly rate?: number
  readonly events_s?: number
  readonly complete?: boolean
  readonly delivery?: { readonly p50_ms: number; readonly p99_ms: number }
  readonly pods?: number
  readonly mode?: string
  readonly ms_median?: number
  readonly pids?: { readonly server?: { readonly rss_after: number } }
}

interface Wanted {
  readonly what: string
  readonly unit: string
  is(line: Line): boolean
  value(line: Line): number | undefined
  readonly target?: Measurement['target']
}

const rate = (scenario: string, atLeast?: number): Wanted => ({
  what: scenario,
  unit: '/s',
  is: (line) => line.scenario === scenario,
  value: (line) => line.ops_s,
  target: atLeast === undefined ? undefined : { atLeast },
})

const list = (mode: string, what: string, atMost: number): Wanted => ({
  what,
  unit: 'ms',
  is: (line) => line.scenario === 'list' && line.pods === 10_000 && line.mode === mode,
  value: (line) => line.ms_median,
  target: { atMost },
})

const wanted: readonly Wanted[] = [
  rate('create1', 1_500),
  rate('create', 7_500),
  rate('get', 25_000),
  rate('update', 7_000),
  rate('patch-merge', 5_500),
  rate('patch-strategic', 3_000),
  rate('patch-ssa', 5_000),
  rate('mixed'),
  rate('delete', 8_000),
  list('rv0', 'list 10,000 pods from the cache', 30),
  list('quorum', 'list 10,000 pods, consistent', 40),
  list('proto', 'list 10,000 pods in protobuf', 40),
  {
    what: 'resident memory with 30,000 pods',
    unit: 'MB',
    is: (line) => line.scenario === 'list' && line.pods === 30_000 && line.mode === 'rv0',
    value: (line) => line.pids?.server?.rss_after,
    target: { atMost: 900 },
  },
  {
    what: 'watch: 1,000 watchers, 400 writes/s, p99 of delivery',
    unit: 'ms',
    is: (line) => line.scenario === 'watch' && line.rate === 400,
    value: (line) => line.delivery?.p99_ms,
    target: { atMost: 100 },
  },
  {
    what: 'watch: events to 1,000 watchers',
    unit: '/s',
    is: (line) => line.scenario === 'watch' && line.rate === 800,
    value: (line) => line.events_s,
    target: { atLeast: 700_000 },
  },
]

/** What is run in each round, in this order. */
const runs: readonly (readonly string[])[] = [
  ['create1', 'create', 'get', 'update', 'patch-merge', 'patch-strategic', 'patch-ssa', 'mixed', 'delete'],
  ['watch', '--watchers', '1000', '--watch-rate', '400', '--watch-s', '5'],
  ['watch', '--watchers', '1000', '--watch-rate', '800', '--watch-s', '5'],
]
const listRun = ['list', '--list-sizes', '10000,30000', '--list-modes', 'rv0,quorum,proto']

export const kbench: Scenario = {
  name: 'kbench',
  about: 'the load generator beside the project, with a token',
  skipped: () => (existsSync(generator) ? undefined : `${generator} is not there`),
  async run({ dir, signal, progress }) {
    const writes = await withApiServer(dir, 'kbench', [], async (server) => {
      const token = await makeToken(server, dir)
      const lines: Line[] = []
      for (let round = 1; round <= rounds; round++) {
        for (const run of runs) {
          progress(`round ${round}: ${run.join(' ')}`)
          lines.push(...(await generate(server, token, run, signal)))
        }
      }
      return lines
    })
    // On a server of its own: what it holds then is the pods and nothing of the rounds before.
    const lists = await withApiServer(dir, 'kbench-list', [], async (server) => {
      progress('list')
      return generate(server, await makeToken(server, dir), listRun, signal)
    })
    return wanted.map((one) => measurementOf(one, [...writes, ...lists]))
  },
}

function measurementOf({ what, unit, is, value, target }: Wanted, lines: readonly Line[]): Measurement {
  const mine = lines.filter(is)
  const values = mine.flatMap((line) => value(line) ?? [])
  if (values.length === 0) throw new Error(`the generator said nothing of ${what}`)
  const micros = mine.flatMap((line) => line.server_cpu_us_per_op ?? [])
  const note = unit === '/s' && micros.length > 0 ? `server CPU ${micros.join(', ')} µs each` : undefined
  return { what, unit, values, target, note }
}

async function makeToken({ address }: ApiServerAlone, dir: string): Promise<string> {
  const client = await createLoadClient(address)
  try {
    await client.ask('POST', '/api/v1/namespaces/kube-system/serviceaccounts', { metadata: { name: 'kbench' } })
    await client.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'kbench' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name: 'kbench', namespace: 'kube-system' }],
    })
    const request = { spec: { audiences: [], expirationSeconds: 7200 } }
    const answer = await client.ask('POST', '/api/v1/namespaces/kube-system/serviceaccounts/kbench/token', request)
    const { status } = JSON.parse(answer.body) as { status: { token: string } }
    writeFileSync(path.join(dir, 'ca.crt'), address.ca)
    writeFileSync(path.join(dir, 'token'), status.token, { mode: 0o600 })
    return path.join(dir, 'token')
  } finally {
    client.close()
  }
}

async function generate({ address, serverPid }: ApiServerAlone, token: string, args: readonly string[], signal: AbortSignal): Promise<Line[]> {
  const server = `https://${address.host}:${address.port}`
  const where = ['--server', server, '--ca', path.join(path.dirname(token), 'ca.crt'), '--token', token, '--pids', `server=${serverPid}`]
  const { stdout } = await execute(process.execPath, [generator, ...where, ...args], { signal, maxBuffer: 1 << 24 })
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  // The watches' writes come at a fixed rate: those beyond the limit of requests in flight get 429, and the generator expects their events too.
  const bad = lines.find((line) => line.failed || (line.scenario === 'watch' ? line.complete === false && !line.errors : line.errors))
  if (bad) throw new Error(`the generator reports a failure: ${JSON.stringify(bad).slice(0, 500)}`)
  return lines
}
