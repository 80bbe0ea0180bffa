/** PersistentVolume (L1). Upstream: pkg/registry/core/persistentvolume, pkg/apis/core/validation ValidatePersistentVolume* (v1.36). */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { deepCopy } from '#base/frozen'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { nodeExpressionWarnings } from '../nodeLabelWarnings.ts'
import { dropStatus, faults, keepStatus, statusStrategy } from '../rules.ts'
import { validateNodeSelectorTerm } from './pod/validateScheduling.ts'
import { validateCsiDriverName } from './pod/validateVolumes.ts'
import { remoteSourceRules } from './pod/volumeSources.ts'
import { classFaults, classOf, modeFaults, modesText, positiveFaults } from './volumeModes.ts'

export const persistentVolume = defineKind<PersistentVolume>({
  group: '',
  kind: 'PersistentVolume',
  generation: false,
  columns: [
    nameColumn,
    text('Capacity', (obj) => obj.spec?.capacity?.storage ?? ''),
    text('Access Modes', (obj) => modesText(obj.spec?.accessModes)),
    text('Reclaim Policy', (obj) => obj.spec?.persistentVolumeReclaimPolicy ?? ''),
    text('Status', (obj) => (obj.metadata.deletionTimestamp ? 'Terminating' : (obj.status?.phase ?? ''))),
    text('Claim', (obj) => (obj.spec?.claimRef ? `${obj.spec.claimRef.namespace ?? ''}/${obj.spec.claimRef.name ?? ''}` : '')),
    text('StorageClass', (obj) => classOf(obj) ?? ''),
    text('VolumeAttributesClass', (obj) => obj.spec?.volumeAttributesClassName ?? unset),
    text('Reason', (obj) => obj.status?.reason ?? ''),
    ageColumn,
    text('VolumeMode', (obj) => obj.spec?.volumeMode ?? unset, 1),
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.phase ||= 'Pending'
    obj.spec.persistentVolumeReclaimPolicy ||= 'Retain'
    obj.spec.volumeMode ??= 'Filesystem'
    if (obj.spec.hostPath) obj.spec.hostPath.type ??= ''
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { phase: 'Pending' }),
  prepareForUpdate: keepStatus,
  warnings: ({ obj, path }) => volumeWarnings(obj, path),
  validate: ({ obj, path }) => volumeFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [...volumeFaults(obj, path.child('spec')), ...sourceChange(obj, old, path.child('spec'))],
  status: statusStrategy<PersistentVolume>(),
})

/** Annotations that fields have replaced. */
const deprecatedAnnotations = [
  ['volume.beta.kubernetes.io/storage-class', 'deprecated since v1.8; use "storageClassName" attribute instead'],
  ['volume.beta.kubernetes.io/mount-options', 'deprecated since v1.31; use "mountOptions" attribute instead'],
] as const

/** Volume types that are gone, in the order in which they are named. */
const deprecatedSources = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const

function volumeWarnings({ metadata, spec }: PersistentVolume, path: FieldPath): string[] {
  const [annotations, at] = [path.child('metadata', 'annotations'), path.child('spec')]
  const recycled = 'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.'
  const terms = at.child('nodeAffinity', 'required', 'nodeSelectorTerms')
  return [
    ...deprecatedAnnotations.flatMap(([key, message]) => (metadata.annotations?.[key] === undefined ? [] : [`${annotations.key(key)}: ${message}`])),
    ...(spec.persistentVolumeReclaimPolicy === 'Recycle' ? [`${at.child('persistentVolumeReclaimPolicy')}: ${recycled}`] : []),
    ...(spec.nodeAffinity?.required?.nodeSelectorTerms ?? []).flatMap((term, i) => nodeExpressionWarnings(term.matchExpressions, terms.index(i))),
    ...deprecatedSources.flatMap(([source, name, since]) => (spec[source] ? [`${at.child(name)}: ${since}`] : [])),
  ]
}

