/** Starts the measured cluster and talks to it: as an administrator, and as service accounts that may edit or administer one namespace. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { sourceProgram } from '../../support/sourceProgram.ts'

export type Role = 'edit' | 'admin' | 'root'

export interface Answer {
  readonly status: number
  /** Its first characters: enough to see why. */
  readonly text: string
}

export interface BudgetCluster {
  send(role: Role, method: string, target: string, body?: string | object, contentType?: string, accept?: string): Promise<Answer>
  /** Milliseconds of the longest turn of the event loop since the last call. */
  longestTurn(): Promise<number>
  /** Bytes in memory after a garbage collection. */
  heldBytes(): Promise<number>
  isAlive(): boolean
  /** Fails when the process does not exit cleanly. */
  stop(): Promise<void>
  kill(): void
}

const heapMegabytes = 1536
const keptCharacters = 600
export const budgetNamespace = 'budget'

export async function startBudgetCluster(): Promise<BudgetCluster> {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-budget-'))
  const tokens = path.join(folder, 'tokens.csv')
  fs.writeFileSync(tokens, 'edit,edit,uid-edit\nadmin,admin,uid-admin\nroot,root,uid-root,system:masters\n', { mode: 0o600 })
  const file = path.join(import.meta.dirname, 'budgetCluster.ts')
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, '--expose-gc', ...extraFlags(), ...sourceProgram(file), tokens], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-20_000)
  })
  const exited = once(child, 'exit')
  let isAlive = true
  void exited.then(() => {
    isAlive = false
  })
  const lines = createInterface({ input: child.stdout })
  const waiting: ((value: Record<string, never>) => void)[] = []
  lines.on('line', (line) => waiting.shift()?.(JSON.parse(line)))
  const said = <T>() =>
    Promise.race([
      new Promise<T>((resolve) => waiting.push(resolve as (value: unknown) => void)),
      exited.then((): never => assert.fail(`the cluster died: ${errors}`)),
    ])
  const { url, ca } = await said<{ url: string; ca: string }>()
  const agent = new Agent({ keepAlive: true, ca, maxSockets: 8 })
  const ask = <T>(question: string) => {
    const answer = said<T>()
    child.stdin.write(`${question}\n`)
    return answer
  }
  const cluster: BudgetCluster = {
    send: (role, method, target, body, contentType = 'application/json', accept = 'application/json') =>
      Promise.race([
        twice(() => call(agent, `${url}${target}`, role, method, body, { contentType, accept })),
        exited.then((): never => assert.fail(`the cluster died: ${errors}`)),
      ]),
    longestTurn: async () => (await ask<{ turnMs: number }>('turn')).turnMs,
    heldBytes: async () => (await ask<{ heldBytes: number }>('memory')).heldBytes,
    isAlive: () => isAlive,
    async stop() {
      agent.destroy()
      child.stdin.end()
      const [code, signal] = await exited
      fs.rmSync(folder, { recursive: true, force: true })
      assert.deepEqual([code, signal], [0, null], `the cluster died: ${errors.slice(-4_000)}`)
    },
    kill: () => void child.kill('SIGKILL'),
  }
  await grant(cluster)
  return cluster
}

/** Flags of the process, such as --cpu-prof to see what takes the time. */
function extraFlags(): string[] {
  return (process.env.SKIFF_BUDGET_FLAGS ?? '').split(' ').filter(Boolean)
}

async function grant(cluster: BudgetCluster): Promise<void> {
  const create = async (target: string, body: object) => {
    const { status, text } = await cluster.send('root', 'POST', target, body)
    assert.ok(status === 201, text)
  }
  await create('/api/v1/namespaces', { metadata: { name: budgetNamespace } })
  for (const role of ['edit', 'admin'])
    await create(`/apis/rbac.authorization.k8s.io/v1/namespaces/${budgetNamespace}/rolebindings`, {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: role }],
    })
}

/** A kept connection may be closed by the server just when it is used again, after an answer to a body that it did not read. */
async function twice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch {
    return work()
  }
}

type Types = { readonly contentType: string; readonly accept: string }

function call(agent: Agent, url: string, token: string, method: string, body: string | object | undefined, types: Types): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${token}`,
      accept: types.accept,
      ...(sent === undefined ? {} : { 'content-type': types.contentType, 'content-length': Buffer.byteLength(sent) }),
    }
    const outgoing = request(url, { method, agent, headers })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        if (text.length < keptCharacters) text += chunk.slice(0, keptCharacters)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    outgoing.end(sent)
  })
}
