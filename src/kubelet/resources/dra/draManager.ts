/**
 * Has DRA drivers prepare the claims of a pod before it starts, and unprepare them when no pod of the node needs them any more (L3).
 * Upstream: kubelet/cm/dra/manager.go, dynamic-resource-allocation/resourceclaim (v1.36).
 */
import type { ContainerStatus, PodResourceClaim } from '#api/gen/types/core.v1'
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { resourceClaims } from '#client/builtIn'
import type { DraClaim, DraPluginClient } from '#grpc/draPlugin'
import type { CheckpointFile } from '../../core/checkpointFile.ts'
import type { FrozenContainer, FrozenPod } from '../../core/containers.ts'
import type { KubeletBase } from '../../core/context.ts'
import { type DraMetrics, draMetrics } from '../managerMetrics.ts'
import { ClaimCache, type ClaimInfo, cdiDevicesOf, parseClaims, renderClaims } from './claimCache.ts'
import type { DraDrivers } from './draDrivers.ts'

export interface DraManager {
  /** @throws Error in upstream's words: the pod cannot start yet */
  prepare(pod: FrozenPod): Promise<void>
  /** @throws Error when a driver does not let go: try again */
  unprepare(podUid: string): Promise<void>
  cdiDevices(pod: FrozenPod, container: FrozenContainer): string[]
  claims(pod: FrozenPod, container: FrozenContainer): readonly ClaimInfo[]
  status(pod: FrozenPod, container: FrozenContainer): NonNullable<ContainerStatus['allocatedResourcesStatus']>
  /** Pods that use a claim of which the driver has a part. */
  podsOf(driver: string): string[]
  pods(): ReadonlySet<string>
}

type Context = Pick<KubeletBase, 'client' | 'log' | 'metrics' | 'clock'>

/** The claim's name; undefined: none was made for it, and none is needed. @throws Error while it is still to be made */
function claimNameOf(pod: FrozenPod, podClaim: Frozen<PodResourceClaim>): { readonly name: string | undefined; readonly isGenerated: boolean } {
  if (podClaim.resourceClaimName !== undefined) return { name: podClaim.resourceClaimName, isGenerated: false }
  const { namespace, name } = pod.metadata
  if (podClaim.resourceClaimTemplateName === undefined) {
    throw new Error(`pod "${namespace}/${name}", spec.resourceClaim "${podClaim.name}": none of the supported fields are set`)
  }
  const status = pod.status?.resourceClaimStatuses?.find((candidate) => candidate.name === podClaim.name)
  if (!status) throw new Error(`pod "${namespace}/${name}": ResourceClaim not created yet`)
  return { name: status.resourceClaimName, isGenerated: true }
}

/** Claims that the spec names, then the one that stands for extended resources. */
function podClaims(pod: FrozenPod): { readonly podClaim: string | undefined; readonly name: string; readonly isGenerated: boolean }[] {
  const named = (pod.spec.resourceClaims ?? []).flatMap((podClaim) => {
    const { name, isGenerated } = claimNameOf(pod, podClaim)
    return name === undefined ? [] : [{ podClaim: podClaim.name, name, isGenerated }]
  })
  const extended = pod.status?.extendedResourceClaimStatus
  return extended ? [...named, { podClaim: undefined, name: extended.resourceClaimName, isGenerated: false }] : named
}

function checkUse(pod: FrozenPod, claim: Frozen<ResourceClaim>, isGenerated: boolean): void {
  const { namespace, name, uid } = pod.metadata
  const owner = claim.metadata.ownerReferences?.find(({ controller }) => controller)
  if (isGenerated && owner?.uid !== uid) {
    throw new Error(`ResourceClaim ${claim.metadata.namespace}/${claim.metadata.name} was not created for Pod ${namespace}/${name} (Pod is not owner)`)
  }
  if (!claim.status?.reservedFor?.some((consumer) => consumer.uid === uid)) {
    throw new Error(`pod ${name} (${uid}) is not allowed to use ResourceClaim ${claim.metadata.name} (${claim.metadata.uid})`)
  }
}

