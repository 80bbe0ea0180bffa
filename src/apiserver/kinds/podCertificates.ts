/**
 * Checks what the strategy of PodCertificateRequests, being pure, cannot (L3): that a request is signed with its key, that an issued certificate is
 * for that key and for the times that the status names, and that the user may sign for the signer.
 * Upstream: pkg/apis/certificates/validation, StatusStrategy of pkg/registry/certificates/podcertificaterequest (v1.36).
 */
import { createPublicKey, type KeyObject, verify, type X509Certificate } from 'node:crypto'
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import { parsePem } from '#api/kinds/certificates/pem'
import { certificateBlockType, parseRequestDer } from '#api/kinds/certificates/pkcs10'
import { isDecided } from '#api/kinds/certificates/podCertificateRequest'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { parseTime } from '#base/time'
import { signatureFault } from '#client/requestSignature'
import { mayForSigner } from '../authz/signers.ts'
import type { KindStorage } from '../registry/kindStorage.ts'
import type { CheckedWrite } from '../registry/storedResource.ts'
import { readCertificate } from './readCertificate.ts'

type Request = Frozen<PodCertificateRequest>

export const podCertificateStorage: KindStorage = { hooks: { checkRights: checkWrite } }

const paths = {
  pkixPublicKey: FieldPath.of('spec', 'pkixPublicKey'),
  proofOfPossession: FieldPath.of('spec', 'proofOfPossession'),
  signerName: FieldPath.of('spec', 'signerName'),
  stubPKCS10Request: FieldPath.of('spec', 'stubPKCS10Request'),
  beginRefreshAt: FieldPath.of('status', 'beginRefreshAt'),
  certificateChain: FieldPath.of('status', 'certificateChain'),
  notAfter: FieldPath.of('status', 'notAfter'),
  notBefore: FieldPath.of('status', 'notBefore'),
}

async function checkWrite(write: CheckedWrite): Promise<readonly FieldError[]> {
  const request = write.object as Request
  const old = write.old as Request | undefined
  if (!old) return requestFaults(request)
  if (write.subresource !== 'status' || semanticEqual(request.status ?? {}, old.status ?? {})) return []
  const errors = isDecided(request, 'Issued') ? chainFaults(request, write.nowMs) : []
  if (errors.length > 0) return errors
  const { signerName } = request.spec
  if (await mayForSigner(write.authorizers, write.user, 'sign', signerName)) return []
  const detail = `User ${JSON.stringify(write.user.name)} is not permitted to "sign" for signer ${JSON.stringify(signerName)}`
  return [fieldError.forbidden(paths.signerName, detail)]
}

function requestFaults({ spec }: Request): FieldError[] {
  return spec.stubPKCS10Request ? stubFaults(spec.stubPKCS10Request) : proofFaults(spec)
}

function stubFaults(base64: string): FieldError[] {
  const path = paths.stubPKCS10Request
  const parsed = parseRequestDer(Buffer.from(base64, 'base64'))
  const key = typeof parsed === 'string' ? undefined : readKey(parsed.publicKeyInfo)
  if (typeof parsed === 'string' || !key) return [fieldError.invalidWithoutValue(path, 'must be a valid PKCS#10 CSR')]
  const errors = kindFaults(key, path, 'elliptic public keys must use curve P256, P384, or P521')
  if (errors.length > 0) return errors
  return signatureFault(parsed) === undefined ? [] : [fieldError.invalidWithoutValue(path, 'invalid signature')]
}

/** The older form: a key, and the pod's UID signed with it. */
function proofFaults({ pkixPublicKey = '', proofOfPossession = '', podUID }: Request['spec']): FieldError[] {
  const path = paths.pkixPublicKey
  const key = readKey(Buffer.from(pkixPublicKey, 'base64'))
  if (!key) return [fieldError.invalid(path, pkixPublicKey, 'must be a valid PKIX-serialized public key')]
  const errors = kindFaults(key, path, 'elliptic public keys must use curve P256 or P384')
  if (errors.length > 0) return errors
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  // RSASSA-PSS, with a salt of any length, as Go's VerifyPSS without options.
  const scheme = key.asymmetricKeyType === 'rsa' ? { padding: rsaPssPadding, saltLength: anySaltLength } : {}
  if (verify(digest, Buffer.from(podUID), { key, ...scheme }, Buffer.from(proofOfPossession, 'base64'))) return []
  return [fieldError.invalidWithoutValue(paths.proofOfPossession, 'could not verify proof-of-possession signature')]
}

/** RSA_PKCS1_PSS_PADDING and RSA_PSS_SALTLEN_AUTO of OpenSSL. */
const rsaPssPadding = 6
const anySaltLength = -2

