/**
 * CertificateSigningRequest (L1): who asks is filled in by the API server's admission of it, what is asked never changes,
 * and approval and signing go through their own endpoints. Upstream: pkg/registry/certificates/certificates/strategy.go (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { humanDuration } from '#api/machinery/duration'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepFields, keepStatus } from '../rules.ts'

const decisions = ['Approved', 'Denied']

export const certificateSigningRequest = defineKind<CertificateSigningRequest>({
  group: 'certificates.k8s.io',
  kind: 'CertificateSigningRequest',
  generation: false,
  columns: [
    nameColumn,
    ageColumn,
    text('SignerName', (obj) => obj.spec?.signerName ?? none),
    text('Requestor', (obj) => obj.spec?.username ?? ''),
    text('RequestedDuration', (obj) => (obj.spec?.expirationSeconds === undefined ? none : humanDuration(obj.spec.expirationSeconds * 1000))),
    text('Condition', conditionText),
  ],
  selectableFields: { 'spec.signerName': (obj) => obj.spec?.signerName ?? '' },
  defaults(obj) {
    obj.spec ??= {} as CertificateSigningRequest['spec']
    obj.status ??= {}
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate(input) {
    keepStatus(input)
    keepFields(input.obj, input.old, ['spec'])
  },
  validate: ({ obj, path }) => requestFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: {
    resetFields: ['spec'],
    prepareForUpdate({ obj, old }) {
      keepFields(obj, old, ['spec'])
      // The signer adds its certificate or failure; decisions are the approver's.
      const own = (obj.status?.conditions ?? []).filter((condition) => !decisions.includes(condition.type))
      const kept = (old.status?.conditions ?? []).filter((condition) => decisions.includes(condition.type)).map((condition) => ({ ...condition }))
      obj.status = { ...obj.status, ...(own.length + kept.length > 0 ? { conditions: [...kept, ...own] } : {}) }
    },
    validateUpdate: ({ obj, old, path }) =>
      old.status?.certificate && !semanticEqual(obj.status.certificate, old.status.certificate)
        ? [fieldError.forbidden(path.child('status', 'certificate'), 'updates may not change certificate')]
        : [],
  },
  subresources: {
    approval: {
      resetFields: ['spec'],
      prepareForUpdate({ obj, old }) {
        keepFields(obj, old, ['spec'])
        const { conditions } = obj.status ?? {}
        obj.status = { ...(old.status?.certificate ? { certificate: old.status.certificate } : {}), ...(conditions ? { conditions } : {}) }
      },
      validateUpdate({ obj, path }) {
        const types = new Set((obj.status.conditions ?? []).map((condition) => condition.type))
        return types.has('Approved') && types.has('Denied')
          ? [fieldError.invalid(path.child('status', 'conditions'), 'Denied', 'Approved and Denied conditions are mutually exclusive')]
          : []
      },
    },
  },
})

function requestFaults({ spec }: CertificateSigningRequest, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!spec.usages?.length) errors.push(fieldError.required(path.child('usages')))
  const pem = spec.request ? Buffer.from(spec.request, 'base64').toString('latin1') : ''
  if (!pem.includes('-----BEGIN CERTIFICATE REQUEST-----'))
    errors.push(fieldError.invalid(path.child('request'), spec.request ?? '', 'PEM block type must be CERTIFICATE REQUEST'))
  if (!spec.signerName) errors.push(fieldError.required(path.child('signerName')))
  else if (!/^[^/]+\/[^/]+$/.test(spec.signerName))
    errors.push(
      fieldError.invalid(path.child('signerName'), spec.signerName, "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
    )
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < 600)
    errors.push(fieldError.invalid(path.child('expirationSeconds'), spec.expirationSeconds, 'may not specify a duration less than 600 seconds (10 minutes)'))
  return errors
}

function conditionText(obj: Frozen<CertificateSigningRequest>): string {
  const types = new Set((obj.status?.conditions ?? []).map((condition) => condition.type))
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending'
  return `${decision}${types.has('Failed') ? ',Failed' : ''}${obj.status?.certificate ? ',Issued' : ''}`
}
