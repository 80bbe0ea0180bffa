/** VolumeAttachment (L1). Upstream: pkg/registry/storage/volumeattachment, pkg/apis/storage/validation (v1.36). */
import type { VolumeAttachment, VolumeAttachmentSource, VolumeError } from '#api/gen/types/storage.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { nameIsDnsSubdomain, rangeMessage } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, boolean, nameColumn, text } from '../columns.ts'
import { utf8Length } from '../core/data.ts'
import { validateInlineVolumeSpec } from '../core/validateVolumeSpec.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { csiDriverNameFaults } from './classRules.ts'

const maxMetadataBytes = 256 * 1024
const maxMessageBytes = 1024

export const volumeAttachment = defineKind<VolumeAttachment>({
  group: 'storage.k8s.io',
  kind: 'VolumeAttachment',
  generation: false,
  allowUnconditionalUpdate: false,
  columns: [
    nameColumn,
    { ...text<VolumeAttachment>('Attacher', (obj) => obj.spec?.attacher ?? ''), format: 'name' },
    text('PV', (obj) => obj.spec?.source?.persistentVolumeName ?? ''),
    text('Node', (obj) => obj.spec?.nodeName ?? ''),
    boolean('Attached', (obj) => obj.status?.attached ?? false),
    ageColumn,
  ],
  prepareForCreate: ({ obj }) => dropStatus(obj, { attached: false }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => attachmentFaults(obj, path),
  validateUpdate: updateFaults,
  status: statusStrategy<VolumeAttachment>({ keepMetadata: resetMetadata, validateUpdate: updateFaults }),
})

function updateFaults({ obj, old, path }: UpdateInput<VolumeAttachment>): FieldError[] {
  return [...attachmentFaults(obj, path), ...validateImmutable(obj.spec, old.spec, path.child('spec'))]
}

function attachmentFaults({ spec, status }: VolumeAttachment, path: FieldPath): FieldError[] {
  const at = path.child('spec')
  const state = path.child('status')
  const metadata = Object.entries(status?.attachmentMetadata ?? {})
  const errors = [
    ...csiDriverNameFaults(spec.attacher, at.child('attacher')),
    ...sourceFaults(spec.source, at.child('source')),
    ...faults(at.child('nodeName'), spec.nodeName, nameIsDnsSubdomain(spec.nodeName, false)),
  ]
  if (metadata.reduce((sum, [key, value]) => sum + utf8Length(key) + utf8Length(value), 0) > maxMetadataBytes)
    errors.push(fieldError.tooLong(state.child('attachmentMetadata'), maxMetadataBytes))
  errors.push(...errorFaults(status?.attachError, state.child('attachError')), ...errorFaults(status?.detachError, state.child('detachError')))
  const volume = spec.source.persistentVolumeName
  return volume === undefined ? errors : [...errors, ...faults(at.child('source', 'persistentVolumeName'), volume, nameIsDnsSubdomain(volume, false))]
}

function sourceFaults(source: VolumeAttachmentSource, path: FieldPath): FieldError[] {
  const { inlineVolumeSpec, persistentVolumeName } = source
  const one = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  if (!inlineVolumeSpec && persistentVolumeName === undefined) return [fieldError.required(path, one)]
  if (inlineVolumeSpec && persistentVolumeName !== undefined) return [fieldError.forbidden(path, one)]
  if (inlineVolumeSpec) return validateInlineVolumeSpec(inlineVolumeSpec, path.child('inlineVolumeSpec'))
  return persistentVolumeName === '' ? [fieldError.required(path.child('persistentVolumeName'), 'must specify non empty persistentVolumeName')] : []
}

function errorFaults(error: VolumeError | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  // Upstream names the wrong limit here; tools match on it.
  if (utf8Length(error?.message ?? '') > maxMessageBytes) errors.push(fieldError.tooLong(path.child('message'), maxMetadataBytes))
  if (error?.errorCode !== undefined && error.errorCode < 0)
    errors.push(fieldError.invalid(path.child('errorCode'), error.errorCode, rangeMessage(0, 2_147_483_647)))
  return errors
}
