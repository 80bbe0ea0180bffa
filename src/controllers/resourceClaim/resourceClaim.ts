/**
 * Makes resource claims from the templates that pods name, and reserves claims for pods that were put on a node without the scheduler (L3); their end
 * is claimRelease.ts' work. Upstream: pkg/controller/resourceclaim (v1.36).
 */
import type { Pod, PodResourceClaim } from '#api/gen/types/core.v1'
import type { ResourceClaim, ResourceClaimTemplate } from '#api/gen/types/resource.v1'
import { controllerReference } from '#api/helpers/owners'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { pods, resourceClaims, resourceClaimTemplates } from '#client/builtIn'
import type { Indexers } from '#client/cache/indexer'
import type { NewObject } from '#client/client'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { createClaimMetrics } from './claimMetrics.ts'
import { createClaimRelease } from './claimRelease.ts'
import { claimNameOf, generatedNamePrefix, isPodDone, knownClaimNames, needsReservation, owningPod, podClaimAnnotation } from './podClaims.ts'

export const resourceClaim: ControllerDescriptor = {
  name: 'resourceclaim-controller',
  aliases: ['resource-claim-controller'],
  serviceAccount: 'resource-claim-controller',
  create: createResourceClaimController,
}

const fieldManager = 'ResourceClaimController'
const podClaimIndex = 'resourceClaim'
const podIndexers: Indexers<Pod> = { [podClaimIndex]: (pod) => knownClaimNames(pod).map((name) => `${pod.metadata.namespace}/${name}`) }
const ownerIndex = 'owningPod'
const claimIndexers: Indexers<ResourceClaim> = { [ownerIndex]: (claim) => [owningPod(claim)?.uid ?? ''] }