function claimInfo(claim: Frozen<ResourceClaim>): ClaimInfo {
  const { name = '', namespace = '', uid = '' } = claim.metadata
  const allocation = claim.status?.allocation
  if (!allocation) throw new Error(`ResourceClaim ${name}: not allocated`)
  const drivers = new Map((allocation.devices?.results ?? []).map(({ driver }) => [driver, []]))
  return { uid, name, namespace, podUids: new Set(), drivers, prepared: false }
}

export async function createDraManager(context: Context, drivers: Pick<DraDrivers, 'get' | 'health'>, file: CheckpointFile): Promise<DraManager> {
  const cache = await restore(file)
  const metrics = draMetrics(context)
  metrics.claims(cache.all())
  const save = () => {
    metrics.claims(cache.all())
    return file.write(() => renderClaims(cache))
  }
  /** Pods are prepared one at a time: two may share a claim. */
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.catch(() => {}).then(work)
    turn = done.catch(() => {})
    return done
  }

  const prepare = async (pod: FrozenPod): Promise<void> => {
    const { namespace = '', uid: podUid = '' } = pod.metadata
    const wanted: ClaimInfo[] = []
    // First everything is looked at: what fails before any driver was asked leaves nothing to undo.
    for (const { name, isGenerated } of podClaims(pod)) {
      const claim = await context.client
        .of(resourceClaims)
        .get({ namespace, name })
        .catch((error: unknown) => {
          throw new Error(`fetch ResourceClaim ${name}: ${messageOf(error)}`)
        })
      checkUse(pod, claim, isGenerated)
      const fresh = claimInfo(claim)
      for (const driver of fresh.drivers.keys()) drivers.get(driver)
      const known = cache.get(namespace, name)
      if (known && known.uid !== fresh.uid) {
        throw new Error(`old ResourceClaim with same name ${name} and different UID ${known.uid} still exists (previous pod force-deleted?!)`)
      }
      wanted.push(known ?? fresh)
    }
    for (const claim of wanted) {
      cache.add(claim)
      claim.podUids.add(podUid)
    }
    const open = wanted.filter((claim) => !claim.prepared)
    if (wanted.length > 0) await save()
    for (const [driver, claims] of byDriver(open)) await prepareBy(drivers.get(driver), driver, claims, metrics)
    for (const claim of open) claim.prepared = true
    if (open.length > 0) await save()
  }

  const unprepare = async (podUid: string): Promise<void> => {
    const used = cache.of(podUid)
    const last = used.filter((claim) => claim.podUids.size === 1)
    for (const claim of used) if (!last.includes(claim)) claim.podUids.delete(podUid)
    for (const [driver, claims] of byDriver(last)) {
      const plugin = drivers.get(driver)
      const call = metrics.call(driver, 'NodeUnprepareResources', () => plugin.unprepare(claims.map(reference)))
      const results = await call.catch(wrap('NodeUnprepareResources'))
      check('NodeUnprepareResources', claims, results)
    }
    for (const { namespace, name } of last) cache.delete(namespace, name)
    if (used.length > 0) await save()
  }

  const claimsOf = (
    pod: FrozenPod,
    container: FrozenContainer,
  ): { readonly claim: ClaimInfo; readonly request: string | undefined; readonly name: string }[] => {
    const { namespace = '' } = pod.metadata
    const known = (name: string) => {
      const claim = cache.get(namespace, name)
      if (!claim) throw new Error(`unable to get information for ResourceClaim ${name}`)
      return claim
    }
    const all = podClaims(pod)
    const named = (container.resources?.claims ?? []).flatMap(({ name, request }) =>
      all.filter(({ podClaim }) => podClaim === name).map((found) => ({ claim: known(found.name), request, name: request ? `${name}/${request}` : name })),
    )
    const extended = pod.status?.extendedResourceClaimStatus
    const mapped = (extended?.requestMappings ?? []).filter(({ containerName }) => containerName === container.name)
    return [
      ...named,
      ...mapped.map(({ requestName, resourceName }) => ({ claim: known(extended?.resourceClaimName ?? ''), request: requestName, name: resourceName })),
    ]
  }

  return {
    prepare: (pod) =>
      inTurn(() => (hasClaims(pod) ? metrics.operation('PrepareResources', () => prepare(pod)) : prepare(pod))).catch((error: unknown) => {
        throw new Error(`prepare dynamic resources: ${messageOf(error)}`)
      }),
    unprepare: (podUid) =>
      inTurn(() => (cache.of(podUid).length > 0 ? metrics.operation('UnprepareResources', () => unprepare(podUid)) : unprepare(podUid))).catch(
        (error: unknown) => {
          throw new Error(`unprepare dynamic resources: ${messageOf(error)}`)
        },
      ),
    cdiDevices: (pod, container) => [...new Set(claimsOf(pod, container).flatMap(({ claim, request }) => cdiDevicesOf(claim, request)))],
    claims: (pod, container) => [...new Set(claimsOf(pod, container).map(({ claim }) => claim))],
    status: (pod, container) => {
      if (cache.of(pod.metadata.uid ?? '').length === 0) return []
      return claimsOf(pod, container).flatMap(({ claim, name }) => {
        const resources = [...claim.drivers].flatMap(([driver, devices]) =>
          devices.map(({ poolName, deviceName, cdiDeviceIds }) => ({
            resourceID: cdiDeviceIds[0] ?? `${driver}/${poolName}/${deviceName}`,
            health: drivers.health(driver, poolName, deviceName),
          })),
        )
        return resources.length > 0 ? [{ name: `claim:${name}`, resources }] : []
      })
    },
    podsOf: (driver) => [...new Set(cache.all().flatMap((claim) => (claim.drivers.has(driver) ? [...claim.podUids] : [])))],
    pods: () => new Set(cache.all().flatMap(({ podUids }) => [...podUids])),
  }
}

