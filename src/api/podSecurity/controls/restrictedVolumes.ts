/** Restricted: volumes come from the cluster's own objects, claims and drivers (L1, pure). Upstream: policy/check_restrictedVolumes.go. */
import { type CheckPod, type Control, distinct, named } from '../control.ts'

const allowed = ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'image', 'persistentVolumeClaim', 'projected', 'secret'] as const
const known = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
] as const

const check: CheckPod = (_metadata, { volumes = [] }) => {
  const bad = volumes.filter((volume) => !allowed.some((type) => volume[type]))
  if (bad.length === 0) return undefined
  const names = bad.map(({ name }) => name)
  const types = distinct(bad.map((volume) => known.find((type) => volume[type]) ?? 'unknown'))
  const verb = names.length === 1 ? 'uses' : 'use'
  return { reason: 'restricted volume types', detail: `${named('volume', names)} ${verb} ${named('restricted volume type', types)}` }
}

export const restrictedVolumes: Control = {
  id: 'restrictedVolumes',
  level: 'restricted',
  revisions: [{ since: 0, check, overrides: ['hostPathVolumes'] }],
}
