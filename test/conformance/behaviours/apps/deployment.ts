/** Deployments: creation, rollout, rollback and deletion. Upstream: test/e2e/apps/deployment.go. */
import assert from 'node:assert/strict'
import type { Deployment, DeploymentSpec } from '#api/gen/types/apps.v1'
import type { Frozen } from '#api/machinery/meta'
import { deployments, pods, replicaSets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox } from '../context.ts'
import { scalesBySubresource, selectorOf, sleeper, templateOf, writesStatus } from '../workloads.ts'

const labels = { app: 'web' }
const absent = 'skiff.test/absent:1'
const ref = ({ namespace }: BehaviourContext) => ({ namespace, name: 'web' })

const create = ({ create: make }: BehaviourContext, replicas: number, spec: Partial<DeploymentSpec> = {}) =>
  make(deployments, { metadata: { name: 'web', labels }, spec: { replicas, selector: selectorOf(labels), template: templateOf(labels), ...spec } })

/** Everything is of the newest template and available. */
const complete = (context: BehaviourContext, replicas: number) =>
  context.waitForObject(
    deployments,
    'web',
    `is complete with ${replicas}`,
    ({ metadata, status }) =>
      status?.observedGeneration === metadata.generation &&
      status?.replicas === replicas &&
      status.updatedReplicas === replicas &&
      status.availableReplicas === replicas,
  )

const change = (context: BehaviourContext, spec: object) => context.client.of(deployments).patch(ref(context), 'strategic', { spec })
/** A new template: its pods are others. */
const roll = (context: BehaviourContext, version: string, image = busybox) =>
  change(context, { template: { metadata: { annotations: { version } }, spec: { containers: [{ name: 'main', image }] } } })

const setsOf = async ({ client, namespace }: BehaviourContext) =>
  [...(await client.of(replicaSets).list({ namespace })).items].sort((a, b) => revision(a) - revision(b))
const revision = ({ metadata }: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined } }) =>
  Number(metadata.annotations?.['deployment.kubernetes.io/revision'])
const sizes = async (context: BehaviourContext) => (await setsOf(context)).map(({ spec }) => spec?.replicas ?? 0)

