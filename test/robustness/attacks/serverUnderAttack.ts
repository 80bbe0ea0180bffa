/**
 * The fixture of the attacks: a server as users run it, in a process whose memory is limited and watched; users with tokens; and another client
 * that works meanwhile, in a separate process, so that its latency is the server's and not the attacker's.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { median, percentile } from '../../../bench/tools/statistics.ts'
import { type HttpsAnswer, type HttpsCall, httpsCall } from '../../support/httpsCall.ts'
import { sourceProgram } from '../../support/sourceProgram.ts'

export interface AttackServerOptions {
  readonly flags: readonly string[]
  readonly headersTimeoutMs?: number | undefined
  readonly maxInFlight?: { readonly readOnly: number; readonly mutating: number } | undefined
}

/** A user's token is their name. Only admin has rights, until a test grants some. */
export const people = ['admin', 'mallory', 'alice', 'bob'] as const
export type Person = (typeof people)[number]

export interface ServerUnderAttack {
  readonly url: string
  readonly port: number
  readonly ca: string
  /** One request on a connection of its own. */
  as(person: Person | undefined, method: string, path: string, body?: unknown, more?: HttpsCall): Promise<HttpsAnswer>
  /** Bytes in memory after a garbage collection. */
  heldBytes(): Promise<number>
  /** The 99th percentile and median of alice's latency in milliseconds during the attack, and the number of her requests. */
  beside(attack: () => Promise<unknown>): Promise<{ readonly p99: number; readonly median: number; readonly requests: number }>
  /** Fails when the server does not exit cleanly. */
  stop(): Promise<void>
}

const heapMegabytes = 768
/** What alice reads; she may. */
export const alicesPath = '/api/v1/namespaces/default/configmaps/innocent'

export async function startServerUnderAttack(options: Partial<AttackServerOptions> = {}): Promise<ServerUnderAttack> {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-attacks-'))
  const tokens = path.join(folder, 'tokens.csv')
  fs.writeFileSync(tokens, people.map((name) => `${name},${name},uid-${name}${name === 'admin' ? ',system:masters' : ''}\n`).join(''), { mode: 0o600 })
  const argument = JSON.stringify({ ...options, flags: [`--token-auth-file=${tokens}`, ...(options.flags ?? [])] })
  const file = path.join(import.meta.dirname, 'attackServer.ts')
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, '--expose-gc', ...sourceProgram(file), argument], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < 100_000) errors += text
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const said = async () => {
    const [line] = await Promise.race([once(lines, 'line'), exited.then(() => assert.fail(`the server died: ${errors}`))])
    return JSON.parse(line as string)
  }
  const { port, ca } = (await said()) as { port: number; ca: string }
  const url = `https://127.0.0.1:${port}`
  const as: ServerUnderAttack['as'] = (person, method, target, body, { headers, ...more } = {}) =>
    httpsCall({ url, ca }, target, { method, body, headers: { ...(person ? { authorization: `Bearer ${person}` } : {}), ...headers }, ...more })
  await prepareAlice(as)
  let bystander: Promise<Bystander> | undefined
  return {
    url,
    port,
    ca,
    as,
    async heldBytes() {
      child.stdin.write('memory\n')
      return (await said()).heldBytes
    },
    async beside(attack) {
      bystander ??= startBystander({ port, ca })
      const { latencies: since } = await bystander
      await since()
      await attack()
      const latencies = await since()
      return { p99: percentile(latencies, 0.99), median: median(latencies), requests: latencies.length }
    },
    async stop() {
      await (await bystander)?.stop()
      child.stdin.end()
      const [code, signal] = await exited
      fs.rmSync(folder, { recursive: true, force: true })
      assert.deepEqual([code, signal], [0, null], `the server died: ${errors.slice(-4_000)}`)
    },
  }
}

async function prepareAlice(as: ServerUnderAttack['as']): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  const apiGroup = 'rbac.authorization.k8s.io'
  const answers = [
    await as('admin', 'POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'innocent' }, data: { a: 'b' } }),
    await as('admin', 'POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } }),
    await as('admin', 'POST', `${rbac}/roles`, { metadata: { name: 'reader' }, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['configmaps'] }] }),
    await as('admin', 'POST', `${rbac}/rolebindings`, {
      metadata: { name: 'alice' },
      roleRef: { apiGroup, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup, kind: 'User', name: 'alice' }],
    }),
  ]
  for (const { status, text } of answers) assert.equal(status, 201, text)
  assert.equal((await as('alice', 'GET', alicesPath)).status, 200)
}

interface Bystander {
  /** Of everything asked since the last call. */
  latencies(): Promise<number[]>
  stop(): Promise<void>
}

async function startBystander(target: { readonly port: number; readonly ca: string }): Promise<Bystander> {
  const argument = JSON.stringify({ ...target, path: alicesPath, token: 'alice' })
  const child = spawn(process.execPath, [...sourceProgram(path.join(import.meta.dirname, 'bystander.ts')), argument], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  return {
    async latencies() {
      child.stdin.write('now\n')
      const [line] = await once(lines, 'line')
      return JSON.parse(line as string) as number[]
    },
    async stop() {
      child.stdin.end()
      await exited
    },
  }
}
