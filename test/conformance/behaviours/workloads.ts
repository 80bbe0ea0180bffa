/** The workloads that behaviours create (tests only): pods that sleep, under whatever owns them. */
import assert from 'node:assert/strict'
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { Resource } from '#client/client'
import { createScaleClient } from '#client/scaleClient'
import { type BehaviourContext, type PodInput, podOf } from './context.ts'

/** The default container of a workload's pods. */
export const sleeper: PodInput = { script: 'trap "exit 0" TERM; sleep 600 & wait' }

/** The template of pods with these labels: restarted always. */
export function templateOf(labels: Readonly<Record<string, string>>, pod: PodInput = sleeper): PodTemplateSpec {
  const { spec } = podOf({ ...pod, spec: { restartPolicy: 'Always', ...pod.spec } }, { name: '' })
  return { metadata: { labels: { ...labels } }, spec }
}

export const selectorOf = (labels: Readonly<Record<string, string>>): LabelSelector => ({ matchLabels: { ...labels } })

/** The conditions of a status, read, replaced and patched through its subresource. */
export async function writesStatus(context: BehaviourContext, resource: Resource<KubeObject>, name: string): Promise<void> {
  const ref = { namespace: context.namespace, name }
  const client = context.client.of(resource)
  type WithConditions = { status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] } }
  const conditions = (object: unknown) => (object as WithConditions).status?.conditions ?? []
  const before = await client.getSubresource<never>(ref, 'status')
  assert.ok((before as WithConditions).status)
  const updated = await context.eventually(
    'the replaced status',
    async () => {
      const current = await client.get(ref)
      const condition = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set by a test' }
      const status = { ...(current as WithConditions).status, conditions: [...conditions(current), condition] }
      return client.updateStatus({ ...current, status } as never).catch(() => undefined)
    },
    (object) => object !== undefined,
  )
  assert.ok(conditions(updated).some(({ type }) => type === 'StatusUpdate'))
  const patch = { status: { conditions: [{ type: 'StatusPatched', status: 'True' }] } }
  const patched = await client.patch(ref, 'merge', patch, { subresource: 'status' })
  assert.ok(conditions(patched).some(({ type }) => type === 'StatusPatched'))
}

/** From one replica to two and back, through the scale subresource. */
export async function scalesBySubresource(
  { client, namespace }: BehaviourContext,
  resource: Resource<KubeObject>,
  name: string,
  available: (count: number) => Promise<unknown>,
): Promise<void> {
  const ref = { namespace, name }
  const scales = createScaleClient(client)
  const scale = await scales.get(resource, ref)
  assert.deepEqual([scale.spec?.replicas, scale.status?.replicas], [1, 1])
  await scales.update(resource, ref, { ...scale, spec: { replicas: 2 } })
  await available(2)
  await scales.scaleTo(resource, ref, 1)
  await available(1)
}
