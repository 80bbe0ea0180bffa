/**
 * KEDA against a simulated cluster. `run` builds its programs into WORK/bin and writes its manifests to WORK/keda.yaml. Each scaler has a Deployment of its own,
 * which gets replicas when its trigger becomes active, and loses them when it becomes inactive; all of them run at the same time.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { install } from '../support/install.ts'
import { type ApiObject, apply, kubectl, list, read, refusal, step, until } from '../support/kubectl.ts'
import { whileRunning } from '../support/program.ts'
import { deployment, long, most, scaledObject, type Trigger, targets } from './objects.ts'
import { apiService, startPrograms } from './programs.ts'
import { prometheusQuery, startQueues } from './queues.ts'
import { Replicas } from './replicas.ts'
import { type Change, scaleUpAndDown } from './scaling.ts'

const { WORK = '' } = process.env

await install(fs.readFileSync(path.join(WORK, 'keda.yaml'), 'utf8'))
const programs = await startPrograms()
const queues = await startQueues()
const replicas = new Replicas()
const upAndDown = (name: string, trigger: Trigger, change?: Change) => scaleUpAndDown(replicas, name, trigger, { change })

const fromJson: Trigger = { type: 'metrics-api', metadata: { url: queues.url, valueLocation: 'json', ...targets } }
queues.set('json', 0)

async function start(): Promise<void> {
  await step('AUT-02 the APIService of the metrics adapter becomes available', async () => {
    await kubectl(['wait', '--for=condition=Available', '--timeout=120s', `apiservice/${apiService}`])
  })
  await step('AUT-04 the webhook refuses a second ScaledObject for a Deployment', async () => {
    await apply(deployment('taken', 0))
    await until('the first one is created', () => apply(scaledObject('taken', fromJson)).then(() => true), Boolean)
    await until(
      'the second one is refused',
      () => refusal(scaledObject('second', fromJson, { scaleTargetRef: { name: 'taken' } })),
      (text) => /denied the request: the workload 'taken' of type 'apps\/v1\.Deployment' is already managed by the ScaledObject 'taken'/.test(text),
    )
    await kubectl(['delete', 'scaledobject,deployment', 'taken'])
  })
}

const scalers: Readonly<Record<string, () => Promise<void>>> = {
  cron: () => upAndDown('cron', { type: 'cron', metadata: { timezone: 'Etc/UTC', ...nextMinute(), desiredReplicas: String(most) } }),
  'kubernetes-workload': async () => {
    await apply(deployment('source', 0))
    const scale = async (count: number) => void (await kubectl(['scale', 'deployment/source', `--replicas=${count}`]))
    await upAndDown('workload', { type: 'kubernetes-workload', metadata: { podSelector: 'app=source', ...targets } }, (active) => scale(active ? long : 0))
  },
  prometheus: () => {
    const trigger = { type: 'prometheus', metadata: { serverAddress: queues.prometheusUrl, query: prometheusQuery, ...targets } }
    return upAndDown('prometheus', trigger, (active) => queues.set('prometheus', active ? long : 0))
  },
  'metrics-api': () =>
    upAndDown('metrics-api', fromJson, async (active) => {
      queues.set('json', active ? long : 0)
      if (active) await externalMetric()
    }),
  external: () => {
    const trigger = { type: 'external', metadata: { scalerAddress: queues.externalAddress, queue: 'grpc' } }
    return upAndDown('external', trigger, (active) => queues.set('grpc', active ? long : 0))
  },
}

/** The schedule is active in the next whole minute, and there is time to see it inactive before. */
function nextMinute(): { start: string; end: string } {
  const soon = new Date(Date.now() + 75_000).getUTCMinutes()
  return { start: `${soon} * * * *`, end: `${(soon + 1) % 60} * * * *` }
}

/** Anyone with the right to may read the metric from the API server; its name has the number of the trigger. */
async function externalMetric(): Promise<void> {
  const { status } = await read<ApiObject & { status: { externalMetricNames: readonly string[] } }>('scaledobject', 'metrics-api')
  const [name = ''] = status.externalMetricNames
  const selector = encodeURIComponent('scaledobject.keda.sh/name=metrics-api')
  const file = `/apis/external.metrics.k8s.io/v1beta1/namespaces/default/${name}?labelSelector=${selector}`
  type Values = { items: readonly { metricName: string; value: string }[] }
  await until(
    'the adapter serves the length of the queue',
    async () => JSON.parse(await kubectl(['get', '--raw', file])) as Values,
    ({ items }) => items.length === 1 && items[0]?.metricName === name && items[0].value === String(long),
  )
}

/** Without pods nothing uses a processor: this one has at least one replica. */
async function processorUse(): Promise<void> {
  const use = (milli: number) => ({ 'skiff.dev/simulated-cpu-milli': String(milli) })
  const resources = { requests: { cpu: '100m' } }
  await apply(deployment('cpu', 1, { resources, annotations: use(500) }))
  await apply(scaledObject('cpu', { type: 'cpu', metricType: 'Utilization', metadata: { value: '50' } }, { minReplicaCount: 1, maxReplicaCount: most }))
  await replicas.until('cpu', most)
  await kubectl(['annotate', 'pods', '-l', 'app=cpu', '--overwrite', ...Object.entries(use(10)).map((pair) => pair.join('='))])
  await replicas.until('cpu', 1)
}

async function removal(): Promise<void> {
  await step('AUT-04 the HorizontalPodAutoscalers are deleted with their ScaledObjects', async () => {
    const names = async () => (await list('hpa')).map(({ metadata }) => metadata.name)
    assert.ok((await names()).includes('keda-hpa-external'))
    await kubectl(['delete', 'scaledobjects', '--all', '--timeout=60s'])
    await until('no autoscaler is left', names, (left) => left.length === 0)
  })
}

try {
  await whileRunning(programs, async () => {
    await start()
    const steps = Object.entries(scalers).map(([name, run]) => step(`AUT-04 the scaler ${name} scales from 0 to ${most} and to 0`, run))
    await Promise.all([...steps, step(`AUT-04 the scaler cpu scales from 1 to ${most} and to 1`, processorUse)])
    await removal()
  })
} finally {
  await Promise.all([queues.stop(), replicas.stop()])
}