function createResourceClaimController(context: ControllerContext) {
  const { client } = context
  const podInformer = context.informers.of(pods)
  const claims = context.informers.of(resourceClaims)
  const templates = context.informers.of(resourceClaimTemplates)
  podInformer.addIndexers(podIndexers)
  claims.addIndexers(claimIndexers)
  const events = context.events('resource_claim')
  const metrics = createClaimMetrics(context.metrics)
  /** Made by us and not seen in the cache yet, by pod and claim: a second try must not make a second one. */
  const made = new Map<string, Frozen<ResourceClaim>>()
  const { syncClaim } = createClaimRelease(client, claims, podInformer)
  const sync = (key: string, signal: AbortSignal) => (key.startsWith('pod:') ? syncPod(key.slice(4), signal) : syncClaim(key.slice(6), signal))
  const reconciler = createReconciler(context, { name: resourceClaim.name, queueName: 'resource_claim', workers: 50, reconcile: sync })
  const enqueueClaim = (namespace: string | undefined, name: string) => reconciler.queue.add(`claim:${namespace}/${name}`)
  const observePod = (pod: Frozen<Pod>, gone: boolean) => {
    if ((pod.spec.resourceClaims ?? []).length === 0 && !pod.status?.extendedResourceClaimStatus) return
    if (gone || isPodDone(pod)) for (const name of knownClaimNames(pod)) enqueueClaim(pod.metadata.namespace, name)
    if (!gone && !pod.metadata.deletionTimestamp) reconciler.queue.add(`pod:${keyOf(pod)}`)
  }
  reconciler.watch(podInformer, {
    onAdd: (pod) => observePod(pod, false),
    onUpdate: (_, pod) => observePod(pod, false),
    onDelete: (pod) => observePod(pod, true),
  })
  const observeClaim = (claim: Frozen<ResourceClaim>) => {
    for (const [key, one] of made) if (one.metadata.uid === claim.metadata.uid) made.delete(key)
    enqueueClaim(claim.metadata.namespace, claim.metadata.name ?? '')
    for (const pod of podInformer.store.byIndex(podClaimIndex, keyOf(claim))) observePod(pod, false)
  }
  reconciler.watch(claims, {
    onAdd: (claim) => {
      metrics.observe(undefined, claim)
      observeClaim(claim)
    },
    onUpdate: (old, claim) => {
      metrics.observe(old, claim)
      observeClaim(claim)
    },
    onDelete: (claim) => {
      metrics.observe(claim, undefined)
      for (const pod of podInformer.store.byIndex(podClaimIndex, keyOf(claim))) observePod(pod, false)
    },
  })
  // Pods that wait for their template are tried again; its coming is no event of theirs.
  reconciler.needs(templates)
  return reconciler

  async function syncPod(key: string, signal: AbortSignal): Promise<undefined> {
    const pod = podInformer.store.get(key)
    if (!pod || pod.metadata.deletionTimestamp || isPodDone(pod)) return
    const fresh = new Map<string, string>()
    for (const podClaim of pod.spec.resourceClaims ?? []) {
      try {
        const name = await ensureClaim(pod, podClaim, signal)
        if (name !== undefined) fresh.set(podClaim.name, name)
      } catch (error) {
        events.event(pod, 'Warning', 'FailedResourceClaimCreation', `PodResourceClaim ${podClaim.name}: ${messageOf(error)}`)
        throw error
      }
    }
    if (fresh.size > 0) await tellPod(pod, fresh, signal)
    if (pod.spec.nodeName) await reserve(pod, signal)
  }

  /** @returns the name of a claim that the pod's status does not know yet */
  async function ensureClaim(pod: Frozen<Pod>, podClaim: Frozen<PodResourceClaim>, signal: AbortSignal): Promise<string | undefined> {
    const { namespace, uid } = pod.metadata
    const known = claimNameOf(pod, podClaim)
    if (known.state === 'unneeded' || podClaim.resourceClaimTemplateName === undefined) return undefined
    if (known.state === 'known') {
      const claim = claims.lister.get({ namespace, name: known.name })
      if (claim && owningPod(claim)?.uid === uid) return undefined
    }
    const madeKey = `${uid}/${podClaim.name}`
    const orphan = claims.store.byIndex(ownerIndex, uid ?? '').find(({ metadata }) => metadata.annotations?.[podClaimAnnotation] === podClaim.name)
    const there = orphan ?? made.get(madeKey)
    if (there) return there.metadata.name
    const template = templates.lister.get({ namespace, name: podClaim.resourceClaimTemplateName })
    if (!template)
      throw new Error(
        `resource claim template "${podClaim.resourceClaimTemplateName}": resourceclaimtemplate.resource.k8s.io "${podClaim.resourceClaimTemplateName}" not found`,
      )
    const isAdmin = template.spec.spec.devices?.requests?.some(({ exactly }) => exactly?.adminAccess === true) === true
    try {
      const claim = await client.of(resourceClaims).create(claimFromTemplate(pod, podClaim.name, template), { signal })
      metrics.created(true, isAdmin)
      if (!claims.lister.get({ namespace, name: claim.metadata.name ?? '' })) made.set(madeKey, claim)
      return claim.metadata.name
    } catch (error) {
      metrics.created(false, isAdmin)
      throw error
    }
  }

  async function tellPod(pod: Frozen<Pod>, fresh: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    const known = (pod.status?.resourceClaimStatuses ?? []).filter((one) => !fresh.has(one.name)).map((one) => ({ ...one }))
    const resourceClaimStatuses = [...known, ...[...fresh].map(([claim, resourceClaimName]) => ({ name: claim, resourceClaimName }))]
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, uid }, status: { resourceClaimStatuses } }
    await client.of(pods).patch({ namespace, name }, 'apply', body, { subresource: 'status', fieldManager, force: true, signal })
  }

  /** The scheduler reserves the claims that it allocates. A pod with a node set by hand passes no scheduler, so its claims are reserved here. */
  async function reserve(pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid = '' } = pod.metadata
    for (const podClaim of pod.spec.resourceClaims ?? []) {
      const known = claimNameOf(pod, podClaim)
      const claim = known.state === 'known' ? claims.lister.get({ namespace, name: known.name }) : undefined
      if (!claim || known.state !== 'known' || (known.mustBeOwned && owningPod(claim)?.uid !== uid) || !needsReservation(pod, claim)) continue
      const reservedFor = [...(claim.status.reservedFor ?? []), { resource: 'pods', name, uid }]
      await client.of(resourceClaims).updateStatus({ ...claim, status: { ...claim.status, reservedFor } } as Frozen<ResourceClaim>, { signal })
    }
  }
}

function claimFromTemplate(pod: Frozen<Pod>, name: string, { spec }: Frozen<ResourceClaimTemplate>): NewObject<ResourceClaim> {
  const { labels, annotations } = spec.metadata ?? {}
  return {
    metadata: {
      namespace: pod.metadata.namespace,
      generateName: generatedNamePrefix(pod.metadata.name ?? '', name),
      ownerReferences: [controllerReference(pod)],
      annotations: { ...annotations, [podClaimAnnotation]: name },
      ...(labels ? { labels: { ...labels } } : {}),
    },
    spec: deepCopy<ResourceClaim['spec']>(spec.spec),
  }
}
