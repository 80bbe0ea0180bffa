/**
 * The rules of volume sources that hold nothing of the pod's own: disks and shares of other systems (L1). Pods and PersistentVolumes share
 * them. Upstream: pkg/apis/core/validation, one function per source (v1.36).
 */
import type { Volume } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Label, rangeMessage } from '#api/machinery/names'
import { faults } from '../../rules.ts'

export type SourceRules = { [K in Exclude<keyof Volume, 'name'>]?: (source: NonNullable<Volume[K]>, path: FieldPath) => FieldError[] }

/** All of the named fields must be set. */
export function required<T extends object>(source: T, path: FieldPath, ...fields: (keyof T & string)[]): FieldError[] {
  return fields.flatMap((field) => {
    const value = source[field]
    const empty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
    return empty ? [fieldError.required(path.child(field))] : []
  })
}

export const remoteSourceRules: SourceRules = {
  gcePersistentDisk: (source, path) => [...required(source, path, 'pdName'), ...partitionFaults(source.partition, path.child('partition'))],
  awsElasticBlockStore: (source, path) => [...required(source, path, 'volumeID'), ...partitionFaults(source.partition, path.child('partition'))],
  nfs: (source, path) => [
    ...required(source, path, 'server', 'path'),
    ...(!source.path?.startsWith('/') ? [fieldError.invalid(path.child('path'), source.path ?? '', 'must be an absolute path')] : []),
  ],
  glusterfs: (source, path) => required(source, path, 'endpoints', 'path'),
  flocker: ({ datasetName, datasetUUID }, path) => {
    if (!datasetName && !datasetUUID) return [fieldError.required(path, 'one of datasetName and datasetUUID is required')]
    return [
      ...(datasetName && datasetUUID ? [fieldError.invalid(path, 'resource', 'datasetName and datasetUUID can not be specified simultaneously')] : []),
      ...(datasetName?.includes('/') ? [fieldError.invalid(path.child('datasetName'), datasetName, "must not contain '/'")] : []),
    ]
  },
  rbd: (source, path) => required(source, path, 'monitors', 'image'),
  cinder: (source, path) => [...required(source, path, 'volumeID'), ...secretFaults(source.secretRef, path)],
  cephfs: (source, path) => required(source, path, 'monitors'),
  quobyte: ({ registry, tenant, volume }, path) => {
    const form = 'must be a host:port pair or multiple pairs separated by commas'
    const at = path.child('registry')
    const errors = registry ? [] : [fieldError.required(at, form)]
    if (registry && !registry.split(',').every((pair) => /^[^:]*:\d+$/.test(pair))) errors.push(fieldError.invalid(at, registry, form))
    if ((tenant?.length ?? 0) >= 65) errors.push(fieldError.required(path.child('tenant'), 'must be UUID and may not exceed a length of 64 characters'))
    return volume ? errors : [...errors, fieldError.required(path.child('volume'))]
  },
  fc: ({ targetWWNs = [], wwids = [], lun }, path) => {
    const at = path.child('targetWWNs')
    if (targetWWNs.length === 0 && wwids.length === 0) return [fieldError.required(at, 'must specify either targetWWNs or wwids, but not both')]
    const errors: FieldError[] = []
    if (targetWWNs.length > 0 && wwids.length > 0) errors.push(fieldError.invalid(at, targetWWNs, 'targetWWNs and wwids can not be specified simultaneously'))
    if (targetWWNs.length === 0) return errors
    if (lun === undefined) return [...errors, fieldError.required(path.child('lun'), 'lun is required if targetWWNs is specified')]
    return [...errors, ...lunFaults(lun, path.child('lun'))]
  },
  iscsi: (source, path) => {
    const { iqn = '', lun = 0, chapAuthDiscovery, chapAuthSession, secretRef, initiatorName } = source
    const errors = required(source, path, 'targetPortal', 'iqn')
    if (iqn) errors.push(...initiatorFaults(iqn, 'must be valid format starting with iqn, eui, or naa', path.child('iqn')))
    errors.push(...lunFaults(lun, path.child('lun')))
    if ((chapAuthDiscovery || chapAuthSession) && !secretRef) errors.push(fieldError.required(path.child('secretRef')))
    if (initiatorName === undefined) return errors
    return [...errors, ...initiatorFaults(initiatorName, 'must be valid format starting with iqn, eui, or naa', path.child('initiatorname'))]
  },
  flexVolume: (source, path) => [...required(source, path, 'driver'), ...optionFaults(source.options, path.child('options'))],
  azureFile: (source, path) => required(source, path, 'secretName', 'shareName'),
  azureDisk: (source, path) => {
    const { diskURI = '', cachingMode, kind = 'Shared' } = source
    const errors = required(source, path, 'diskName', 'diskURI')
    const choice = (field: 'cachingMode' | 'kind', value: string | undefined, supported: readonly string[]) => {
      if (value !== undefined && !supported.includes(value)) errors.push(fieldError.notSupported(path.child(field), value, supported))
    }
    choice('cachingMode', cachingMode, ['None', 'ReadOnly', 'ReadWrite'])
    choice('kind', kind, ['Dedicated', 'Managed', 'Shared'])
    const managed = kind === 'Managed'
    const form = managed
      ? '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
      : 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'
    if (!diskURI.startsWith(managed ? '/subscriptions/' : 'https://')) errors.push(fieldError.notSupported(path.child('diskURI'), diskURI, [form]))
    return errors
  },
  vsphereVolume: (source, path) => required(source, path, 'volumePath'),
  photonPersistentDisk: (source, path) => required(source, path, 'pdID'),
  portworxVolume: (source, path) => required(source, path, 'volumeID'),
  scaleIO: (source, path) => required(source, path, 'gateway', 'system', 'volumeName'),
  storageos: (source, path) => [
    ...(source.volumeName ? faults(path.child('volumeName'), source.volumeName, isDns1123Label(source.volumeName)) : required(source, path, 'volumeName')),
    ...(source.volumeNamespace ? faults(path.child('volumeNamespace'), source.volumeNamespace, isDns1123Label(source.volumeNamespace)) : []),
    ...secretFaults(source.secretRef, path),
  ],
}

