/** PersistentVolume (L1). Upstream: pkg/registry/core/persistentvolume, pkg/apis/core/validation ValidatePersistentVolume* (v1.36). */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { nodeExpressionWarnings } from '../nodeLabelWarnings.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { sourcesOf, validateVolumeSpec } from './validateVolumeSpec.ts'
import { classAnnotation, classAnnotationWarning, classOf, modesText } from './volumeModes.ts'

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
  prepareForCreate: ({ obj, context }) => dropStatus(obj, { phase: 'Pending', lastPhaseTransitionTime: formatTime(context.nowMs) }),
  prepareForUpdate: keepStatus,
  warnings: ({ obj, path }) => volumeWarnings(obj, path),
  validate: ({ obj, path }) => validateVolumeSpec(obj.spec, obj.metadata.name ?? '', path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...validateVolumeSpec(obj.spec, obj.metadata.name ?? '', path.child('spec')),
    ...sourceChange(obj, old, path.child('spec')),
  ],
  status: statusStrategy<PersistentVolume>({ prepareForUpdate: stampPhase }),
})

/** Sets the time of the last change of phase, unless the client set it. */
function stampPhase({ obj: { status }, old, context }: UpdateInput<PersistentVolume>): void {
  if (!status) return
  const before = old.status?.lastPhaseTransitionTime
  if (status.phase !== old.status?.phase) {
    if (!status.lastPhaseTransitionTime || status.lastPhaseTransitionTime === before) status.lastPhaseTransitionTime = formatTime(context.nowMs)
  } else if (before) status.lastPhaseTransitionTime ??= before
}

/** Annotations that fields have replaced. */
const deprecatedAnnotations = [
  [classAnnotation, classAnnotationWarning],
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
