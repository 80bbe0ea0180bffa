/**
 * pods/eviction (L3): deletes a pod if its disruption budget allows it; otherwise 429, which clients retry. The pod gets the condition
 * DisruptionTarget. Budgets are ./disruptionBudgets.ts. Upstream: pkg/registry/core/pod/storage/eviction.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { DeleteOptions } from '#api/gen/types/meta.v1'
import type { Eviction } from '#api/gen/types/policy.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, conflict, internalError, isStatus, notFound } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { deepCopy } from '#base/frozen'
import { noAdmission } from '../../admission/chain.ts'
import type { Answer } from '../../core/answer.ts'
import { decodeBody } from '../../core/body.ts'
import { admit } from '../../registry/admit.ts'
import { ensureNamespace } from '../../registry/create.ts'
import { deleteObject } from '../../registry/deletion.ts'
import { keyFor, type WriteContext } from '../../registry/storedResource.ts'
import { updateObject } from '../../registry/update.ts'
import { attributesOf } from '../../registry/writer.ts'
import { checkedDeletion } from '../deleteOptions.ts'
import { type Scope, writeContext } from '../scope.ts'
import { budgetOf, claimDisruption, mayGoUnhealthy, stillProcessed } from './disruptionBudgets.ts'
import { setPodCondition } from './podConditions.ts'

export const evictionHandlers = { create: evict }

const pods = { group: '', resource: 'pods' }
/** Bodies of policy/v1beta1, which is no longer served, are still accepted: clients before 1.22 send them. */
const expected = { group: 'policy', version: 'v1', kind: 'Eviction', otherVersions: ['policy/v1beta1'] }
/** Attempts after conflicts with other writers of the pod. */
const maxTries = 20

interface Request {
  readonly scope: Scope
  /** Context of the pod's deletion, not of the eviction's creation. */
  readonly context: WriteContext
  readonly name: string
  readonly options: Partial<DeleteOptions>
}

async function evict(scope: Scope): Promise<Answer> {
  const { info } = scope
  const schema = schemaFor('policy', 'v1', 'Eviction')
  if (!schema) throw new Error('no schema for Eviction')
  const eviction = (await decodeBody(scope, { ...expected, schema })) as unknown as Eviction
  if (eviction.metadata.name && eviction.metadata.name !== info.name) throw badRequest('name in URL does not match name in Eviction object')
  const options: Partial<DeleteOptions> = eviction.deleteOptions ?? {}
  checkOptions(scope, eviction.metadata.name ?? info.name, options)
  const context = { ...writeContext(scope, 'CreateOptions', options.dryRun?.length ? options : {}), subresource: '' }
  ensureNamespace(context, eviction as unknown as KubeObject)
  await admitEviction(scope, eviction, context)
  const request = { scope, context, name: info.name, options }
  const pod = await evictWithoutBudget(request)
  if (pod) await evictWithinBudget(request, pod)
  return { type: 'value', status: 201, value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } }
}

