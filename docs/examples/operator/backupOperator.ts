/**
 * An operator in one file: a Backup asks that a Job runs every so often and that the last three successful ones are kept. It is restarted, fails and
 * runs for weeks in its test, backupOperator.test.ts, which takes seconds.
 */
import { type batchV1, type customResourceDefinitions, type Frozen, jobs, type KubeObject, namespaced } from 'skiff-kubernetes/client'
import { controllerReference, defineController } from 'skiff-kubernetes/controller'

export interface Backup extends KubeObject {
  spec: { everySeconds: number; image: string }
  status?: { lastRunTime?: string; succeeded?: number }
}

export const backups = namespaced<Backup>('example.com', 'v1', 'backups', 'Backup')

type Definition = NonNullable<(typeof customResourceDefinitions)['type']>

export const backupDefinition: Pick<Definition, 'metadata' | 'spec'> = {
  metadata: { name: 'backups.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Backup', plural: 'backups', singular: 'backup' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['everySeconds', 'image'],
                properties: { everySeconds: { type: 'integer', minimum: 1 }, image: { type: 'string' } },
              },
              status: { type: 'object', properties: { lastRunTime: { type: 'string' }, succeeded: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
}

const kept = 3
const isComplete = (job: Frozen<batchV1.Job>) => job.status?.conditions?.some(({ type, status }) => type === 'Complete' && status === 'True') ?? false

/** @param nowMs the time: the test's, or Date.now */
export const backupController = (nowMs: () => number) =>
  defineController({
    name: 'backup-controller',
    for: backups,
    owns: [jobs],
    async reconcile({ object, ref, client, cache, patchStatus, signal }) {
      const mine = cache(jobs).list({ namespace: ref.namespace, matches: ({ metadata }) => metadata.labels?.backup === ref.name })
      const slot = Math.floor(nowMs() / 1000 / object.spec.everySeconds)
      // Named after its time: made twice, after a crash or from an old cache, it is still one.
      const name = `${ref.name}-${slot}`
      if (!mine.some(({ metadata }) => metadata.name === name)) {
        const metadata = { namespace: ref.namespace, name, labels: { backup: ref.name }, ownerReferences: [controllerReference(object)] }
        const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'backup', image: object.spec.image }] } }
        await client
          .of(jobs)
          .create({ metadata, spec: { backoffLimit: 2, template } }, { signal })
          .catch((error: { readonly reason?: string }) => {
            if (error.reason !== 'AlreadyExists') throw error
          })
      }
      const done = mine.filter(isComplete).sort((a, b) => ((a.status?.completionTime ?? '') < (b.status?.completionTime ?? '') ? 1 : -1))
      for (const { metadata } of done.slice(kept)) {
        await client.of(jobs).delete({ namespace: ref.namespace, name: metadata.name ?? '' }, { propagationPolicy: 'Background', signal })
      }
      const lastRunTime = done[0]?.status?.completionTime
      if (lastRunTime !== undefined) await patchStatus({ lastRunTime, succeeded: done.slice(0, kept).length })
      return { requeueAfterMs: (slot + 1) * object.spec.everySeconds * 1000 - nowMs() }
    },
  })
