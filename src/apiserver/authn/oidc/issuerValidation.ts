/** Checks the issuer of an authenticator (L3, pure). Upstream: validateIssuer of apiserver/pkg/apis/apiserver/validation/validation.go (v1.36). */
import { X509Certificate } from 'node:crypto'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { IssuerConfiguration } from './configuration.ts'

const matchAny = 'MatchAny'

export function validateIssuer(issuer: IssuerConfiguration, disallowed: readonly string[], path: FieldPath): FieldError[] {
  const { url = '', discoveryURL = '', certificateAuthority = '', egressSelectorType = '' } = issuer
  const discoveryPath = path.child('discoveryURL')
  return [
    ...(url === '' ? [fieldError.required(path.child('url'))] : urlFaults(url, disallowed, path.child('url'))),
    ...(discoveryURL !== '' && withoutSlashes(url) === withoutSlashes(discoveryURL)
      ? [fieldError.invalid(discoveryPath, discoveryURL, 'discoveryURL must be different from URL')]
      : []),
    ...(discoveryURL === '' ? [] : urlFaults(discoveryURL, [], discoveryPath)),
    ...audienceFaults(issuer, path),
    ...authorityFaults(certificateAuthority, path.child('certificateAuthority')),
    ...(egressSelectorType === '' || egressSelectorType === 'controlplane' || egressSelectorType === 'cluster'
      ? []
      : [fieldError.invalid(path.child('egressSelectorType'), egressSelectorType, 'egress selector must be either controlplane or cluster')]),
  ]
}

const withoutSlashes = (url: string): string => url.replace(/\/+$/, '')

function urlFaults(url: string, disallowed: readonly string[], path: FieldPath): FieldError[] {
  const faults: string[] = []
  if (disallowed.includes(url)) faults.push(`URL must not overlap with disallowed issuers: [${[...disallowed].sort().join(' ')}]`)
  if (!URL.canParse(url)) return [...faults, unparsable(url)].map((fault) => fieldError.invalid(path, url, fault))
  const parsed = new URL(url)
  if (parsed.protocol !== 'https:') faults.push('URL scheme must be https')
  if (parsed.username !== '' || parsed.password !== '') faults.push('URL must not contain a username or password')
  if (parsed.search !== '') faults.push('URL must not contain a query')
  if (parsed.hash !== '') faults.push('URL must not contain a fragment')
  return faults.map((fault) => fieldError.invalid(path, url, fault))
}

/** Go parses a text without a scheme as a path. */
function unparsable(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.test(url) ? `parse ${JSON.stringify(url)}: invalid URL` : 'URL scheme must be https'
}

function audienceFaults({ audiences = [], audienceMatchPolicy: policy = '' }: IssuerConfiguration, path: FieldPath): FieldError[] {
  const audiencesPath = path.child('audiences')
  const policyPath = path.child('audienceMatchPolicy')
  if (audiences.length === 0) return [fieldError.required(audiencesPath, `at least one ${audiencesPath} is required`)]
  const faults = audiences.flatMap((audience, at) => [
    ...(audience === '' ? [fieldError.required(audiencesPath.index(at))] : []),
    ...(audiences.indexOf(audience) < at ? [fieldError.duplicate(audiencesPath.index(at), audience)] : []),
  ])
  if (audiences.length > 1 && policy !== matchAny) {
    faults.push(fieldError.invalid(policyPath, policy, 'audienceMatchPolicy must be MatchAny for multiple audiences'))
  }
  if (audiences.length === 1 && policy !== '' && policy !== matchAny) {
    faults.push(fieldError.invalid(policyPath, policy, 'audienceMatchPolicy must be empty or MatchAny for single audience'))
  }
  return faults
}

function authorityFaults(pem: string, path: FieldPath): FieldError[] {
  if (pem === '') return []
  try {
    new X509Certificate(pem)
    return []
  } catch {
    return [fieldError.invalid(path, '<omitted>', 'data does not contain any valid RSA or ECDSA certificates')]
  }
}
