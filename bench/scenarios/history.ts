/** Snapshots of 30,000 pods, a restore until the cluster serves them, the first answer of `skiff at`, and what the history of a day of CI takes. */
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { namespace, prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, withCluster } from '../tools/localCluster.ts'
import { configMap, encoded, pod } from '../tools/objects.ts'

const flags = ['--runtime', 'simulated', '--nodes', '1']
const pods = 30_000
const repeats = 3
const inFlight = 64
/** Writes of a day in which pipelines run, and the objects that they change. */
const writes = 100_000
const changed = 1000
const megabyte = 1e6

export const history: Scenario = {
  name: 'history',
  about: `snapshots of ${pods} pods, restore, skiff at, the history of ${writes} writes`,
  run: (context) =>
    withCluster(context.dir, 'history', [...flags, '--history', '24h', '--history-size', '1Gi'], async (cluster) => {
      const client = await createLoadClient(cluster.address)
      try {
        await prepareNamespace(client, namespace)
        return [...(await ofPods(cluster, client, context)), ...(await ofWrites(cluster, client, context))]
      } finally {
        client.close()
      }
    }),
}

async function ofPods(cluster: LocalCluster, client: LoadClient, { dir, progress }: ScenarioContext): Promise<Measurement[]> {
  progress(`${pods} pods`)
  await client.loop(pods, inFlight, (index) => ({
    ...{ method: 'POST', path: `/api/v1/namespaces/${namespace}/pods`, contentType: 'application/json' },
    body: encoded(pod(namespace, `p-${index}`, { schedulerName: 'nobody' })),
  }))
  const file = path.join(dir, 'history.db')
  const saved: number[] = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    progress('snapshot save')
    saved.push(await timed(() => runSkiff(cluster.home, 'snapshot', 'save', file, '--cluster', cluster.name, '-q')))
  }
  return [
    {
      what: `skiff snapshot save of ${pods} pods`,
      unit: 'ms',
      values: saved,
      target: { atMost: 2000 },
      note: `${Math.round(statSync(file).size / megabyte)} MB`,
    },
    await restored(cluster, file, progress),
    ...(await firstAnswers(cluster, progress)),
  ]
}

async function restored({ home }: LocalCluster, file: string, progress: ScenarioContext['progress']): Promise<Measurement> {
  progress('snapshot restore')
  const name = 'restored'
  try {
    const took = await timed(async () => {
      await runSkiff(home, 'snapshot', 'restore', file, name, '-q')
      await runSkiff(home, 'up', name, '-q', '--kubeconfig', path.join(home, 'restored.kubeconfig'), ...flags)
    })
    return { what: 'skiff snapshot restore and skiff up, until the cluster serves', unit: 'ms', values: [took], target: { atMost: 4000 } }
  } finally {
    await runSkiff(home, 'delete', name, '-q')
  }
}

/** With kubectl, which `skiff at` runs. */
async function firstAnswers({ home, name }: LocalCluster, progress: ScenarioContext['progress']): Promise<Measurement[]> {
  if (!hasKubectl()) return []
  const took: number[] = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    progress('skiff at')
    took.push(await timed(() => runSkiff(home, 'at', '--cluster', name, '-5s', 'get', 'pod', 'p-7', '-n', namespace)))
  }
  return [{ what: 'skiff at, until kubectl has printed a pod', unit: 'ms', values: took, target: { atMost: 1000 } }]
}

function hasKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function ofWrites({ dir }: LocalCluster, client: LoadClient, { progress }: ScenarioContext): Promise<Measurement[]> {
  progress(`${writes} writes`)
  const before = bytesOf(path.join(dir, 'store'))
  const at = `/api/v1/namespaces/${namespace}/configmaps`
  const create = (index: number) => ({ method: 'POST', path: at, contentType: 'application/json', body: configMap(namespace, `ci-${index}`) })
  await client.loop(changed, inFlight, create)
  await client.loop(writes - changed, inFlight, (index) => ({
    ...{ method: 'PATCH', path: `${at}/ci-${index % changed}`, contentType: 'application/merge-patch+json' },
    body: encoded({ data: { run: String(index) } }),
  }))
  const grown = bytesOf(path.join(dir, 'store')) - before
  return [{ what: `history of ${writes} writes of objects of 1 KiB, on the disk`, unit: 'MB', values: [grown / megabyte], target: { atMost: 400 } }]
}

function bytesOf(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(path.join(folder, name)).blocks * 512, 0)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}
