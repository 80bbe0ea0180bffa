/**
 * A cluster that is killed and restarted over the same data directory, and what an ordinary user expects of it. clusterProcess.ts is the process.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import { realClock } from '#testing/realClock'
import { type HttpsAnswer, type HttpsCall, httpsCall } from '../../support/httpsCall.ts'
import { sourceProgram } from '../../support/sourceProgram.ts'

export interface ClusterProcessOptions {
  readonly path: string
  readonly nodes: number
  readonly apiServerArgs: readonly string[]
}

export interface KilledCluster {
  /** Starts the process, the first time or again. Fails when it does not serve in time. */
  start(): Promise<void>
  /** Ends it as a power failure would. */
  kill(): Promise<void>
  /** One request of an administrator. */
  call(method: string, path: string, body?: unknown, more?: HttpsCall): Promise<HttpsAnswer>
  /** Asks until `holds`, and fails with the last answer when it never does. */
  until(path: string, holds: (answer: HttpsAnswer) => boolean, withinMs?: number): Promise<HttpsAnswer>
  /** Milliseconds of processor time of its longest turn since the last call. */
  longestTurnMs(): Promise<number>
  /** Puts objects, or bytes that are none, under their keys of the store, past the API. Not while the process runs. */
  seed(objects: Readonly<Record<string, object>>): Promise<void>
  close(): Promise<void>
}

const heapMegabytes = 400
const startsWithinMs = 60_000
const defaultWithinMs = 30_000
const askEveryMs = 50

export function createKilledCluster({ nodes = 2, apiServerArgs = [] }: Partial<Omit<ClusterProcessOptions, 'path'>> = {}): KilledCluster {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-poison-'))
  const argument = JSON.stringify({ path: path.join(folder, 'data.mdb'), nodes, apiServerArgs } satisfies ClusterProcessOptions)
  let child: ChildProcess | undefined
  let served = { url: '', ca: '', token: '' }
  let lines: ReturnType<typeof createInterface> | undefined
  let exited: Promise<unknown> = Promise.resolve()
  let errors = ''

  const said = async () => {
    assert.ok(lines)
    const died = exited.then(() => assert.fail(`the cluster died: ${errors.slice(-3_000)}`))
    const late = delay(startsWithinMs, undefined, { ref: false }).then(() => assert.fail(`the cluster says nothing: ${errors.slice(-3_000)}`))
    const [line] = await Promise.race([once(lines, 'line'), died, late])
    return JSON.parse(line as string)
  }
  const call: KilledCluster['call'] = (method, target, body, { headers, ...more } = {}) =>
    httpsCall(served, target, { method, body, headers: { authorization: `Bearer ${served.token}`, ...headers }, ...more })
  const kill = async () => {
    child?.kill('SIGKILL')
    await exited
    child = undefined
  }
  return {
    call,
    kill,
    async start() {
      const file = path.join(import.meta.dirname, 'clusterProcess.ts')
      errors = ''
      child = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, ...sourceProgram(file), argument], { stdio: ['pipe', 'pipe', 'pipe'] })
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        if (errors.length < 100_000) errors += text
      })
      exited = once(child, 'exit')
      assert.ok(child.stdout)
      lines = createInterface({ input: child.stdout })
      served = await said()
    },
    async until(target, holds, withinMs = defaultWithinMs) {
      const deadlineMs = performance.now() + withinMs
      for (;;) {
        const answer = await call('GET', target)
        if (holds(answer)) return answer
        assert.ok(performance.now() < deadlineMs, `${target} stays ${answer.status} ${answer.text.slice(0, 2_000)}`)
        await delay(askEveryMs)
      }
    },
    async longestTurnMs() {
      child?.stdin?.write('turns\n')
      return (await said()).longestTurnMs
    },
    async seed(objects) {
      assert.equal(child, undefined, 'the file is another process’s')
      const store = await openLmdbStore({ path: path.join(folder, 'data.mdb'), clock: realClock, log: noLog })
      const success = Object.entries(objects).map(([key, object]) => ({
        type: 'put' as const,
        key,
        value: Buffer.isBuffer(object) ? object : Buffer.from(JSON.stringify(object)),
      }))
      await store.transact({ compare: [], success })
      await store.close()
    },
    async close() {
      await kill()
      fs.rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const deploymentsPath = '/apis/apps/v1/namespaces/innocent/deployments'

/** A Deployment in a namespace of its own gets its pods. */
export async function assertServesInnocent(cluster: KilledCluster, name: string): Promise<void> {
  await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'innocent' } })
  // The account of pods is made by a controller.
  await cluster.until('/api/v1/namespaces/innocent/serviceaccounts/default', ({ status }) => status === 200)
  const labels = { app: name }
  const made = await cluster.call('POST', deploymentsPath, {
    metadata: { name },
    spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } } },
  })
  assert.equal(made.status, 201, made.text)
  await cluster.until(`${deploymentsPath}/${name}`, ({ json }) => json?.status?.readyReplicas === 2)
  assert.equal((await cluster.call('DELETE', `${deploymentsPath}/${name}`)).status, 200)
}
