/** A cluster as one file: how long it takes to write, to open and to answer first, and how large it is. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import path from 'node:path'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { createLoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, skiff, withCluster } from '../tools/localCluster.ts'
import { usageOf } from '../tools/machine.ts'
import { createAndAwait } from '../tools/simulatedPods.ts'

const nodes = 300
const pods = 30_000
const opened = 3
const namespace = 'bundle'

export const bundle: Scenario = {
  name: 'bundle',
  about: `skiff bundle of ${pods} pods on ${nodes} simulated nodes`,
  run: (context) => withCluster(context.dir, 'bundle', ['--runtime', 'simulated', '--simulated-nodes', String(nodes)], (cluster) => measure(cluster, context)),
}

async function measure(cluster: LocalCluster, { dir, signal, progress }: ScenarioContext): Promise<Measurement[]> {
  const client = await createLoadClient(cluster.address)
  try {
    await prepareNamespace(client, namespace)
    await createAndAwait(client, { namespace, pods, deadlineMs: 600_000 }, signal)
  } finally {
    client.close()
  }
  progress(`${pods} pods run`)
  const file = path.join(dir, 'bundle.skiff')
  const started = performance.now()
  await runSkiff(cluster.home, 'bundle', '--name', cluster.name, '--to', file, '--quiet')
  const seconds = (performance.now() - started) / 1000
  progress('written')
  const opening: Opening[] = []
  for (let at = 0; at < opened; at++) opening.push(await open(file, cluster.home))
  return [
    { what: `a bundle of ${pods} pods is written`, unit: 's', values: [seconds], target: { atMost: 20 } },
    { what: 'its size', unit: 'MB', values: [statSync(file).size / 1e6], target: { atMost: 60 } },
    { what: '"skiff ui FILE" until the page has an address', unit: 's', values: opening.map(({ addressSeconds }) => addressSeconds), target: { atMost: 2 } },
    { what: 'its CPU time until then', unit: 's', values: opening.map(({ cpuSeconds }) => cpuSeconds) },
    { what: 'from then until the page has logged in and the first rows of its pods', unit: 's', values: opening.map(({ answerSeconds }) => answerSeconds) },
  ]
}

interface Opening {
  readonly addressSeconds: number
  readonly cpuSeconds: number
  readonly answerSeconds: number
}

async function open(file: string, home: string): Promise<Opening> {
  const started = performance.now()
  const child: ChildProcess = spawn(process.execPath, [skiff, 'ui', file, '--print-url'], {
    env: { ...process.env, SKIFF_HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (!child.stdout || child.pid === undefined) throw new Error('skiff ui did not start')
  const ended = once(child, 'exit')
  try {
    const printed = await Promise.race([once(child.stdout, 'data'), ended.then(() => undefined)])
    if (!printed) throw new Error('skiff ui ended')
    const addressed = performance.now()
    const { cpuSeconds } = usageOf(child.pid)
    await firstRows(new URL(String(printed[0]).trim()))
    return { addressSeconds: (addressed - started) / 1000, cpuSeconds, answerSeconds: (performance.now() - addressed) / 1000 }
  } finally {
    child.kill()
    await ended
  }
}

const tableForm = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** What the page asks first: its login, and a page of the list of pods. */
async function firstRows({ origin, hash }: URL): Promise<void> {
  const body = JSON.stringify({ code: hash.slice('#code='.length) })
  const login = await fetch(`${origin}/front/login`, { method: 'POST', headers: { origin, 'content-type': 'application/json' }, body })
  const { key } = (await login.json()) as { readonly key: string }
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
  const answer = await fetch(`${origin}/api/v1/namespaces/${namespace}/pods?limit=1000`, { headers: { cookie, 'x-skiff-key': key, accept: tableForm } })
  const { rows } = (await answer.json()) as { readonly rows?: readonly unknown[] }
  if (rows?.length !== 1_000) throw new Error(`the list has ${rows?.length ?? 0} rows`)
}
