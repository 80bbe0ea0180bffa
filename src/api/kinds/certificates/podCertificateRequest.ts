/**
 * PodCertificateRequest (L1): a kubelet asks a signer for a pod's certificate; the spec never changes, and the status changes once, to the decision.
 * The API server checks keys, certificates and the right to sign in its `kinds/podCertificates.ts`.
 * Upstream: pkg/registry/certificates/podcertificaterequest, pkg/apis/certificates/validation (v1.36).
 */
import type { PodCertificateRequest, PodCertificateRequestSpec, PodCertificateRequestStatus } from '#api/gen/types/certificates.v1beta1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { labelsText, nameColumn, text } from '../columns.ts'
import { validateConditions } from '../conditionRules.ts'
import { utf8Length } from '../core/data.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { certificateSecondsRange, validateUserAnnotations } from './podCertificateRules.ts'
import { validateSignerName } from './signerName.ts'

type Request = PodCertificateRequest
/** Conditions of which one ends the request. */
type Decision = 'Issued' | 'Denied' | 'Failed'

const decisions: readonly Decision[] = ['Issued', 'Denied', 'Failed']
const maxUidLength = 128
const maxKeyBytes = 10 * 1024
const maxChainBytes = 100 * 1024

export const podCertificateRequest = defineKind<Request>({
  group: 'certificates.k8s.io',
  kind: 'PodCertificateRequest',
  generation: false,
  allowUnconditionalUpdate: false,
  resetFields: [],
  columns: [
    nameColumn,
    text('PodName', (obj) => obj.spec?.podName ?? ''),
    text('ServiceAccountName', (obj) => obj.spec?.serviceAccountName ?? ''),
    text('NodeName', (obj) => obj.spec?.nodeName ?? ''),
    text('SignerName', (obj) => obj.spec?.signerName ?? ''),
    text('State', (obj) => obj.status?.conditions?.findLast(({ type }) => decisions.includes(type as Decision))?.type ?? 'Pending'),
    text('UnverifiedUserAnnotations', (obj) => labelsText(obj.spec?.unverifiedUserAnnotations)),
  ],
  selectableFields: {
    'spec.signerName': (obj) => obj.spec?.signerName ?? '',
    'spec.podName': (obj) => obj.spec?.podName ?? '',
    'spec.nodeName': (obj) => obj.spec?.nodeName ?? '',
  },
  selectsNamespace: false,
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj.spec ?? ({} as PodCertificateRequestSpec), path.child('spec')),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<Request>({
    // A copy: managers may own metadata that this endpoint restores.
    keepMetadata: [...resetMetadata],
    validateUpdate: statusFaults,
  }),
})

/** Whether the status has a decision. */
export function isDecided({ status }: Frozen<Request>, ...types: readonly Decision[]): boolean {
  return status?.conditions?.some(({ type, status }) => status === 'True' && types.includes(type as Decision)) ?? false
}

function specFaults(spec: PodCertificateRequestSpec, path: FieldPath): FieldError[] {
  const { signerName, maxExpirationSeconds: seconds } = spec
  const errors = [
    ...validateSignerName(signerName, path.child('signerName')),
    ...validateUserAnnotations(spec.unverifiedUserAnnotations, path.child('unverifiedUserAnnotations')),
    ...nameFaults(spec.podName, path.child('podName')),
    ...uidFaults(spec.podUID, path.child('podUID')),
    ...nameFaults(spec.serviceAccountName, path.child('serviceAccountName')),
    ...uidFaults(spec.serviceAccountUID, path.child('serviceAccountUID')),
    ...nameFaults(spec.nodeName, path.child('nodeName')),
    ...uidFaults(spec.nodeUID, path.child('nodeUID')),
  ]
  const { min, max } = certificateSecondsRange(signerName)
  const at = path.child('maxExpirationSeconds')
  if (seconds === undefined) return [...errors, fieldError.required(at, 'must be set')]
  if (seconds < min || seconds > max) errors.push(fieldError.invalid(at, seconds, `must be in the range [${min}, ${max}]`))
  return [...errors, ...keyFaults(spec, path)]
}

/** One of the two forms of a key; the API server reads it. */
function keyFaults({ stubPKCS10Request, pkixPublicKey, proofOfPossession }: PodCertificateRequestSpec, path: FieldPath): FieldError[] {
  const isTooLong = (base64: string | undefined) => Buffer.byteLength(base64 ?? '', 'base64') > maxKeyBytes
  if (stubPKCS10Request && !pkixPublicKey && !proofOfPossession)
    return isTooLong(stubPKCS10Request) ? [fieldError.tooLong(path.child('stubPKCS10Request'), maxKeyBytes)] : []
  if (stubPKCS10Request || !pkixPublicKey || !proofOfPossession)
    return [fieldError.invalidWithoutValue(path, 'exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set')]
  if (isTooLong(pkixPublicKey)) return [fieldError.tooLong(path.child('pkixPublicKey'), maxKeyBytes)]
  return isTooLong(proofOfPossession) ? [fieldError.tooLong(path.child('proofOfPossession'), maxKeyBytes)] : []
}

function nameFaults(name = '', path: FieldPath): FieldError[] {
  return faults(path, name, isDns1123Subdomain(name))
}

function uidFaults(uid = '', path: FieldPath): FieldError[] {
  if (uid === '') return [fieldError.invalid(path, uid, 'must not be empty')]
  return utf8Length(uid) > maxUidLength ? [fieldError.tooLong(path, maxUidLength)] : []
}

function statusFaults({ obj, old, path }: UpdateInput<Request>): FieldError[] {
  const at = path.child('status')
  const { conditions, ...others }: Partial<PodCertificateRequestStatus> = obj.status ?? {}
  const ofConditions = decisionFaults(conditions ?? [], at.child('conditions'))
  const errors = [...ofConditions, ...validateConditions(conditions, at.child('conditions'))]
  if (errors.length > 0) return errors
  const isChanged = !semanticEqual(obj.status ?? {}, old.status ?? {})
  if (isDecided(old, ...decisions))
    return isChanged ? [fieldError.invalidWithoutValue(at, 'immutable after PodCertificateRequest is issued, denied, or failed')] : []
  const request = obj as Frozen<Request>
  if (isDecided(request, 'Denied', 'Failed')) {
    const detail = 'non-condition status fields must be empty when denying or failing the PodCertificateRequest'
    return Object.values(others).some(Boolean) ? [fieldError.invalidWithoutValue(at, detail)] : []
  }
  if (isDecided(request, 'Issued')) {
    const isTooLong = utf8Length(others.certificateChain ?? '') > maxChainBytes
    return isTooLong ? [fieldError.tooLong(at.child('certificateChain'), maxChainBytes)] : []
  }
  return isChanged ? [fieldError.invalidWithoutValue(at, 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"')] : []
}

/** One decision at most, which is True, and no other condition. */
function decisionFaults(conditions: NonNullable<PodCertificateRequestStatus['conditions']>, path: FieldPath): FieldError[] {
  let known = 0
  return conditions.flatMap(({ type, status }, i) => {
    const at = path.index(i)
    if (!decisions.includes(type as Decision)) return [fieldError.notSupported(at.child('type'), type, decisions)]
    known++
    const several = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
    return [
      ...(known > 1 ? [fieldError.invalid(at.child('type'), type, several)] : []),
      ...(status === 'True' ? [] : [fieldError.notSupported(at.child('status'), status, ['True'])]),
    ]
  })
}
