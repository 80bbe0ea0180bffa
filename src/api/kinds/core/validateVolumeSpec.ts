/** Validation of a volume's spec, in a PersistentVolume and in place of one (L1). Upstream: pkg/apis/core/validation ValidatePersistentVolumeSpec (v1.36). */
import type { CSIPersistentVolumeSource, ISCSIPersistentVolumeSource, PersistentVolumeSpec } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import { faults } from '../rules.ts'
import { csiDriverNameFaults } from '../storage/classRules.ts'
import { validateNodeSelectorTerm } from './pod/validateScheduling.ts'
import { initiatorFaults, lunFaults, remoteSourceRules, secretFaults } from './pod/volumeSources.ts'
import { classFaults, modeFaults, positiveFaults } from './volumeModes.ts'

/** Sources in the order in which they are looked at: the first one present counts, the rest are too many. */
const sourceOrder = [
  ...(['hostPath', 'gcePersistentDisk', 'awsElasticBlockStore', 'glusterfs', 'flocker', 'nfs', 'rbd', 'quobyte', 'cephfs', 'iscsi'] as const),
  ...(['cinder', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk', 'scaleIO'] as const),
  ...(['local', 'storageos', 'csi'] as const),
]
type Source = (typeof sourceOrder)[number]

/** The sources that a volume has: one, if it is good. */
export const sourcesOf = (spec: Frozen<PersistentVolumeSpec>): Source[] => sourceOrder.filter((source) => spec[source] !== undefined)

/** All that the spec of a volume must keep. @param name of the volume */
export function validateVolumeSpec(spec: PersistentVolumeSpec, name: string, path: FieldPath): FieldError[] {
  const errors = modeFaults(spec.accessModes, '', path.child('accessModes'))
  const capacity = path.child('capacity')
  const amounts = Object.entries(spec.capacity ?? {})
  if (amounts.length === 0) errors.push(fieldError.required(capacity))
  if (spec.capacity?.storage === undefined || amounts.length > 1) errors.push(fieldError.notSupported(capacity, spec.capacity ?? null, ['storage']))
  for (const [resource, value] of amounts) errors.push(...positiveFaults(value, capacity.key(resource)))
  const policy = spec.persistentVolumeReclaimPolicy
  if (policy && !['Delete', 'Recycle', 'Retain'].includes(policy))
    errors.push(fieldError.notSupported(path.child('persistentVolumeReclaimPolicy'), policy, ['Delete', 'Recycle', 'Retain']))
  errors.push(...affinityFaults(spec.nodeAffinity, path.child('nodeAffinity')), ...sourceFaults(spec, name, path))
  errors.push(...classFaults({ storageClassName: spec.storageClassName }, path))
  if (spec.volumeMode !== undefined && !['Block', 'Filesystem'].includes(spec.volumeMode))
    errors.push(fieldError.notSupported(path.child('volumeMode'), spec.volumeMode, ['Block', 'Filesystem']))
  return [...errors, ...attributesClassFaults(spec, path)]
}

/** The spec that an attachment has in place of a volume: nothing but a CSI driver's source and how it may be used. */
export function validateInlineVolumeSpec(spec: PersistentVolumeSpec, path: FieldPath): FieldError[] {
  const inline = 'in the context of inline volumes'
  const none = (field: 'claimRef' | 'capacity' | 'nodeAffinity' | 'storageClassName') =>
    isEmpty(spec[field]) ? [] : [fieldError.forbidden(path.child(field), `may not be specified ${inline}`)]
  const { persistentVolumeReclaimPolicy: policy, volumeMode: mode } = spec
  return [
    ...none('claimRef'),
    ...none('capacity'),
    ...(spec.csi ? [] : [fieldError.required(path.child('csi'), `has to be specified ${inline}`)]),
    ...modeFaults(spec.accessModes, '', path.child('accessModes')),
    ...(policy && policy !== 'Retain' ? [fieldError.forbidden(path.child('persistentVolumeReclaimPolicy'), `may only be Retain ${inline}`)] : []),
    ...none('nodeAffinity'),
    ...sourceFaults(spec, '', path),
    ...none('storageClassName'),
    ...(mode !== undefined && mode !== 'Filesystem'
      ? [fieldError.forbidden(path.child('volumeMode'), `may not specify volumeMode other than Filesystem ${inline}`)]
      : []),
    ...attributesClassFaults(spec, path),
  ]
}

function isEmpty(value: object | string | undefined): boolean {
  return value === undefined || value === ''
}

function attributesClassFaults(spec: PersistentVolumeSpec, path: FieldPath): FieldError[] {
  const name = spec.volumeAttributesClassName
  if (name === undefined) return []
  const errors = classFaults({ volumeAttributesClassName: name }, path)
  if (name === '') errors.push(fieldError.required(path.child('volumeAttributesClassName'), 'an empty string is disallowed'))
  return spec.csi ? errors : [...errors, fieldError.required(path.child('csi'), 'has to be specified when using volumeAttributesClassName')]
}

function affinityFaults(affinity: PersistentVolumeSpec['nodeAffinity'], path: FieldPath): FieldError[] {
  if (!affinity) return []
  if (!affinity.required) return [fieldError.required(path.child('required'), 'must specify required node constraints')]
  const terms = path.child('required', 'nodeSelectorTerms')
  if (!affinity.required.nodeSelectorTerms?.length) return [fieldError.required(terms, 'must have at least one node selector term')]
  return affinity.required.nodeSelectorTerms.flatMap((term, i) => validateNodeSelectorTerm(term, true, terms.index(i)))
}

function sourceFaults(spec: PersistentVolumeSpec, name: string, path: FieldPath): FieldError[] {
  const [first, ...more] = sourcesOf(spec)
  if (!first) return [fieldError.required(path, 'must specify a volume type')]
  const errors = ownFaults(spec, first, name, path.child(first === 'gcePersistentDisk' ? 'persistentDisk' : first))
  if (spec.local && !spec.nodeAffinity?.required) errors.push(fieldError.required(path.child('nodeAffinity'), 'Local volume requires node affinity'))
  if (spec.hostPath && spec.persistentVolumeReclaimPolicy === 'Recycle' && /^\/[./]*$/.test(spec.hostPath.path))
    errors.push(fieldError.forbidden(path.child('persistentVolumeReclaimPolicy'), "may not be 'recycle' for a hostPath mount of '/'"))
  const tooMany = 'may not specify more than 1 volume type'
  return [...errors, ...more.map((source) => fieldError.forbidden(path.child(source === 'cephfs' ? 'cephFS' : source), tooMany))]
}

/** The rules of one source; disks and shares follow the rules of a pod's volume. */
function ownFaults(spec: PersistentVolumeSpec, source: Source, name: string, path: FieldPath): FieldError[] {
  if (source === 'hostPath' || source === 'local') {
    const directory = spec[source]?.path ?? ''
    if (!directory) return [fieldError.required(path.child('path'))]
    return directory.split('/').includes('..') ? [fieldError.invalid(path.child('path'), directory, "must not contain '..'")] : []
  }
  if (source === 'iscsi') return iscsiFaults(spec.iscsi, name, path)
  const common = (remoteSourceRules[source] as ((of: unknown, at: FieldPath) => FieldError[]) | undefined)?.(spec[source], path) ?? []
  if (source === 'cinder' || source === 'storageos') return [...common, ...namespaceFaults(spec[source]?.secretRef, path.child('secretRef'))]
  if (source === 'glusterfs') return [...common, ...endpointsNamespaceFaults(spec.glusterfs?.endpointsNamespace, path.child('endpointsNamespace'))]
  if (source === 'azureFile') return spec.azureFile?.secretNamespace === '' ? [...common, fieldError.required(path.child('secretNamespace'))] : common
  return source === 'csi' ? csiFaults(spec.csi, path) : common
}

/** A volume belongs to no namespace, so its secret references name one. */
function namespaceFaults(reference: object | undefined, path: FieldPath): FieldError[] {
  if (!reference || ('namespace' in reference && reference.namespace)) return []
  return [fieldError.required(path.child('namespace'))]
}

function endpointsNamespaceFaults(namespace: string | undefined, path: FieldPath): FieldError[] {
  if (namespace === '') return [fieldError.invalid(path, namespace, 'if the endpointnamespace is set, it must be a valid namespace name')]
  return namespace === undefined ? [] : faults(path, namespace, isDns1123Label(namespace))
}

const maxPortalName = 64

/** Upstream's message is shorter here than for a pod's volume. */
function iscsiFaults(source: ISCSIPersistentVolumeSource | undefined, name: string, path: FieldPath): FieldError[] {
  if (!source) return []
  const { targetPortal = '', iqn, lun = 0, initiatorName, secretRef } = source
  const errors = targetPortal ? [] : [fieldError.required(path.child('targetPortal'))]
  if (initiatorName !== undefined && `${name}:${targetPortal}`.length > maxPortalName) {
    const tooLong = 'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'
    errors.push(fieldError.invalid(path.child('targetportal'), targetPortal, tooLong))
  }
  errors.push(...(iqn ? initiatorFaults(iqn, 'must be valid format', path.child('iqn')) : [fieldError.required(path.child('iqn'))]))
  errors.push(...lunFaults(lun, path.child('lun')))
  if ((source.chapAuthDiscovery || source.chapAuthSession) && !secretRef) errors.push(fieldError.required(path.child('secretRef')))
  errors.push(...secretFaults(secretRef, path))
  return initiatorName === undefined ? errors : [...errors, ...initiatorFaults(initiatorName, 'must be valid format', path.child('initiatorname'))]
}

function csiFaults(csi: CSIPersistentVolumeSource | undefined, path: FieldPath): FieldError[] {
  const errors = csiDriverNameFaults(csi?.driver, path.child('driver'))
  if (!csi?.volumeHandle) errors.push(fieldError.required(path.child('volumeHandle')))
  for (const field of ['controllerPublishSecretRef', 'controllerExpandSecretRef', 'nodePublishSecretRef', 'nodeExpandSecretRef'] as const) {
    const reference = csi?.[field]
    if (!reference) continue
    const { name, namespace } = reference
    errors.push(...(name ? faults(path.child(field, 'name'), name, isDns1123Subdomain(name)) : [fieldError.required(path.child(field, 'name'))]))
    const at = path.child(field, 'namespace')
    errors.push(...(namespace ? faults(at, namespace, isDns1123Label(namespace)) : [fieldError.required(at)]))
  }
  return errors
}
