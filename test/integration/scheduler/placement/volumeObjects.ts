/** Claims, volumes and classes in few words, for the tables of the volume plugins. */
import type { PersistentVolume, PersistentVolumeClaim, PodSpec, Volume } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import type { KubeObject, ObjectMeta } from '#api/machinery/meta'
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#client/builtIn'
import type { Resource } from '#client/client'
import { type Case, node, pod } from './table.ts'

export const bindCompleted = { 'pv.kubernetes.io/bind-completed': 'yes' }
export const selectedNode = (name: string) => ({ 'volume.kubernetes.io/selected-node': name })
export const zone = 'topology.kubernetes.io/zone'
export const oldZone = 'failure-domain.beta.kubernetes.io/zone'
export const inZone = (name: string, value: string) => node(name, { labels: { [zone]: value } })

interface ClaimSketch {
  readonly volume?: string
  readonly size?: string
  readonly modes?: string[]
  readonly spec?: Partial<PersistentVolumeClaim['spec']>
  readonly metadata?: Partial<ObjectMeta>
  readonly phase?: string
}

/** Bound when it names a volume; of class `late` otherwise. */
export function claim(name: string, { volume, size = '1Gi', modes = ['ReadWriteOnce'], spec, metadata, phase }: ClaimSketch = {}): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, ...(volume ? { annotations: bindCompleted } : {}), ...metadata },
    spec: { accessModes: modes, storageClassName: 'late', resources: { requests: { storage: size } }, ...(volume ? { volumeName: volume } : {}), ...spec },
    status: { phase: phase ?? (volume ? 'Bound' : 'Pending') },
  }
}

interface VolumeSketch {
  readonly size?: string
  /** Reachable from nodes of that zone only. */
  readonly zone?: string
  readonly labels?: Record<string, string>
  readonly spec?: Partial<PersistentVolume['spec']>
  readonly phase?: string
  readonly metadata?: Partial<ObjectMeta>
}

export function volume(name: string, { size = '1Gi', zone: at, labels, spec, phase = 'Available', metadata }: VolumeSketch = {}): PersistentVolume {
  const required = at && { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: [at] }] }] }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, ...(labels ? { labels } : {}), ...metadata },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: size },
      storageClassName: 'late',
      ...(required ? { nodeAffinity: { required } } : {}),
      ...spec,
    },
    status: { phase },
  }
}

export function storageClass(name: string, changes: Partial<StorageClass> = {}): StorageClass {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'csi.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
    ...changes,
  }
}

export const late = storageClass('late')
export const local = storageClass('late', { provisioner: 'kubernetes.io/no-provisioner' })
export const atOnce = storageClass('at-once', { volumeBindingMode: 'Immediate' })

export type Objects = NonNullable<Case['objects']>[number]
export const of = <T extends KubeObject>(resource: Resource<T>, ...objects: T[]): Objects => [resource as unknown as Resource<KubeObject>, objects]
export const claims = (...all: PersistentVolumeClaim[]) => of(persistentVolumeClaims, ...all)
export const volumes = (...all: PersistentVolume[]) => of(persistentVolumes, ...all)
export const classes = (...all: StorageClass[]) => of(storageClasses, ...all)

export const using = (...names: string[]): Volume[] => names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
export const user = (...names: string[]) => pod({ name: 'user', spec: { volumes: using(...names) } })
export const withVolumes = (...all: Volume[]) => pod({ name: 'user', spec: { volumes: all } })
export const two = [inZone('a', 'x'), inZone('b', 'y')]
export const refOf = (name: string, uid?: string) => ({ claimRef: { namespace: 'default', name, ...(uid ? { uid } : {}) } })
export const ephemeral: PodSpec['volumes'] = [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }]
export const controlledBy = (uid: string) => ({ ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'user', uid, controller: true }] })

export const all = (n: number, what: string) => `0/${n} nodes are available: ${n} ${what}.`
export const before = (n: number, what: string) => `0/${n} nodes are available: ${what}.`
