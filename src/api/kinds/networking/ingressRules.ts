/**
 * What an Ingress's spec may hold (L1). What the old object already had wrong stays allowed on update.
 * Upstream: pkg/apis/networking/validation (v1.36), with RelaxedServiceNameValidation on.
 */
import type { TypedLocalObjectReference } from '#api/gen/types/core.v1'
import type { HTTPIngressPath, IngressBackend, IngressRule, IngressSpec, IngressTLS } from '#api/gen/types/networking.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import {
  isDns1123Label,
  isDns1123Subdomain,
  isPathSegmentName,
  isPortName,
  isPortNumber,
  isWildcardDns1123Subdomain,
  nameIsDnsSubdomain,
} from '#api/machinery/names'
import { faults } from '../rules.ts'

const forbiddenSequences = ['//', '/./', '/../', '%2f', '%2F']
const forbiddenEnds = ['/..', '/.']
const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']

/** The faults of a spec; `old` is the one before an update. */
export function validateIngressSpec(spec: IngressSpec, old: Frozen<IngressSpec> | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!spec.rules?.length && !spec.defaultBackend)
    errors.push(fieldError.invalid(path, spec.rules ?? null, 'either `defaultBackend` or `rules` must be specified'))
  if (spec.defaultBackend) errors.push(...backendFaults(spec.defaultBackend, path.child('defaultBackend')))
  const anyWildcardRule = old?.rules?.some((rule) => rule.host?.includes('*') && httpFaults(rule as IngressRule, FieldPath.of()).length > 0) ?? false
  for (const [i, rule] of (spec.rules ?? []).entries()) {
    const at = path.child('rules').index(i)
    errors.push(...hostFaults(rule, at.child('host')))
    if (!anyWildcardRule || !rule.host?.includes('*')) errors.push(...httpFaults(rule, at))
  }
  const anySecretName = old?.tls?.some((tls) => secretNameFaults(tls as IngressTLS).length > 0) ?? false
  for (const [i, tls] of (spec.tls ?? []).entries()) {
    const at = path.child('tls').index(i)
    for (const [j, host] of (tls.hosts ?? []).entries()) errors.push(...faults(at.child('hosts').index(j), host, domainFaults(host)))
    if (!anySecretName) errors.push(...faults(at.child('secretName'), tls.secretName, secretNameFaults(tls)))
  }
  if (spec.ingressClassName !== undefined)
    errors.push(...faults(path.child('ingressClassName'), spec.ingressClassName, nameIsDnsSubdomain(spec.ingressClassName, false)))
  return errors
}

/** The faults of a reference to an object in the same namespace. */
function referenceFaults(reference: TypedLocalObjectReference, path: FieldPath): FieldError[] {
  const errors = reference.apiGroup === undefined ? [] : faults(path.child('apiGroup'), reference.apiGroup, isDns1123Subdomain(reference.apiGroup))
  for (const field of ['kind', 'name'] as const) {
    if (!reference[field]) errors.push(fieldError.required(path.child(field)))
    else errors.push(...faults(path.child(field), reference[field], isPathSegmentName(reference[field])))
  }
  return errors
}

function hostFaults({ host }: IngressRule, path: FieldPath): FieldError[] {
  if (!host) return []
  const errors = faults(path, host, domainFaults(host))
  return ipFamily(host) === undefined ? errors : [fieldError.invalid(path, host, 'must be a DNS name, not an IP address'), ...errors]
}

function domainFaults(host: string): readonly string[] {
  return host.includes('*') ? isWildcardDns1123Subdomain(host) : isDns1123Subdomain(host)
}

function secretNameFaults({ secretName }: IngressTLS): readonly string[] {
  return secretName ? nameIsDnsSubdomain(secretName, false) : []
}

function httpFaults({ http }: IngressRule, path: FieldPath): FieldError[] {
  if (!http) return []
  const at = path.child('http', 'paths')
  if (!http.paths?.length) return [fieldError.required(at)]
  return http.paths.flatMap((entry, i) => pathFaults(entry, at.index(i)))
}

function pathFaults(entry: HTTPIngressPath, path: FieldPath): FieldError[] {
  if (!entry.pathType) return [fieldError.required(path.child('pathType'), 'pathType must be specified')]
  const at = path.child('path')
  const given = entry.path ?? ''
  const errors: FieldError[] = []
  if (!pathTypes.includes(entry.pathType)) errors.push(fieldError.notSupported(path.child('pathType'), entry.pathType, pathTypes))
  else if (!given.startsWith('/') && (given !== '' || entry.pathType !== 'ImplementationSpecific'))
    errors.push(fieldError.invalid(at, given, 'must be an absolute path'))
  if (entry.pathType === 'Exact' || entry.pathType === 'Prefix') {
    for (const part of forbiddenSequences) if (given.includes(part)) errors.push(fieldError.invalid(at, given, `must not contain '${part}'`))
    for (const end of forbiddenEnds) if (given.endsWith(end)) errors.push(fieldError.invalid(at, given, `cannot end with '${end}'`))
  }
  return [...errors, ...backendFaults(entry.backend, path.child('backend'))]
}

function backendFaults(backend: IngressBackend | undefined, path: FieldPath): FieldError[] {
  const { service, resource } = backend ?? {}
  if (resource && service) return [fieldError.invalid(path, '', 'cannot set both resource and service backends')]
  if (resource) return referenceFaults(resource, path.child('resource'))
  if (!service) return [fieldError.invalid(path, '', 'resource or service backend is required')]
  const at = path.child('service')
  const errors = service.name ? faults(at.child('name'), service.name, isDns1123Label(service.name)) : [fieldError.required(at.child('name'))]
  const { name, number } = service.port ?? {}
  if (name && number) errors.push(fieldError.invalid(path, '', 'cannot set both port name & port number'))
  else if (name) errors.push(...faults(at.child('port', 'name'), name, isPortName(name)))
  else if (number) errors.push(...faults(at.child('port', 'number'), number, isPortNumber(number)))
  else errors.push(fieldError.required(path, 'port name or number is required'))
  return errors
}