/** Sources in the order in which they are looked at: the first one present counts, the rest are too many. */
const sourceOrder = [
  ...(['hostPath', 'gcePersistentDisk', 'awsElasticBlockStore', 'glusterfs', 'flocker', 'nfs', 'rbd', 'quobyte', 'cephfs', 'iscsi'] as const),
  ...(['cinder', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk', 'scaleIO'] as const),
  ...(['local', 'storageos', 'csi'] as const),
]
type Source = (typeof sourceOrder)[number]

const sourcesOf = (spec: Frozen<PersistentVolume['spec']>): Source[] => sourceOrder.filter((source) => spec[source] !== undefined)

function volumeFaults({ spec }: PersistentVolume, path: FieldPath): FieldError[] {
  const errors = modeFaults(spec.accessModes, '', path.child('accessModes'))
  const capacity = path.child('capacity')
  const amounts = Object.entries(spec.capacity ?? {})
  if (amounts.length === 0) errors.push(fieldError.required(capacity))
  if (spec.capacity?.storage === undefined || amounts.length > 1) errors.push(fieldError.notSupported(capacity, spec.capacity ?? null, ['storage']))
  for (const [name, value] of amounts) errors.push(...positiveFaults(value, capacity.key(name)))
  const policy = spec.persistentVolumeReclaimPolicy
  if (policy && !['Delete', 'Recycle', 'Retain'].includes(policy))
    errors.push(fieldError.notSupported(path.child('persistentVolumeReclaimPolicy'), policy, ['Delete', 'Recycle', 'Retain']))
  errors.push(...affinityFaults(spec.nodeAffinity, path.child('nodeAffinity')), ...sourceFaults(spec, path))
  if (spec.hostPath && policy === 'Recycle' && /^\/+(\.?\/*)*$/.test(spec.hostPath.path))
    errors.push(fieldError.forbidden(path.child('persistentVolumeReclaimPolicy'), "may not be 'recycle' for a hostPath mount of '/'"))
  errors.push(...classFaults({ storageClassName: spec.storageClassName }, path))
  if (spec.volumeMode !== undefined && !['Block', 'Filesystem'].includes(spec.volumeMode))
    errors.push(fieldError.notSupported(path.child('volumeMode'), spec.volumeMode, ['Block', 'Filesystem']))
  if (spec.volumeAttributesClassName === undefined) return errors
  if (spec.volumeAttributesClassName === '') errors.push(fieldError.required(path.child('volumeAttributesClassName'), 'an empty string is disallowed'))
  errors.push(...classFaults({ volumeAttributesClassName: spec.volumeAttributesClassName }, path))
  return spec.csi ? errors : [...errors, fieldError.required(path.child('csi'), 'has to be specified when using volumeAttributesClassName')]
}

function affinityFaults(affinity: PersistentVolume['spec']['nodeAffinity'], path: FieldPath): FieldError[] {
  if (!affinity) return []
  if (!affinity.required) return [fieldError.required(path.child('required'), 'must specify required node constraints')]
  const terms = path.child('required', 'nodeSelectorTerms')
  if (!affinity.required.nodeSelectorTerms?.length) return [fieldError.required(terms, 'must have at least one node selector term')]
  return affinity.required.nodeSelectorTerms.flatMap((term, i) => validateNodeSelectorTerm(term, true, terms.index(i)))
}

function sourceFaults(spec: PersistentVolume['spec'], path: FieldPath): FieldError[] {
  const [first, ...more] = sourcesOf(spec)
  if (!first) return [fieldError.required(path, 'must specify a volume type')]
  const errors = ownFaults(spec, first, path.child(first === 'gcePersistentDisk' ? 'persistentDisk' : first))
  if (spec.local && !spec.nodeAffinity?.required) errors.push(fieldError.required(path.child('nodeAffinity'), 'Local volume requires node affinity'))
  const tooMany = 'may not specify more than 1 volume type'
  return [...errors, ...more.map((source) => fieldError.forbidden(path.child(source === 'cephfs' ? 'cephFS' : source), tooMany))]
}

/** The rules of one source; those of disks and shares are a pod volume's. */
function ownFaults(spec: PersistentVolume['spec'], source: Source, path: FieldPath): FieldError[] {
  if (source === 'hostPath' || source === 'local') {
    const directory = spec[source]?.path ?? ''
    if (!directory) return [fieldError.required(path.child('path'))]
    return directory.split('/').includes('..') ? [fieldError.invalid(path.child('path'), directory, "must not contain '..'")] : []
  }
  if (source !== 'csi') return (remoteSourceRules[source] as ((of: unknown, at: FieldPath) => FieldError[]) | undefined)?.(spec[source], path) ?? []
  const errors = validateCsiDriverName(spec.csi?.driver, path.child('driver'))
  if (!spec.csi?.volumeHandle) errors.push(fieldError.required(path.child('volumeHandle')))
  for (const field of ['controllerPublishSecretRef', 'controllerExpandSecretRef', 'nodePublishSecretRef', 'nodeExpandSecretRef'] as const) {
    const reference = spec.csi?.[field]
    if (!reference) continue
    const { name, namespace } = reference
    errors.push(...(name ? faults(path.child(field, 'name'), name, isDns1123Subdomain(name)) : [fieldError.required(path.child(field, 'name'))]))
    const at = path.child(field, 'namespace')
    errors.push(...(namespace ? faults(at, namespace, isDns1123Label(namespace)) : [fieldError.required(at)]))
  }
  return errors
}

function sourceChange(obj: PersistentVolume, old: Frozen<PersistentVolume>, path: FieldPath): FieldError[] {
  const pick = (spec: Frozen<PersistentVolume['spec']>) => Object.fromEntries(sourcesOf(spec).map((source) => [source, spec[source]]))
  const now = deepCopy<PersistentVolume['spec']>(obj.spec)
  // A secret for expansion may be added later.
  if (now.csi && old.spec.csi && !old.spec.csi.controllerExpandSecretRef) delete now.csi.controllerExpandSecretRef
  const errors: FieldError[] = []
  if (!semanticEqual(pick(now), pick(old.spec)))
    errors.push(fieldError.forbidden(path.child('persistentvolumesource'), 'spec.persistentvolumesource is immutable after creation\n'))
  // These paths lack their head: upstream's quirk.
  errors.push(...validateImmutable(obj.spec.volumeMode, old.spec.volumeMode, FieldPath.of('volumeMode')))
  if (old.spec.nodeAffinity) errors.push(...validateImmutable(obj.spec.nodeAffinity, old.spec.nodeAffinity, FieldPath.of('nodeAffinity')))
  if (old.spec.volumeAttributesClassName !== undefined && obj.spec.volumeAttributesClassName === undefined)
    errors.push(fieldError.forbidden(path.child('volumeAttributesClassName'), 'update from non-nil value to nil is forbidden'))
  return errors
}
