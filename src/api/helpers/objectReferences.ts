/**
 * Which other objects a pod or a persistent volume names (L1, pure). Upstream: VisitPodSecretNames and VisitPodConfigmapNames of pkg/api/v1/pod/util.go,
 * VisitPVSecretNames of pkg/api/v1/persistentvolume/util.go, HasAPIObjectReference of pkg/api/pod/util.go (v1.36).
 */
import type { Container, EphemeralContainer, PersistentVolume, Pod, SecretReference, Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

type AnyContainer = Frozen<Container> | Frozen<EphemeralContainer>

function containersOf({ spec }: Frozen<Pod>): AnyContainer[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])]
}

const named = (...names: readonly (string | undefined)[]): string[] => names.filter((name): name is string => name !== undefined && name !== '')

/** The secrets that containers, volumes and image pulls need. A name may appear twice. */
export function podSecretNames(pod: Frozen<Pod>): string[] {
  const names: string[] = []
  const add = (name: string | undefined) => void (name && names.push(name))
  for (const { name } of pod.spec?.imagePullSecrets ?? none) add(name)
  for (const { env = none, envFrom = none } of containersOf(pod)) {
    for (const { secretRef } of envFrom) add(secretRef?.name)
    for (const { valueFrom } of env) add(valueFrom?.secretKeyRef?.name)
  }
  for (const volume of pod.spec?.volumes ?? none) names.push(...volumeSecretNames(volume))
  return names
}

const none: readonly never[] = []

function volumeSecretNames(volume: Frozen<Volume>): string[] {
  const byReference = [volume.cephfs, volume.cinder, volume.flexVolume, volume.iscsi, volume.rbd, volume.scaleIO, volume.storageos]
  return named(
    volume.azureFile?.secretName,
    ...byReference.map((source) => source?.secretRef?.name),
    ...(volume.projected?.sources ?? []).map(({ secret }) => secret?.name),
    volume.secret?.secretName,
    volume.csi?.nodePublishSecretRef?.name,
  )
}

/** The config maps that containers and volumes need. A name may appear twice. */
export function podConfigMapNames(pod: Frozen<Pod>): string[] {
  const names: string[] = []
  const add = (name: string | undefined) => void (name && names.push(name))
  for (const { env = none, envFrom = none } of containersOf(pod)) {
    for (const { configMapRef } of envFrom) add(configMapRef?.name)
    for (const { valueFrom } of env) add(valueFrom?.configMapKeyRef?.name)
  }
  for (const { configMap, projected } of pod.spec?.volumes ?? none) {
    add(configMap?.name)
    for (const source of projected?.sources ?? none) add(source.configMap?.name)
  }
  return names
}

/** The claims of a pod's volumes, those included that are made for it. */
export function podClaimNames({ metadata, spec }: Frozen<Pod>): string[] {
  return (spec?.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return named(volume.persistentVolumeClaim.claimName)
    return volume.ephemeral ? [`${metadata.name}-${volume.name}`] : []
  })
}

/** The resource claims of a pod, as far as they have been made. */
export function podResourceClaimNames({ spec, status }: Frozen<Pod>): readonly string[] {
  // Most pods have none, and are asked about at each of their changes.
  if (!spec?.resourceClaims && !status?.extendedResourceClaimStatus) return none
  const made = new Map((status?.resourceClaimStatuses ?? []).map(({ name, resourceClaimName }) => [name, resourceClaimName]))
  return named(
    ...(spec?.resourceClaims ?? []).map(({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)),
    status?.extendedResourceClaimStatus?.resourceClaimName,
  )
}

export interface SecretKey {
  readonly namespace: string
  readonly name: string
}

/** The secrets of a volume that a kubelet needs; those without a namespace are in the claim's. */
export function persistentVolumeSecrets({ spec }: Frozen<PersistentVolume>): SecretKey[] {
  const { azureFile, csi } = spec ?? {}
  const references: readonly (Frozen<SecretReference> | undefined)[] = [
    azureFile && { name: azureFile.secretName, ...(azureFile.secretNamespace ? { namespace: azureFile.secretNamespace } : {}) },
    ...[spec?.cephfs, spec?.cinder, spec?.flexVolume, spec?.rbd, spec?.scaleIO, spec?.iscsi, spec?.storageos].map((source) => source?.secretRef),
    csi?.nodePublishSecretRef,
    csi?.nodeStageSecretRef,
    csi?.nodeExpandSecretRef,
  ]
  return references.flatMap((reference) =>
    reference?.name ? [{ namespace: reference.namespace || (spec?.claimRef?.namespace ?? ''), name: reference.name }] : [],
  )
}

/** The first kind of API object that a pod refers to, in upstream's words; undefined when it refers to none. */
export function referencedResource(pod: Frozen<Pod>): string | undefined {
  if (pod.spec?.serviceAccountName) return 'serviceaccounts'
  if (podSecretNames(pod).length > 0) return 'secrets'
  if (podConfigMapNames(pod).length > 0) return 'configmaps'
  if (pod.spec?.resourceClaims?.length) return 'resourceclaims'
  for (const volume of pod.spec?.volumes ?? []) {
    const found = volumeReference(volume)
    if (found) return found
  }
  return undefined
}

type VolumeSources = Frozen<Volume>
type ProjectedSource = NonNullable<NonNullable<VolumeSources['projected']>['sources']>[number]

const byVolume: readonly (readonly [field: keyof VolumeSources, what: string])[] = [
  ['configMap', 'configmaps (via configmap volumes)'],
  ['secret', 'secrets (via secret volumes)'],
  ['csi', 'csidrivers (via CSI volumes)'],
  ['glusterfs', 'endpoints (via glusterFS volumes)'],
  ['persistentVolumeClaim', 'persistentvolumeclaims'],
  ['ephemeral', 'persistentvolumeclaims (via ephemeral volumes)'],
  ['azureFile', 'secrets (via azureFile volumes)'],
]
const bySource: readonly (readonly [field: keyof ProjectedSource, what: string])[] = [
  ['configMap', 'configmaps (via projected volumes)'],
  ['secret', 'secrets (via projected volumes)'],
  ['serviceAccountToken', 'serviceaccounts (via projected volumes)'],
  ['clusterTrustBundle', 'clustertrustbundles'],
  ['podCertificate', 'podcertificates'],
]

function volumeReference(volume: VolumeSources): string | undefined {
  const direct = byVolume.find(([field]) => volume[field] !== undefined)
  if (direct) return direct[1]
  const sources = volume.projected?.sources ?? []
  return bySource.find(([field]) => sources.some((source) => source[field] !== undefined))?.[1]
}
