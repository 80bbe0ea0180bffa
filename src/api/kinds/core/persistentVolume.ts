/** PersistentVolume and PersistentVolumeClaim (L1). Upstream: pkg/registry/core/persistentvolume*, pkg/apis/core/validation (v1.36). */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities, isQuantity, quantitySign } from '#api/machinery/quantity'
import { deepCopy } from '#base/frozen'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'

const modes: Readonly<Record<string, string>> = { ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' }
/** Upstream prints the modes in this order, each once. */
const modeOrder = Object.keys(modes)
const classAnnotation = 'volume.beta.kubernetes.io/storage-class'
/** Fields of a volume's spec that are no sources. */
const notSources = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])

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
  validate: ({ obj, path }) => volumeFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [...volumeFaults(obj, path.child('spec')), ...sourceChange(obj, old, path.child('spec'))],
  status: statusStrategy<PersistentVolume>(),
})

export const persistentVolumeClaim = defineKind<PersistentVolumeClaim>({
  group: '',
  kind: 'PersistentVolumeClaim',
  generation: false,
  columns: [
    nameColumn,
    text('Status', (obj) => (obj.metadata.deletionTimestamp ? 'Terminating' : (obj.status?.phase ?? ''))),
    text('Volume', (obj) => obj.spec?.volumeName ?? ''),
    text('Capacity', (obj) => (obj.spec?.volumeName ? (obj.status?.capacity?.storage ?? '') : '')),
    text('Access Modes', (obj) => (obj.spec?.volumeName ? modesText(obj.status?.accessModes) : '')),
    text('StorageClass', (obj) => classOf(obj) ?? ''),
    text('VolumeAttributesClass', (obj) => obj.spec?.volumeAttributesClassName ?? unset),
    ageColumn,
    text('VolumeMode', (obj) => obj.spec?.volumeMode ?? unset, 1),
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.phase ||= 'Pending'
    obj.spec.volumeMode ??= 'Filesystem'
    // The data source has two spellings; whoever sets one sets both, where both can say it.
    const { dataSource, dataSourceRef } = obj.spec
    if (dataSource && !dataSourceRef) obj.spec.dataSourceRef = { ...dataSource }
    else if (dataSourceRef && !dataSource && !dataSourceRef.namespace && (!dataSourceRef.apiGroup || dataSourceRef.apiGroup === 'snapshot.storage.k8s.io')) {
      const { namespace: _, ...local } = dataSourceRef
      obj.spec.dataSource = local
    }
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { phase: 'Pending' }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => claimFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => claimChange(obj, old, path.child('spec')),
  status: statusStrategy<PersistentVolumeClaim>(),
})

/** The class by field or by the annotation that preceded it. */
function classOf(obj: Frozen<PersistentVolume | PersistentVolumeClaim>): string | undefined {
  return obj.metadata.annotations?.[classAnnotation] ?? obj.spec?.storageClassName
}

function modesText(list: readonly string[] | undefined): string {
  return modeOrder
    .filter((mode) => list?.includes(mode))
    .map((mode) => modes[mode])
    .join(',')
}

function modeFaults(list: readonly string[] | undefined, path: FieldPath): FieldError[] {
  if (!list?.length) return [fieldError.required(path, 'at least 1 access mode is required')]
  const errors = list.filter((mode) => !modes[mode]).map((mode) => fieldError.notSupported(path, mode, modeOrder))
  if (list.includes('ReadWriteOncePod') && list.length > 1) errors.push(fieldError.forbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  return errors
}

function storageFaults(value: string | undefined, path: FieldPath): FieldError[] {
  if (value === undefined) return [fieldError.required(path)]
  return isQuantity(value) && quantitySign(value) > 0 ? [] : [fieldError.invalid(path, value, 'must be greater than zero')]
}

function sourcesOf(spec: Frozen<PersistentVolume['spec']>): string[] {
  return Object.keys(spec).filter((key) => !notSources.has(key) && (spec as Readonly<Record<string, unknown>>)[key] !== undefined)
}

function volumeFaults({ spec }: PersistentVolume, path: FieldPath): FieldError[] {
  const errors = modeFaults(spec.accessModes, path.child('accessModes'))
  if (!spec.capacity) errors.push(fieldError.required(path.child('capacity')))
  else errors.push(...storageFaults(spec.capacity.storage, path.child('capacity').key('storage')))
  errors.push(...oneOf(spec.persistentVolumeReclaimPolicy, ['Delete', 'Recycle', 'Retain'], path.child('persistentVolumeReclaimPolicy')))
  const sources = sourcesOf(spec)
  if (sources.length === 0) errors.push(fieldError.required(path, 'must specify a volume type'))
  for (const source of sources.slice(1)) errors.push(fieldError.forbidden(path.child(source), 'may not specify more than 1 volume type'))
  if (spec.local && !spec.nodeAffinity) errors.push(fieldError.required(path.child('nodeAffinity'), 'Local volume requires node affinity'))
  if (spec.hostPath?.path === '/' && spec.persistentVolumeReclaimPolicy === 'Recycle')
    errors.push(fieldError.forbidden(path.child('persistentVolumeReclaimPolicy'), "may not be 'recycle' for a hostPath mount of '/'"))
  if (spec.volumeMode) errors.push(...oneOf(spec.volumeMode, ['Block', 'Filesystem'], path.child('volumeMode')))
  return errors
}

function sourceChange(obj: PersistentVolume, old: Frozen<PersistentVolume>, path: FieldPath): FieldError[] {
  const pick = (spec: Frozen<PersistentVolume['spec']>) => sourcesOf(spec).map((key) => [key, (spec as Readonly<Record<string, unknown>>)[key]])
  const errors: FieldError[] = []
  if (!semanticEqual(pick(obj.spec), pick(old.spec)))
    errors.push(fieldError.forbidden(path.child('persistentvolumesource'), 'spec.persistentvolumesource is immutable after creation'))
  if (!semanticEqual(obj.spec.volumeMode, old.spec.volumeMode))
    errors.push(fieldError.invalid(path.child('volumeMode'), obj.spec.volumeMode, 'field is immutable'))
  if (old.spec.nodeAffinity && !semanticEqual(obj.spec.nodeAffinity, old.spec.nodeAffinity))
    errors.push(fieldError.invalid(path.child('nodeAffinity'), obj.spec.nodeAffinity, 'field is immutable'))
  return errors
}

function claimFaults({ spec }: PersistentVolumeClaim, path: FieldPath): FieldError[] {
  return [
    ...modeFaults(spec.accessModes, path.child('accessModes')),
    ...storageFaults(spec.resources?.requests?.storage, path.child('resources').key('storage')),
    ...(spec.volumeMode ? oneOf(spec.volumeMode, ['Block', 'Filesystem'], path.child('volumeMode')) : []),
  ]
}

/** A claim is fixed once made, but for its size when bound, its attributes class, and the binding itself. */
function claimChange(obj: PersistentVolumeClaim, old: Frozen<PersistentVolumeClaim>, path: FieldPath): FieldError[] {
  const errors = claimFaults(obj, path)
  const copy = deepCopy<PersistentVolumeClaim['spec']>(obj.spec)
  const before = deepCopy<PersistentVolumeClaim['spec']>(old.spec)
  if (!before.volumeName) copy.volumeName = before.volumeName
  if (before.storageClassName === undefined) copy.storageClassName = before.storageClassName
  copy.volumeAttributesClassName = before.volumeAttributesClassName
  const [size, oldSize] = [copy.resources?.requests?.storage, before.resources?.requests?.storage]
  const bound = old.status?.phase === 'Bound'
  if (bound) copy.resources = before.resources
  if (!semanticEqual(copy, before))
    errors.push(fieldError.forbidden(path, 'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n'))
  const floor = old.status?.capacity?.storage
  if (
    bound &&
    size !== undefined &&
    oldSize !== undefined &&
    compareQuantities(size, oldSize) < 0 &&
    (floor === undefined || compareQuantities(size, floor) <= 0)
  )
    errors.push(fieldError.forbidden(path.child('resources', 'requests', 'storage'), 'field can not be less than status.capacity'))
  return errors
}