const hasClaims = (pod: FrozenPod) => (pod.spec.resourceClaims ?? []).length > 0 || pod.status?.extendedResourceClaimStatus !== undefined

const reference = ({ namespace, uid, name }: ClaimInfo): DraClaim => ({ namespace, uid, name })

function byDriver(claims: readonly ClaimInfo[]): Map<string, ClaimInfo[]> {
  const batches = new Map<string, ClaimInfo[]>()
  for (const claim of claims) for (const driver of claim.drivers.keys()) batches.set(driver, [...(batches.get(driver) ?? []), claim])
  return batches
}

function wrap(call: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${call}: ${messageOf(error)}`)
  }
}

/** Every claim must be answered, and no other. @throws Error in upstream's words */
function check(call: string, claims: readonly ClaimInfo[], results: Readonly<Record<string, { readonly error: string }>>): void {
  for (const [uid, { error }] of Object.entries(results)) {
    const claim = claims.find((candidate) => candidate.uid === uid)
    if (!claim) throw new Error(`${call} returned result for unknown claim UID ${uid}`)
    if (error !== '') throw new Error(`${call} failed for ResourceClaim ${claim.name}: ${error}`)
  }
  const skipped = claims.length - Object.keys(results).length
  if (skipped !== 0) throw new Error(`${call} skipped ${skipped} ResourceClaims`)
}

async function prepareBy(plugin: DraPluginClient, driver: string, claims: readonly ClaimInfo[], metrics: DraMetrics): Promise<void> {
  const call = metrics.call(driver, 'NodePrepareResources', () => plugin.prepare(claims.map(reference)))
  const results = await call.catch(wrap('NodePrepareResources'))
  check('NodePrepareResources', claims, results)
  for (const claim of claims) {
    const devices = (results[claim.uid]?.devices ?? []).map((device) => ({ ...device, shareId: device.shareId || undefined }))
    claim.drivers.set(driver, devices)
  }
}

async function restore(file: CheckpointFile): Promise<ClaimCache> {
  const text = await file.read()
  if (text === undefined) return new ClaimCache()
  try {
    return parseClaims(text)
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(
      `failed to restore the claims of this node: ${reason}, please drain this node and delete the checkpoint file "${file.path}" before restarting Kubelet`,
    )
  }
}
