/**
 * Empties and removes namespaces that are being deleted (L3): pods first, then everything else that discovery knows, custom resources too;
 * the conditions report remaining content and failures. Upstream: pkg/controller/namespace (v1.36).
 */
import type { Namespace, NamespaceCondition, Pod } from '#api/gen/types/core.v1'
import type { APIGroupList, APIResourceList } from '#api/gen/types/meta.v1'
import { findCondition } from '#api/machinery/conditions'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen, KubeList, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { namespaced, namespaces, pods } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { bucketRateLimiter, itemExponentialFailureRateLimiter, maxOfRateLimiter } from '#client/workqueue/rateLimiter'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf, everyPeriod, type Result } from './framework/reconciler.ts'

export interface NamespaceOptions {
  /** Namespaces that are being deleted are reconciled this often, also without a change. Default 5 min. */
  readonly namespaceSyncPeriodMs?: number | undefined
}

export const namespace: ControllerDescriptor<NamespaceOptions> = {
  name: 'namespace-controller',
  aliases: ['namespace'],
  serviceAccount: 'namespace-controller',
  // Each deletion of a namespace lists and deletes every namespaced resource.
  clientRate: { qps: 20, burst: 100 },
  create: createNamespaceController,
}

const kubernetesFinalizer = 'kubernetes'
/** Wait before checking content that is being deleted; upstream waits half its grace period. */
const contentRemainingMs = 1_000
/** A namespace whose deletion failed is tried again at least this often. */
const longestRetryMs = 60_000
const defaultSyncPeriodMs = 5 * 60_000

interface Remaining {
  /** e.g. `pods. has 2 resource instances`. */
  readonly content: string[]
  readonly finalizers: Map<string, number>
  readonly failures: string[]
  readonly discoveryFailures: string[]
}

