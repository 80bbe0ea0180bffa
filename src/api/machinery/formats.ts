/**
 * Formats of whole field values (L1): addresses, blocks, domain names, paths below a domain. Each check returns field errors with upstream's
 * texts. What an object already holds stays allowed, so that old objects can be updated.
 * Upstream: apimachinery/pkg/util/validation/{ip,validation}.go (v1.36), with StrictIPCIDRValidation on.
 */
import { type FieldError, type FieldPath, fieldError } from './fieldPath.ts'
import { formatCidr, formatIp, invalidCidrMessage, invalidIpMessage, isMapped, networkAddress, parseCidr, parseIp } from './ip.ts'
import { isDns1123Label, isDns1123Subdomain } from './names.ts'

/** An IP address without leading zeros; any spelling of IPv6. `kept` holds the values that the object had before. */
export function validateLooseIp(text: string, path: FieldPath, kept: readonly string[] = []): FieldError[] {
  return kept.includes(text) ? [] : looseIpFaults(text).map((fault) => fieldError.invalid(path, text, fault))
}

/** An IP address in its canonical spelling: one message per fault. */
export function isCanonicalIp(text: string): readonly string[] {
  const faults = looseIpFaults(text)
  const ip = parseIp(text)
  return ip && faults.length === 0 ? canonicalFaults(text, formatIp(ip)) : faults
}

/** A block of addresses without host bits; any spelling of IPv6. `kept` holds the values that the object had before. */
export function validateLooseCidr(text: string, path: FieldPath, kept: readonly string[] = []): FieldError[] {
  if (kept.includes(text)) return []
  const block = parseCidr(text)
  if (!block)
    return [fieldError.invalid(path, text, parseCidr(withoutLeadingZeros(text)) ? 'must not have leading 0s in IP or prefix length' : invalidCidrMessage)]
  if (isMapped({ family: block.family, value: block.address })) return [fieldError.invalid(path, text, 'must not have an IPv4-mapped IPv6 address')]
  return networkAddress(block).value === block.address ? [] : [fieldError.invalid(path, text, 'must not have bits set beyond the prefix length')]
}

/** A block of addresses in its canonical spelling. */
export function validateCidr(text: string, path: FieldPath): FieldError[] {
  const errors = validateLooseCidr(text, path)
  const block = parseCidr(text)
  return block && errors.length === 0 ? canonicalFaults(text, formatCidr(block)).map((fault) => fieldError.invalid(path, text, fault)) : errors
}

/** A warning for an IPv6 address in an unusual spelling. */
export function ipWarnings(text: string, path: FieldPath): string[] {
  const ip = parseIp(text)
  if (ip?.family !== 6 || formatIp(ip) === text) return []
  return [`${path}: IPv6 address ${JSON.stringify(text)} should be in RFC 5952 canonical format (${JSON.stringify(formatIp(ip))})`]
}

/** Warnings for a block with host bits, or in an unusual spelling of IPv6. */
export function cidrWarnings(text: string, path: FieldPath): string[] {
  const block = parseCidr(text)
  if (!block) return []
  const wanted = JSON.stringify(formatCidr(block))
  const address = { family: block.family, value: block.address }
  if (networkAddress(block).value !== block.address) {
    const single = JSON.stringify(`${formatIp(address)}/${block.family === 4 ? 32 : 128}`)
    return [`${path}: CIDR value ${JSON.stringify(text)} is ambiguous in this context (should be ${wanted} or ${single}?)`]
  }
  if (block.family === 4 || formatCidr(block) === text) return []
  return [`${path}: IPv6 CIDR value ${JSON.stringify(text)} should be in RFC 5952 canonical format (${wanted})`]
}

/** At least three labels, no dot at the end: names of webhooks. */
export function validateFullyQualifiedName(name: string | undefined, path: FieldPath): FieldError[] {
  if (!name) return [fieldError.required(path)]
  const faults = isDns1123Subdomain(name)
  if (faults.length > 0) return [fieldError.invalid(path, name, faults.join(','))]
  return name.split('.').length < 3 ? [fieldError.invalid(path, name, 'should be a domain with at least three segments separated by dots')] : []
}

/** At least two labels; a dot at the end is fine. */
export function validateFullyQualifiedDomainName(text: string, path: FieldPath): FieldError[] {
  if (!text) return [fieldError.required(path)]
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  const faults = isDns1123Subdomain(name)
  if (faults.length > 0) return [fieldError.invalid(path, name, faults.join(','))]
  const labels = name.split('.')
  if (labels.length < 2) return [fieldError.invalid(path, name, 'should be a domain with at least two segments separated by dots')]
  return labels.flatMap((label) => {
    const wrong = isDns1123Label(label)
    return wrong.length > 0 ? [fieldError.invalid(path, label, wrong.join(','))] : []
  })
}

const httpPath = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
const httpPathForm = new RegExp(`^${httpPath}$`)

/** `example.com/some/path`. */
export function validateDomainPrefixedPath(text: string, path: FieldPath): FieldError[] {
  if (!text) return [fieldError.required(path)]
  const slash = text.indexOf('/')
  const host = text.slice(0, Math.max(slash, 0))
  const rest = text.slice(slash + 1)
  if (slash < 0 || !host || !rest) return [fieldError.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  const errors = isDns1123Subdomain(host).map((fault) => fieldError.invalid(path, host, fault))
  if (!httpPathForm.test(rest)) errors.push(fieldError.invalid(path, rest, `Invalid path (regex used for validation is '${httpPath}')`))
  return errors
}

function looseIpFaults(text: string): readonly string[] {
  const ip = parseIp(text)
  if (!ip) return [parseIp(withoutLeadingZeros(text)) ? 'must not have leading 0s' : invalidIpMessage]
  return isMapped(ip) ? ['must not be an IPv4-mapped IPv6 address'] : []
}

function canonicalFaults(text: string, wanted: string): readonly string[] {
  return text === wanted ? [] : [`must be in canonical form (${JSON.stringify(wanted)})`]
}

function withoutLeadingZeros(text: string): string {
  return text.replace(/(^|[./:])0+(?=\d)/g, '$1')
}