export const deployment: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'Deployment',
  rows: ['CTL-04'],
  behaviours: [
    {
      name: 'RollingUpdate',
      run: async (context) => {
        // It takes over what an older replica set of the same selector has.
        const labelled = { ...labels, pod: 'old' }
        await context.create(replicaSets, {
          metadata: { name: 'adopted', labels },
          spec: { replicas: 1, selector: selectorOf(labelled), template: templateOf(labelled) },
        })
        await context.waitForObject(replicaSets, 'adopted', 'has its pod', ({ status }) => status?.availableReplicas === 1)
        await create(context, 1)
        await complete(context, 1)
        const sets = await setsOf(context)
        const adopted = sets.find(({ metadata }) => metadata.name === 'adopted')
        assert.equal(adopted?.metadata.ownerReferences?.[0]?.name, 'web')
        await context.eventually(
          'the end of the adopted pods',
          async () => (await context.get(replicaSets, 'adopted')).status?.replicas,
          (count) => count === 0,
        )
      },
    },
    {
      name: 'Recreate',
      run: async (context) => {
        await create(context, 1, { strategy: { type: 'Recreate' } })
        await complete(context, 1)
        const stop = new AbortController()
        const { items, metadata } = await context.client.of(pods).list({ namespace: context.namespace })
        const hashes = new Map(items.map((pod) => [pod.metadata.uid, pod.metadata.labels?.['pod-template-hash']]))
        const [oldHash] = hashes.values()
        const overlaps: string[] = []
        const watching = (async () => {
          const old = new Set(items.map((pod) => pod.metadata.uid))
          const signal = AbortSignal.any([context.signal, stop.signal])
          for await (const batch of context.client.of(pods).watch({ namespace: context.namespace, resourceVersion: metadata?.resourceVersion ?? '', signal })) {
            for (const { type, object } of batch) {
              // An ended pod does not block the rollout, although it still exists.
              if (type === 'DELETED' || object.status?.phase === 'Succeeded' || object.status?.phase === 'Failed') old.delete(object.metadata.uid)
              else if (object.metadata.labels?.['pod-template-hash'] !== oldHash && old.size > 0) overlaps.push(object.metadata.name ?? '')
            }
          }
        })()
        await roll(context, 'two')
        await complete(context, 1)
        stop.abort()
        await watching.catch(() => {})
        assert.deepEqual(overlaps, [], 'no new pod while an old one runs')
      },
    },
    {
      name: 'old ReplicaSets trimmed by history limit',
      run: async (context) => {
        await create(context, 1, { revisionHistoryLimit: 0 })
        await complete(context, 1)
        await roll(context, 'two')
        await complete(context, 1)
        await context.eventually(
          'one replica set',
          () => setsOf(context),
          (sets) => sets.length === 1 && revision(sets[0] as (typeof sets)[number]) === 2,
        )
      },
    },
    {
      name: 'rollover mid-rollout',
      run: async (context) => {
        await create(context, 1, { minReadySeconds: 1 })
        await complete(context, 1)
        // The second revision never becomes ready; the third replaces it.
        await roll(context, 'two', absent)
        await context.eventually(
          'the second replica set',
          () => sizes(context),
          (seen) => seen.join() === '1,1',
        )
        await roll(context, 'three')
        await complete(context, 1)
        await context.eventually(
          'only the third has pods',
          () => sizes(context),
          (seen) => seen.join() === '0,0,1',
        )
      },
    },
    {
      name: 'proportional scaling',
      seconds: 150,
      run: async (context) => {
        await create(context, 10, { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } } })
        await complete(context, 10)
        await roll(context, 'two', absent)
        // Two may miss, three may be more: eight old ones and five new ones.
        await context.eventually(
          'the stuck rollout',
          () => sizes(context),
          (seen) => seen.join() === '8,5',
        )
        await context.waitForObject(deployments, 'web', 'has eight available', ({ status }) => status?.availableReplicas === 8)
        await change(context, { replicas: 30 })
        await context.eventually(
          'both grow in proportion',
          () => sizes(context),
          (seen) => seen.join() === '20,13',
        )
      },
    },
    {
      name: 'full lifecycle',
      run: async (context) => {
        const { client, namespace } = context
        await create(context, 1)
        await complete(context, 1)
        const { items } = await client.of(deployments).list({ labelSelector: 'app=web' })
        assert.ok(items.some(({ metadata }) => metadata.namespace === namespace))
        await client.of(deployments).patch(ref(context), 'strategic', { metadata: { labels: { patched: 'yes' } }, spec: { replicas: 2 } })
        await complete(context, 2)
        const replace = async (): Promise<Frozen<Deployment> | undefined> => {
          const current = await client.of(deployments).get(ref(context))
          return client
            .of(deployments)
            .update({ ...current, spec: { ...current.spec, replicas: 1 } as DeploymentSpec })
            .catch(() => undefined)
        }
        await context.eventually('the replaced one', replace, (object) => object?.spec?.replicas === 1)
        await complete(context, 1)
        await client.of(deployments).deleteCollection({ namespace, labelSelector: 'patched=yes' })
        await context.waitUntilGone(deployments, 'web')
      },
    },
    {
      name: 'scale subresource',
      run: async (context) => {
        await create(context, 1)
        await complete(context, 1)
        await scalesBySubresource(context, deployments, 'web', (count) => complete(context, count))
      },
    },
    {
      name: 'status endpoints',
      run: async (context) => {
        await create(context, 1, { template: templateOf(labels, sleeper) })
        await complete(context, 1)
        await writesStatus(context, deployments, 'web')
      },
    },
  ],
}