function createNamespaceController(context: ControllerContext, { namespaceSyncPeriodMs: syncPeriodMs = defaultSyncPeriodMs }: NamespaceOptions) {
  const { client, clock } = context
  const informer = context.informers.of(namespaces)
  const rateLimiter = maxOfRateLimiter(itemExponentialFailureRateLimiter<string>(5, longestRetryMs), bucketRateLimiter<string>(clock, 10, 100))
  const reconciler = createReconciler(context, { name: namespace.name, queueName: 'namespace', workers: 10, rateLimiter, reconcile })
  reconciler.watch(
    informer,
    enqueueSelf(reconciler.queue, ({ metadata }) => metadata.deletionTimestamp !== undefined),
  )
  const lookAtAll = async () => {
    for (const { metadata } of informer.store.values()) if (metadata.deletionTimestamp) reconciler.queue.add(metadata.name ?? '')
  }
  reconciler.also((signal) => everyPeriod(context, namespace.name, syncPeriodMs, lookAtAll, signal))
  return reconciler

  async function reconcile(name: string, signal: AbortSignal): Promise<Result | undefined> {
    const object = informer.store.get(name)
    if (!object?.metadata.deletionTimestamp) return undefined
    try {
      let current = await client.of(namespaces).get({ name }, { signal })
      if (current.metadata.uid !== object.metadata.uid || !current.spec.finalizers?.includes(kubernetesFinalizer)) return undefined
      const remaining = await deleteContent(client, name, signal)
      const status = { phase: 'Terminating', conditions: namespaceConditions(current.status?.conditions ?? [], remaining, clock.now()) }
      if (!semanticEqual(status, current.status)) current = await client.of(namespaces).updateStatus({ ...current, status } as Frozen<Namespace>, { signal })
      if (remaining.failures.length + remaining.discoveryFailures.length > 0)
        throw new Error([...remaining.discoveryFailures, ...remaining.failures].join('; '))
      if (remaining.content.length > 0) return { requeueAfterMs: contentRemainingMs }
      const finalizers = current.spec.finalizers?.filter((finalizer) => finalizer !== kubernetesFinalizer) ?? []
      await client.of(namespaces).updateSubresource({ name }, 'finalize', { ...current, spec: { ...current.spec, finalizers } }, { signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
    return undefined
  }
}

async function deleteContent(client: Client, name: string, signal: AbortSignal): Promise<Remaining> {
  const remaining: Remaining = { content: [], finalizers: new Map(), failures: [], discoveryFailures: [] }
  const found = await deletableResources(client, remaining.discoveryFailures, signal)
  // Nothing that pods may still need goes before them.
  const first = found.filter(({ resource }) => isPods(resource))
  for (const one of first) await deleteAll(client, one, name, remaining, signal)
  if (remaining.content.length > 0 || remaining.failures.length > 0) return remaining
  await Promise.all(found.filter((one) => !first.includes(one)).map((one) => deleteAll(client, one, name, remaining, signal)))
  remaining.content.sort()
  return remaining
}

interface Deletable {
  readonly resource: Resource<KubeObject>
  readonly verbs: readonly string[]
}

/** The namespaced resources that can be deleted and listed, one version of each group's resource. */
async function deletableResources(client: Client, failures: string[], signal: AbortSignal): Promise<Deletable[]> {
  const get = async <T>(path: string) => (await client.transport.request({ method: 'GET', path }, signal)).body as T
  const groups = (await get<APIGroupList>('/apis')).groups
  const versions = [
    'v1',
    ...groups.flatMap(({ preferredVersion, versions }) => [preferredVersion, ...versions].flatMap((version) => version?.groupVersion ?? [])),
  ]
  const lists = await Promise.all(
    [...new Set(versions)].map(async (groupVersion) => {
      try {
        return await get<APIResourceList>(groupVersion === 'v1' ? '/api/v1' : `/apis/${groupVersion}`)
      } catch (error) {
        // A version that was removed meanwhile has no content.
        if (!isStatus(error, 'NotFound')) failures.push(`${groupVersion}: ${discoveryFault(groupVersion, error)}`)
        return undefined
      }
    }),
  )
  const found = new Map<string, Deletable>()
  for (const list of lists) {
    const [group = '', version = ''] = list?.groupVersion === 'v1' ? ['', 'v1'] : (list?.groupVersion.split('/') ?? [])
    for (const { name, kind, namespaced: isNamespaced, verbs } of list?.resources ?? []) {
      // Deleting an event through one group deletes it in the other.
      if (!isNamespaced || name.includes('/') || !verbs.includes('delete') || (group === 'events.k8s.io' && name === 'events')) continue
      if (!found.has(`${group}/${name}`)) found.set(`${group}/${name}`, { resource: namespaced(group, version, name, kind), verbs })
    }
  }
  return [...found.values()]
}

/** In upstream's words, whose client reads which versions are stale from the aggregated discovery. */
function discoveryFault(groupVersion: string, error: unknown): string {
  return isStatus(error, 'ServiceUnavailable') || (error as { code?: unknown }).code === 503
    ? `stale GroupVersion discovery: ${groupVersion}`
    : messageOf(error)
}

async function deleteAll(client: Client, { resource, verbs }: Deletable, name: string, remaining: Remaining, signal: AbortSignal): Promise<void> {
  const of = client.of(resource)
  try {
    if (!verbs.includes('list')) return
    let list: Frozen<KubeList<KubeObject>> = await of.list({ namespace: name, signal })
    if (list.items.length === 0) return
    if (verbs.includes('deletecollection')) await of.deleteCollection({ namespace: name, propagationPolicy: 'Background', signal })
    else {
      for (const { metadata } of list.items) {
        await of.delete({ namespace: name, name: metadata.name ?? '' }, { propagationPolicy: 'Background', signal }).catch(unlessNotFound)
      }
    }
    list = await of.list({ namespace: name, signal })
    if (list.items.length === 0) return
    remaining.content.push(`${resource.resource}.${resource.group} has ${list.items.length} resource instances`)
    const finalizers = list.items.flatMap(({ metadata }) => metadata.finalizers ?? [])
    for (const finalizer of finalizers) remaining.finalizers.set(finalizer, (remaining.finalizers.get(finalizer) ?? 0) + 1)
    if (isUnexplained(resource, list.items)) {
      const { group, version, resource: plural } = resource
      remaining.failures.push(`unexpected items still remain in namespace: ${name} for gvr: ${group}/${version}, Resource=${plural}`)
    }
  } catch (error) {
    if (!isStatus(error, 'NotFound') && !isStatus(error, 'MethodNotAllowed')) remaining.failures.push(messageOf(error))
  }
}

const isPods = ({ group, resource }: Resource<KubeObject>) => group === '' && resource === pods.resource

/** Neither a finalizer nor a pod's grace period explains why they are still there after their deletion. */
export function isUnexplained(resource: Resource<KubeObject>, items: readonly Frozen<KubeObject>[]): boolean {
  if (items.some(({ metadata }) => (metadata.finalizers ?? []).length > 0)) return false
  return !(isPods(resource) && items.some(isEndingGracefully))
}

function isEndingGracefully(item: Frozen<KubeObject>): boolean {
  const { spec, status } = item as Frozen<Pod>
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed' && (spec.terminationGracePeriodSeconds ?? 0) > 0
}

function unlessNotFound(error: unknown): void {
  if (!isStatus(error, 'NotFound')) throw error
}

/** The five conditions, with upstream's reasons and messages. */
function namespaceConditions(before: readonly Frozen<NamespaceCondition>[], remaining: Remaining, nowMs: number): NamespaceCondition[] {
  const { content, finalizers, failures, discoveryFailures } = remaining
  const fault = (type: string, bad: boolean, badReason: string, badMessage: string, goodReason: string, goodMessage: string): NamespaceCondition => {
    const wanted = { type, status: bad ? 'True' : 'False', reason: bad ? badReason : goodReason, message: bad ? badMessage : goodMessage }
    const there = findCondition(before, type)
    const moved = there?.status !== wanted.status
    return { ...wanted, lastTransitionTime: moved ? formatTime(nowMs) : there?.lastTransitionTime }
  }
  const finalizersText = [...finalizers].sort().map(([finalizer, count]) => `${finalizer} in ${count} resource instances`)
  return [
    fault(
      'NamespaceDeletionDiscoveryFailure',
      discoveryFailures.length > 0,
      'DiscoveryFailed',
      `Discovery failed for some groups, ${discoveryFailures.length} failing: unable to retrieve the complete list of server APIs: ${[...discoveryFailures].sort().join(', ')}`,
      'ResourcesDiscovered',
      'All resources successfully discovered',
    ),
    fault('NamespaceDeletionGroupVersionParsingFailure', false, '', '', 'ParsedGroupVersions', 'All legacy kube types successfully parsed'),
    fault(
      'NamespaceDeletionContentFailure',
      failures.length > 0,
      'ContentDeletionFailed',
      `Failed to delete all resource types, ${failures.length} remaining: ${[...failures].sort().join(', ')}`,
      'ContentDeleted',
      'All content successfully deleted, may be waiting on finalization',
    ),
    fault(
      'NamespaceContentRemaining',
      content.length > 0,
      'SomeResourcesRemain',
      `Some resources are remaining: ${content.join(', ')}`,
      'ContentRemoved',
      'All content successfully removed',
    ),
    fault(
      'NamespaceFinalizersRemaining',
      finalizers.size > 0,
      'SomeFinalizersRemain',
      `Some content in the namespace has finalizers remaining: ${finalizersText.join(', ')}`,
      'ContentHasNoFinalizers',
      'All content-preserving finalizers finished',
    ),
  ]
}
