/** Claims, the pods that mount them, and snapshots of them, all in the default namespace. */
import { inParallel } from '../cluster/bareCluster.ts'
import type { LoadClient } from './load.ts'
import { benchContainer, type PodWatch, podManifest, podsPath, removeByApi, until } from './realPods.ts'
import { watchLines } from './watchLines.ts'

export const claimsPath = '/api/v1/namespaces/default/persistentvolumeclaims'
const snapshotsPath = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots'

/** The class of the cluster's local directories, and that of the addon csi-hostpath. */
export const localPathClass = 'standard'
export const hostPathClass = 'csi-hostpath'

export function claimManifest(name: string, storageClassName: string, storage = '16Mi'): object {
  const spec = { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } }
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: 'default' }, spec }
}

function podWithClaim(name: string, claimName: string): object {
  const container = { ...benchContainer, volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  return podManifest(name, container, { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] })
}

/** Milliseconds from the request to create the claim, and a pod with it, until the pod was seen to run. Without a class: a pod without a claim. */
export async function podWithVolume(client: LoadClient, watch: PodWatch, name: string, storageClassName?: string): Promise<number> {
  const started = performance.now()
  if (storageClassName !== undefined) await client.ask('POST', claimsPath, claimManifest(name, storageClassName))
  await client.ask('POST', podsPath, storageClassName === undefined ? podManifest(name) : podWithClaim(name, name))
  return (await watch.running(name)) - started
}

/** Removes pods with their claims, and waits for the end of their volumes. */
export async function removeVolumes(client: LoadClient, watch: PodWatch, names: readonly string[], storageClassName?: string): Promise<void> {
  await inParallel(names.length, (index) => removeByApi(client, watch, names[index]!), names.length)
  if (storageClassName === undefined) return
  for (const name of names) await client.ask('DELETE', `${claimsPath}/${name}`)
  await noneLeft(client, '/api/v1/persistentvolumes')
}

export async function noneLeft(client: LoadClient, path: string): Promise<void> {
  const count = async () => (JSON.parse((await client.ask('GET', path)).body) as { items: unknown[] }).items.length
  await until(`the end of all objects of ${path}`, async () => (await count()) === 0 || undefined)
}

/** Resolves when so many claims are seen to be bound, with the time then. */
export async function watchBound(client: LoadClient, count: number): Promise<() => Promise<number>> {
  const boundAt = new Map<string, number>()
  await watchLines(await client.connect(), `${claimsPath}?watch=true`, (line) => {
    const name = /"name":"([a-z0-9-]+)","namespace":"default"/.exec(line)?.[1]
    if (name !== undefined && line.includes('"phase":"Bound"') && !boundAt.has(name)) boundAt.set(name, performance.now())
  })
  return () => until(`${count} claims to be bound`, () => (boundAt.size >= count ? Math.max(...boundAt.values()) : undefined))
}

/** Milliseconds from the request to create a snapshot of the claim until it was seen to be ready. */
export async function snapshotOf(client: LoadClient, claim: string, name: string): Promise<number> {
  const ready = new Set<string>()
  await watchLines(await client.connect(), `${snapshotsPath}?watch=true`, (line) => {
    if (line.includes(`"name":"${name}"`) && line.includes('"readyToUse":true')) ready.add(name)
  })
  const started = performance.now()
  const spec = { volumeSnapshotClassName: hostPathClass, source: { persistentVolumeClaimName: claim } }
  await client.ask('POST', snapshotsPath, { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot', metadata: { name, namespace: 'default' }, spec })
  await until(`snapshot ${name} to be ready`, () => ready.has(name) || undefined)
  return performance.now() - started
}

export async function removeSnapshot(client: LoadClient, name: string): Promise<void> {
  await client.ask('DELETE', `${snapshotsPath}/${name}`)
  await noneLeft(client, snapshotsPath)
}

/** The id under which the driver knows the claim's volume. */
export async function volumeIdOf(client: LoadClient, claim: string): Promise<string> {
  const { spec } = JSON.parse((await client.ask('GET', `${claimsPath}/${claim}`)).body) as { spec: { volumeName: string } }
  const volume = JSON.parse((await client.ask('GET', `/api/v1/persistentvolumes/${spec.volumeName}`)).body) as { spec: { csi: { volumeHandle: string } } }
  return volume.spec.csi.volumeHandle
}
