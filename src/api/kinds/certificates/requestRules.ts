/**
 * What a CertificateSigningRequest may hold, and who may change which part of it (L1). What an old object already had wrong may stay.
 * Upstream: pkg/apis/certificates/validation (v1.36).
 */
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '#api/gen/types/certificates.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import type { UpdateInput } from '../defineKind.ts'
import { parsePem } from './pem.ts'
import { certificateBlockType, looksLikeCertificate, parseCertificateRequest, subjectFault } from './pkcs10.ts'
import { validateSignerName } from './signerName.ts'

type Request = CertificateSigningRequest
type Conditions = readonly Frozen<CertificateSigningRequestCondition>[]

const legacySigner = 'kubernetes.io/legacy-unknown'
/** Signers of this cluster. */
const builtInSigners = ['kubernetes.io/kube-apiserver-client', 'kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving', legacySigner]
const minSeconds = 600
const usages = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
]
/** Conditions that are there or not, but never False. */
const oneWay = ['Approved', 'Denied', 'Failed']

/** What the endpoint of an update allows. */
export interface RequestRights {
  readonly mayDecide?: boolean
  readonly mayCertify?: boolean
}

/** The faults of a request; `old` is the one before an update. */
export function validateRequest(obj: Request, old: Frozen<Request> | undefined, path: FieldPath): FieldError[] {
  const at = path.child('spec')
  const { request, signerName, expirationSeconds } = obj.spec
  const errors: FieldError[] = []
  const parsed = parseCertificateRequest(request ?? '')
  const subject = typeof parsed === 'string' ? parsed : old || !builtInSigners.includes(signerName) ? undefined : subjectFault(parsed.subject)
  if (subject !== undefined) errors.push(fieldError.invalid(at.child('request'), request ?? null, subject))
  errors.push(...usageFaults(obj.spec.usages ?? [], old?.spec.usages ?? [], at.child('usages')))
  if (signerName === legacySigner && old?.spec.signerName !== legacySigner)
    errors.push(fieldError.invalid(at.child('signerName'), signerName, 'the legacy signerName is not allowed via this API version'))
  else errors.push(...validateSignerName(signerName, at.child('signerName')))
  if (expirationSeconds !== undefined && expirationSeconds < minSeconds)
    errors.push(fieldError.invalid(at.child('expirationSeconds'), expirationSeconds, 'may not specify a duration less than 600 seconds (10 minutes)'))
  const before = old?.status?.conditions ?? []
  errors.push(...conditionFaults(obj.status?.conditions ?? [], before, path.child('status', 'conditions')))
  const fault = obj.status?.certificate === old?.status?.certificate ? undefined : certificateFault(obj.status?.certificate)
  if (fault && !certificateFault(old?.status?.certificate)) errors.push(fieldError.invalid(path.child('status', 'certificate'), '<certificate data>', fault))
  return errors
}

/** The faults of a change, by what its endpoint allows: decisions are made in one place, certificates given in another. */
export function validateRequestUpdate({ obj, old, path }: UpdateInput<Request>, { mayDecide = false, mayCertify = false }: RequestRights): FieldError[] {
  const errors = validateRequest(obj, old, path)
  const at = path.child('status', 'conditions')
  const of = (conditions: Conditions | undefined, type: string) => (conditions ?? []).filter((condition) => condition.type === type)
  for (const type of oneWay)
    if (of(obj.status?.conditions, type).length < of(old.status?.conditions, type).length)
      errors.push(fieldError.forbidden(at, `updates may not remove a condition of type ${JSON.stringify(type)}`))
  for (const type of mayDecide ? [] : ['Approved', 'Denied']) {
    const after = of(obj.status?.conditions, type)
    const before = of(old.status?.conditions, type)
    if (after.length > before.length) errors.push(fieldError.forbidden(at, `updates may not add a condition of type ${JSON.stringify(type)}`))
    else if (after.length === before.length && !semanticEqual(after, before))
      errors.push(fieldError.forbidden(at, `updates may not modify a condition of type ${JSON.stringify(type)}`))
  }
  const certificate = path.child('status', 'certificate')
  if ((obj.status?.certificate ?? '') === (old.status?.certificate ?? '')) return errors
  if (!mayCertify) errors.push(fieldError.forbidden(certificate, 'updates may not set certificate content'))
  else if (old.status?.certificate) errors.push(fieldError.forbidden(certificate, 'updates may not modify existing certificate content'))
  return errors
}

function usageFaults(given: readonly string[], before: readonly string[], path: FieldPath): FieldError[] {
  const repeats = (list: readonly string[]) => new Set(list).size < list.length
  const anyUsage = before.some((usage) => !usages.includes(usage))
  const errors = given.length === 0 ? [fieldError.required(path)] : []
  if (!anyUsage) for (const [i, usage] of given.entries()) if (!usages.includes(usage)) errors.push(fieldError.notSupported(path.index(i), usage, usages))
  if (!repeats(before)) for (const i of repeatedAt(given)) errors.push(fieldError.duplicate(path.index(i), given[i]))
  return errors
}

function conditionFaults(conditions: Conditions, before: Conditions, path: FieldPath): FieldError[] {
  const types = (list: Conditions) => list.map(({ type }) => type)
  const old = types(before)
  const hadBoth = old.includes('Approved') && old.includes('Denied')
  const hadRepeats = new Set(old).size < old.length
  const seen = new Set<string>()
  return conditions.flatMap(({ type, status }, i) => {
    const at = path.index(i)
    const errors = statusFaults(type, status, at.child('status'))
    if (!type && !old.includes('')) errors.unshift(fieldError.required(at.child('type')))
    const opposite = type === 'Approved' ? 'Denied' : type === 'Denied' ? 'Approved' : undefined
    if (opposite && seen.has(opposite) && !hadBoth) errors.push(fieldError.invalid(path, type, 'Approved and Denied conditions are mutually exclusive'))
    if (seen.has(type) && !hadRepeats) errors.push(fieldError.duplicate(at.child('type'), type))
    seen.add(type)
    return errors
  })
}

function statusFaults(type: string, status: string, path: FieldPath): FieldError[] {
  const allowed = oneWay.includes(type) ? ['True'] : ['False', 'True', 'Unknown']
  if (!status) return [fieldError.required(path)]
  return allowed.includes(status) ? [] : [fieldError.notSupported(path, status, allowed)]
}

/** Faults of the base64 of PEM certificates. No certificate at all is valid. */
function certificateFault(base64: string | undefined): string | undefined {
  if (!base64) return undefined
  const blocks = parsePem(Buffer.from(base64, 'base64').toString('latin1'))
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block'
  for (const { type, hasHeaders, bytes } of blocks) {
    if (type !== certificateBlockType) return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`
    if (hasHeaders) return 'no PEM block headers are permitted'
    if (!looksLikeCertificate(bytes)) return 'x509: malformed certificate'
  }
  return undefined
}
