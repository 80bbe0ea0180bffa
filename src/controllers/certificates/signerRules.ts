/**
 * What the built-in signers demand of a request (L3). Pure. Upstream: pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer/signer.go (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { type CertificateRequest, subjectFault } from '#api/kinds/certificates/pkcs10'
import { isConditionTrue } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'

export const kubeletServing = 'kubernetes.io/kubelet-serving'
export const kubeletClient = 'kubernetes.io/kube-apiserver-client-kubelet'
export const apiServerClient = 'kubernetes.io/kube-apiserver-client'
export const legacyUnknown = 'kubernetes.io/legacy-unknown'
export const builtInSigners = [kubeletServing, kubeletClient, apiServerClient, legacyUnknown] as const
export type BuiltInSigner = (typeof builtInSigners)[number]

export function isBuiltInSigner(name: string): name is BuiltInSigner {
  return (builtInSigners as readonly string[]).includes(name)
}

const nodePrefix = 'system:node:'

/** What the rules read of a request. */
export type RequestContent = Pick<CertificateRequest, 'subject' | 'commonName' | 'organizations' | 'dnsNames' | 'ipAddresses' | 'emailAddresses' | 'uris'>

/**
 * Why a request does not fit this signer; undefined when it does. The subject is checked again here, because a request may be older than the checks
 * at its creation, and the admission plugin for it can be turned off.
 */
export function requestFault(signer: BuiltInSigner, content: RequestContent, usages: readonly string[]): string | undefined {
  const fault = subjectFault(content.subject)
  if (fault !== undefined) return fault
  if (signer === kubeletServing) return kubeletServingFault(content, usages)
  if (signer === kubeletClient) return kubeletClientFault(content, usages)
  return signer === apiServerClient ? (mastersFault(content) ?? clientUsageFault(usages)) : undefined
}

function kubeletServingFault({ commonName, organizations, dnsNames, ipAddresses, emailAddresses, uris }: RequestContent, usages: readonly string[]) {
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes') return 'subject organization is not system:nodes'
  if (dnsNames.length === 0 && ipAddresses.length === 0) return 'DNS or IP subjectAltName is required'
  if (emailAddresses.length > 0) return 'Email subjectAltNames are not allowed'
  if (uris.length > 0) return 'URI subjectAltNames are not allowed'
  return usageSetFault(usages, 'server auth') ?? (commonName.startsWith(nodePrefix) ? undefined : 'subject common name does not begin with system:node:')
}

function kubeletClientFault({ commonName, organizations, dnsNames, ipAddresses, emailAddresses, uris }: RequestContent, usages: readonly string[]) {
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes') return 'subject organization is not system:nodes'
  if (dnsNames.length > 0) return 'DNS subjectAltNames are not allowed'
  if (emailAddresses.length > 0) return 'Email subjectAltNames are not allowed'
  if (ipAddresses.length > 0) return 'IP subjectAltNames are not allowed'
  if (uris.length > 0) return 'URI subjectAltNames are not allowed'
  if (!commonName.startsWith(nodePrefix)) return 'subject common name does not begin with system:node:'
  return usageSetFault(usages, 'client auth')
}

/** Exactly these, key encipherment or not: only RSA keys can do that. */
function usageSetFault(usages: readonly string[], auth: string): string | undefined {
  const given = [...new Set(usages)].filter((usage) => usage !== 'key encipherment').sort()
  const wanted = [auth, 'digital signature'].sort()
  if (JSON.stringify(given) === JSON.stringify(wanted)) return undefined
  return `usages did not match [${[...wanted, 'key encipherment'].sort().join(' ')}]`
}

function mastersFault({ organizations }: RequestContent): string | undefined {
  return organizations.includes('system:masters') ? `use of ${apiServerClient} signer with system:masters group is not allowed` : undefined
}

function clientUsageFault(usages: readonly string[]): string | undefined {
  const wrong = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage))
  if (wrong !== undefined) return `invalid usage for client certificate: ${wrong}`
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth'
}

const minDurationMs = 10 * 60_000

/** Duration of the certificate: the requested one, at least ten minutes, at most the longest that is allowed. */
export function certificateDurationMs(expirationSeconds: number | undefined, longestMs: number): number {
  if (expirationSeconds === undefined) return longestMs
  return Math.min(longestMs, Math.max(minDurationMs, expirationSeconds * 1000))
}

export type Decision = 'Approved' | 'Denied' | 'Failed'

export function isDecided({ status }: Frozen<CertificateSigningRequest>, decision: Decision): boolean {
  return status?.conditions?.some(({ type }) => type === decision) === true
}

export function hasFailed({ status }: Frozen<CertificateSigningRequest>): boolean {
  return isConditionTrue(status?.conditions, 'Failed')
}