function checkOptions({ request }: Scope, name: string, options: Partial<DeleteOptions>): void {
  if (options.ignoreStoreReadErrorWithClusterBreakingPotential) {
    const at = FieldPath.of('deleteOptions', 'ignoreStoreReadErrorWithClusterBreakingPotential')
    throw invalid({ group: '', kind: 'Eviction' }, name, [fieldError.invalid(at, true, 'can not be set for pod eviction, try after removing the option')])
  }
  const asked = request.query.getAll('dryRun')
  const own = options.dryRun ?? []
  if (asked.length > 0 && own.length > 0 && asked.join(' ') !== own.join(' '))
    throw internalError(new Error(`Non-matching dry-run options in request and content: [${asked.join(' ')}] and [${own.join(' ')}]`))
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

/** Deletes a pod that is pending or has ended, which disrupts nothing; returns any other pod. */
async function evictWithoutBudget(request: Request): Promise<Frozen<Pod> | undefined> {
  const hasVersion = request.options.preconditions?.resourceVersion !== undefined
  for (let attempt = 1; ; attempt++) {
    const pod = await currentPod(request)
    const isOver = isPodTerminal(pod) || pod.metadata.deletionTimestamp !== undefined
    if (!isOver && pod.status?.phase !== 'Pending') return pod
    try {
      // A pending pod may become ready meanwhile, and then it counts.
      await endPod(request, isOver ? undefined : pod)
      return undefined
    } catch (error) {
      if (!isStatus(error, 'Conflict') || hasVersion || attempt === maxTries) throw error
    }
  }
}

async function currentPod({ scope, context, name }: Request): Promise<Frozen<Pod>> {
  const { deps, info, served } = scope
  const entry = await deps.writer.storage.read(served.stored, keyFor(served, info.namespace, name))
  context.cancellation?.signal.throwIfAborted()
  if (!entry) throw notFound(pods, name)
  return entry.object as unknown as Frozen<Pod>
}

async function evictWithinBudget(request: Request, pod: Frozen<Pod>): Promise<void> {
  const { scope, context, name, options } = request
  const budget = budgetOf(scope, pod)
  const isUnhealthy = budget !== undefined && mayGoUnhealthy(budget, pod)
  if (budget && !isUnhealthy) await claimDisruption(scope, budget.metadata.name ?? '', name, context.dryRun)
  try {
    // The budget was checked for this pod, not for one that became ready meanwhile or was recreated under its name.
    await endPod(request, isUnhealthy ? pod : undefined, pod.metadata.uid)
  } catch (error) {
    if (isStatus(error, 'Conflict') && isUnhealthy && options.preconditions?.resourceVersion === undefined) throw stillProcessed(budget.metadata.name ?? '')
    throw error
  }
}

/** @param like the state that the pod must still have */
async function endPod(request: Request, like: Frozen<Pod> | undefined, uid?: string): Promise<void> {
  const { scope, context, name, options } = request
  const deletion = checkedDeletion(options)
  const preconditions = { uid, ...(like ? { resourceVersion: like.metadata.resourceVersion } : {}), ...options.preconditions }
  const changed = context.dryRun ? undefined : await addCondition(request, preconditions)
  if (changed !== undefined && preconditions.resourceVersion !== undefined) preconditions.resourceVersion = changed
  // The right to evict implies the deletion, and admission has already checked the eviction.
  await deleteObject({ ...scope.deps.writer, admission: noAdmission }, context, { ...deletion, name, preconditions })
}

/** Sets the condition that tells the pod's owners why it ended. @returns the pod's resourceVersion after that */
async function addCondition({ scope, context, name }: Request, preconditions: { uid?: string | undefined; resourceVersion?: string | undefined }) {
  const { deps } = scope
  const { entry } = await updateObject(
    { ...deps.writer, admission: noAdmission },
    { ...context, subresource: 'status', managedFieldsDone: true },
    {
      name,
      transform: (current) => {
        if (!current) throw notFound(pods, name)
        checkPreconditions(name, current, preconditions)
        const pod = deepCopy<KubeObject>(current) as unknown as Pod
        const why = { status: 'True', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' }
        setPodCondition(pod, { type: 'DisruptionTarget', ...why }, deps.clock.now())
        return pod as unknown as KubeObject
      },
    },
  )
  return String(entry.resourceVersion)
}

function checkPreconditions(name: string, { metadata }: Frozen<KubeObject>, wanted: { uid?: string | undefined; resourceVersion?: string | undefined }): void {
  const differ = (what: string, asked: string, found: string | undefined, may: string) =>
    conflict(pods, name, `the ${what} in the precondition (${asked}) does not match the ${what} in record (${found}). The object might have been ${may}`)
  if (wanted.uid && wanted.uid !== metadata.uid) throw differ('UID', wanted.uid, metadata.uid, 'deleted and then recreated')
  if (wanted.resourceVersion && wanted.resourceVersion !== metadata.resourceVersion)
    throw differ('ResourceVersion', wanted.resourceVersion, metadata.resourceVersion, 'modified')
}
