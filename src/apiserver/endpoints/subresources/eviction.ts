/**
 * pods/eviction (L3): deletes a pod if its disruption budgets allow it; otherwise 429, to be tried again.
 * Upstream: pkg/registry/core/pod/storage/eviction.go.
 */

import type { Pod } from '#api/gen/types/core.v1'
import type { DeleteOptions } from '#api/gen/types/meta.v1'
import type { Eviction, PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, notFound, StatusError } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { noAdmission } from '../../admission/chain.ts'
import type { Answer } from '../../answer.ts'
import { admit } from '../../registry/admit.ts'
import { deleteObject } from '../../registry/deletion.ts'
import type { WriteContext } from '../../registry/storedResource.ts'
import { updateObject } from '../../registry/update.ts'
import { attributesOf } from '../../registry/writer.ts'
import { decodeBody } from '../body.ts'
import { type Scope, writeContext } from '../scope.ts'

export const evictionHandlers = { create: evict }

const pods = { group: '', resource: 'pods' }
const budgets = { group: 'policy', resource: 'poddisruptionbudgets' }
/** Bodies of policy/v1beta1, which is not served any more, are taken still: clients before 1.22 send them. */
const expected = { group: 'policy', version: 'v1', kind: 'Eviction', otherVersions: ['policy/v1beta1'] }

async function evict(scope: Scope): Promise<Answer> {
  const { deps, info } = scope
  const schema = schemaFor('policy', 'v1', 'Eviction')
  if (!schema) throw new Error('no schema for Eviction')
  const eviction = (await decodeBody(scope, { ...expected, schema })) as unknown as Eviction
  if (eviction.metadata?.name && eviction.metadata.name !== info.name) throw badRequest('name in URL does not match name in Eviction object')
  const options: Partial<DeleteOptions> = eviction.deleteOptions ?? {}
  const context = { ...writeContext(scope, 'CreateOptions', options.dryRun?.length ? options : {}), subresource: '' }
  const pod = deps.registry.reader.get<KubeObject>(pods, info.namespace, info.name) as Frozen<Pod> | undefined
  if (!pod) throw notFound(pods, info.name)
  await admitEviction(scope, eviction, context)
  if (!isDone(pod) && !pod.metadata.deletionTimestamp) await claimDisruption(scope, pod, context.dryRun)
  // Whoever may evict the pod may delete it: admission has been asked about the eviction.
  await deleteObject({ ...deps.writer, admission: noAdmission }, context, {
    name: info.name,
    gracePeriodSeconds: options.gracePeriodSeconds,
    propagationPolicy: options.propagationPolicy as 'Orphan' | 'Background' | 'Foreground' | undefined,
    // The budget was asked about this pod, not about one that may have taken its name.
    preconditions: { uid: pod.metadata.uid, ...options.preconditions },
  })
  return { type: 'value', status: 201, value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } }
}

async function admitEviction({ deps, info }: Scope, eviction: Eviction, context: WriteContext): Promise<void> {
  const { admission } = deps.writer
  if (admission.isEmpty) return
  eviction.metadata = { ...eviction.metadata, name: info.name, namespace: info.namespace }
  const subject = { ...context, subresource: 'eviction', kind: expected }
  const attributes = attributesOf(subject, 'CREATE', info.name, eviction as unknown as KubeObject, undefined)
  await admit(admission, attributes)
  await admission.validate(attributes)
}

function isDone(pod: Frozen<Pod>): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed' || pod.status?.phase === 'Pending'
}

/** Takes one disruption off the pod's budget, or refuses. */
async function claimDisruption(scope: Scope, pod: Frozen<Pod>, dryRun: boolean): Promise<void> {
  const { deps, info } = scope
  const matching = (deps.registry.reader.list<KubeObject>(budgets, info.namespace) as unknown as readonly Frozen<PodDisruptionBudget>[]).filter((budget) =>
    selectorOf(budget.spec?.selector).matches(pod.metadata.labels),
  )
  const [budget] = matching
  if (!budget) return
  if (matching.length > 1) {
    throw new StatusError('InternalError', 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.')
  }
  const ready = pod.status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false
  if (!ready) {
    const policy = budget.spec?.unhealthyPodEvictionPolicy
    const healthy = (budget.status?.currentHealthy ?? 0) >= (budget.status?.desiredHealthy ?? 0) && (budget.status?.desiredHealthy ?? 0) > 0
    if (policy === 'AlwaysAllow' || healthy) return
  }
  const served = deps.registry.served('policy', 'v1', 'poddisruptionbudgets')
  if (!served) return
  await updateObject(
    { ...deps.writer, admission: noAdmission },
    { ...writeContext(scope, 'CreateOptions'), served, subresource: 'status', dryRun },
    {
      name: budget.metadata.name ?? '',
      transform: (current) => {
        if (!current) throw notFound(budgets, budget.metadata.name ?? '')
        return takeOne(deepCopy<KubeObject>(current) as unknown as PodDisruptionBudget, pod.metadata.name ?? '', deps.clock.now()) as unknown as KubeObject
      },
    },
  )
}

function takeOne(budget: PodDisruptionBudget, podName: string, nowMs: number): PodDisruptionBudget {
  const { status } = budget
  const name = budget.metadata.name ?? ''
  const refuse = (message: string, retryAfterSeconds: number) =>
    new StatusError('TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
      details: { causes: [{ reason: 'DisruptionBudget', message }], retryAfterSeconds },
    })
  if (!status || (status.observedGeneration ?? 0) < (budget.metadata.generation ?? 0)) {
    throw refuse(`The disruption budget ${name} is still being processed by the server.`, 10)
  }
  if ((status.disruptionsAllowed ?? 0) <= 0) {
    throw refuse(`The disruption budget ${name} needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`, 0)
  }
  status.disruptionsAllowed = (status.disruptionsAllowed ?? 0) - 1
  status.disruptedPods = { ...status.disruptedPods, [podName]: formatTime(nowMs) }
  return budget
}
