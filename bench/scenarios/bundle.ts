/** A cluster as one file: how long it takes to write and to open, and how large it is. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import path from 'node:path'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { createLoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, skiff, withCluster } from '../tools/localCluster.ts'
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
  const opening: number[] = []
  for (let at = 0; at < opened; at++) opening.push(await open(file, cluster.home))
  return [
    { what: `a bundle of ${pods} pods is written`, unit: 's', values: [seconds], target: { atMost: 20 } },
    { what: 'its size', unit: 'MB', values: [statSync(file).size / 1e6], target: { atMost: 60 } },
    { what: '"skiff ui FILE" until the page has an address', unit: 's', values: opening, target: { atMost: 2 } },
  ]
}

async function open(file: string, home: string): Promise<number> {
  const started = performance.now()
  const child: ChildProcess = spawn(process.execPath, [skiff, 'ui', file, '--print-url'], {
    env: { ...process.env, SKIFF_HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (!child.stdout) throw new Error('skiff ui has no output')
  const ended = once(child, 'exit')
  const printed = await Promise.race([once(child.stdout, 'data'), ended.then(() => undefined)])
  if (!printed) throw new Error('skiff ui ended')
  const seconds = (performance.now() - started) / 1000
  child.kill()
  await ended
  return seconds
}