const initiatorForms = [
  ['iqn', /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)$/],
  ['eui', /^eui.[a-zA-Z0-9]{16}$/],
  ['naa', /^naa.[a-zA-Z0-9]{32}$/],
] as const

/** The name of an iSCSI target or initiator. @param unknown message for a name of no known kind */
export function initiatorFaults(name: string, unknown: string, path: FieldPath): FieldError[] {
  const form = initiatorForms.find(([kind]) => name.startsWith(kind))
  if (!form) return [fieldError.invalid(path, name, unknown)]
  return form[1].test(name) ? [] : [fieldError.invalid(path, name, 'must be valid format')]
}

/** Options of a plugin's own; those under Kubernetes' domains are not for users to set. */
function optionFaults(options: Readonly<Record<string, string>> | undefined, path: FieldPath): FieldError[] {
  return Object.keys(options ?? {}).flatMap((key) => {
    const domain = `.${key.split('/')[0]?.toLowerCase() ?? ''}`
    const isReserved = domain.endsWith('.kubernetes.io') || domain.endsWith('.k8s.io')
    return isReserved ? [fieldError.invalid(path.key(key), key, 'kubernetes.io and k8s.io namespaces are reserved')] : []
  })
}

function partitionFaults(partition: number | undefined, path: FieldPath): FieldError[] {
  return partition !== undefined && (partition < 0 || partition > 255) ? [fieldError.invalid(path, partition, rangeMessage(1, 255))] : []
}

/** A logical unit's number. */
export function lunFaults(lun: number, path: FieldPath): FieldError[] {
  return lun < 0 || lun > 255 ? [fieldError.invalid(path, lun, rangeMessage(0, 255))] : []
}

/** A reference to a Secret, where there is one, has its name. */
export function secretFaults(reference: { name?: string | undefined } | undefined, path: FieldPath, field = 'secretRef'): FieldError[] {
  return reference && !reference.name ? [fieldError.required(path.child(field, 'name'))] : []
}