function readKey(der: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

/** Curves that are not accepted, as Go names them. */
const goCurves: Readonly<Record<string, string>> = bareMap({ secp224r1: 'P-224' })
const curves: readonly string[] = ['prime256v1', 'secp384r1', 'secp521r1']
const modulusLengths: readonly number[] = [3072, 4096]

function kindFaults({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject, path: FieldPath, ofCurves: string): FieldError[] {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  switch (asymmetricKeyType) {
    case 'ed25519':
      return []
    case 'ec':
      return curves.includes(namedCurve) ? [] : [fieldError.invalid(path, `curve ${goCurves[namedCurve] ?? namedCurve}`, ofCurves)]
    case 'rsa':
      return modulusLengths.includes(modulusLength)
        ? []
        : [fieldError.invalid(path, `${modulusLength}-bit modulus`, 'RSA keys must have modulus size 3072 or 4096')]
    default:
      return [fieldError.invalidWithoutValue(path, 'unknown public key type; supported types are Ed25519, ECDSA, and RSA')]
  }
}

function chainFaults(request: Request, nowMs: number): FieldError[] {
  const { certificateChain = '' } = request.status
  const fault = (detail: string) => [fieldError.invalid(paths.certificateChain, certificateChain, detail)]
  const [first, ...rest] = parsePem(certificateChain)
  if (!first) return fault('issued certificate chain must contain at least one certificate')
  if (first.type !== certificateBlockType) return fault('issued certificate chain must consist entirely of CERTIFICATE PEM blocks')
  const leaf = readCertificate(first.bytes)
  if (!leaf) return fault('leaf certificate does not parse as valid X.509')
  const errors = nameFaults(leaf)
  if (errors.length > 0) return errors
  if (!isForKey(leaf, request.spec)) return fault('leaf certificate was not issued to the requested public key')
  const ofTimes = timeFaults(request, leaf, nowMs)
  if (ofTimes.length > 0) return ofTimes
  for (const { type, bytes } of rest) {
    if (type !== certificateBlockType) return fault('issued certificate chain must consist entirely of CERTFICATE PEM blocks')
    if (!readCertificate(bytes)) return fault('intermediate certificate does not parse as valid X.509')
  }
  return []
}

/** Names that clients read differently are refused. */
function nameFaults({ subjectAltName = '' }: X509Certificate): FieldError[] {
  return subjectAltName.split(', ').flatMap((entry) => {
    const [, kind, value = ''] = /^(DNS|email):(.*)$/.exec(entry) ?? []
    const fault = (detail: string) => fieldError.invalid(paths.certificateChain, value, detail)
    if (kind === 'email') return /^[^@\s]+@[^@\s]+$/.test(value) ? [] : [fault('leaf certificate should not contain invalid EmailAddress')]
    if (kind !== 'DNS') return []
    return [
      ...(value === '' ? [fault('leaf certificate should not contain empty DNSName')] : []),
      ...(value.includes('..') ? [fault("leaf certificate's DNSName should not contain '..'")] : []),
      ...(value.startsWith('.') || value.endsWith('.') ? [fault("leaf certificate's DNSName should not start or end with '.'")] : []),
    ]
  })
}

function isForKey({ publicKey }: X509Certificate, { stubPKCS10Request, pkixPublicKey = '' }: Request['spec']): boolean {
  const parsed = stubPKCS10Request ? parseRequestDer(Buffer.from(stubPKCS10Request, 'base64')) : undefined
  const wanted = readKey(typeof parsed === 'object' ? parsed.publicKeyInfo : Buffer.from(pkixPublicKey, 'base64'))
  return wanted?.equals(publicKey) ?? false
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

function timeFaults({ spec, status }: Request, leaf: X509Certificate, nowMs: number): FieldError[] {
  const missing = [
    [paths.notBefore, status.notBefore, 'must be present and consistent with the issued certificate'],
    [paths.notAfter, status.notAfter, 'must be present and consistent with the issued certificate'],
    [paths.beginRefreshAt, status.beginRefreshAt, 'must be present and in the range [notbefore+10min, notafter-10min]'],
  ] as const
  const errors = missing.flatMap(([path, time, detail]) => (time ? [] : [fieldError.required(path, detail)]))
  if (errors.length > 0) return errors
  const msOf = (time: string | undefined) => parseTime(time ?? '') ?? Number.NaN
  const [beginMs, endMs, refreshMs] = [status.notBefore, status.notAfter, status.beginRefreshAt].map(msOf) as [number, number, number]
  if (beginMs !== Date.parse(leaf.validFrom))
    return [fieldError.invalid(paths.notBefore, status.notBefore, 'must be set to the NotBefore time encoded in the leaf certificate')]
  if (Math.abs(beginMs - nowMs) >= 5 * minuteMs)
    return [fieldError.invalid(paths.notBefore, status.notBefore, "must be set to within 5 minutes of kube-apiserver's current time")]
  if (endMs !== Date.parse(leaf.validTo))
    return [fieldError.invalid(paths.notAfter, status.notAfter, 'must be set to the NotAfter time encoded in the leaf certificate')]
  const lifeMs = endMs - beginMs
  const { maxExpirationSeconds = 0 } = spec
  const ofLife = (detail: string) => [fieldError.invalid(paths.certificateChain, BigInt(lifeMs) * 1_000_000n, detail)]
  if (lifeMs < hourMs) return ofLife('leaf certificate lifetime must be >= 1 hour')
  if (lifeMs > maxExpirationSeconds * 1000) return ofLife(`leaf certificate lifetime must be <= spec.maxExpirationSeconds (${maxExpirationSeconds})`)
  const ofRefresh = (detail: string) => [fieldError.invalid(paths.beginRefreshAt, status.beginRefreshAt, detail)]
  if (refreshMs < beginMs + 10 * minuteMs) return ofRefresh('must be at least 10 minutes after status.notBefore')
  return refreshMs > endMs - 10 * minuteMs ? ofRefresh('must be at least 10 minutes before status.notAfter') : []
}
