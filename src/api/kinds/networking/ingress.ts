/** Ingress and IngressClass (L1). Upstream: pkg/registry/networking/{ingress,ingressclass}, pkg/apis/networking/validation (v1.36). */
import type { Ingress, IngressBackend, IngressClass } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label, isDns1123Subdomain, isPortName, isPortNumber, isWildcardDns1123Subdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, oneOf, statusStrategy } from '../rules.ts'

const shownHosts = 3

export const ingress = defineKind<Ingress>({
  group: 'networking.k8s.io',
  kind: 'Ingress',
  columns: [
    nameColumn,
    text('Class', (obj) => obj.spec?.ingressClassName ?? none),
    text('Hosts', hostsText),
    text('Address', addressText),
    text('Ports', (obj) => (obj.spec?.tls?.length ? '80, 443' : '80')),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.loadBalancer ??= {}
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { loadBalancer: {} }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => ingressFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => ingressFaults(obj, path.child('spec')),
  status: statusStrategy<Ingress>(),
})

export const ingressClass = defineKind<IngressClass>({
  group: 'networking.k8s.io',
  kind: 'IngressClass',
  columns: [
    nameColumn,
    text('Controller', (obj) => obj.spec?.controller ?? ''),
    text('Parameters', ({ spec }) => {
      const parameters = spec?.parameters
      if (!parameters) return none
      return `${parameters.kind}${parameters.apiGroup ? `.${parameters.apiGroup}` : ''}/${parameters.name}`
    }),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {}
    if (obj.spec.parameters) obj.spec.parameters.scope ??= 'Cluster'
  },
  validate: ({ obj, path }) => (obj.spec.controller ? [] : [fieldError.required(path.child('spec', 'controller'))]),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec.controller, old.spec.controller, path.child('spec', 'controller')),
})

function hostsText(obj: Frozen<Ingress>): string {
  const rules = obj.spec?.rules ?? []
  const hosts = rules.slice(0, shownHosts).flatMap((rule) => (rule.host ? [rule.host] : []))
  if (hosts.length === 0) return '*'
  return rules.length > shownHosts ? `${hosts.join(',')} + ${rules.length - shownHosts} more...` : hosts.join(',')
}

function addressText(obj: Frozen<Ingress>): string {
  const given = (obj.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').filter((entry) => entry !== '')
  return [...new Set(given)].sort().join(',')
}

function ingressFaults({ spec }: Ingress, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!spec.rules?.length && !spec.defaultBackend)
    errors.push(fieldError.invalid(path, spec.rules ?? [], 'either `defaultBackend` or `rules` must be specified'))
  if (spec.defaultBackend) errors.push(...backendFaults(spec.defaultBackend, path.child('defaultBackend')))
  for (const [i, rule] of (spec.rules ?? []).entries()) {
    const at = path.child('rules').index(i)
    if (rule.host) {
      if (ipFamily(rule.host) !== undefined) errors.push(fieldError.invalid(at.child('host'), rule.host, 'must be a DNS name, not an IP address'))
      errors.push(...faults(at.child('host'), rule.host, rule.host.includes('*') ? isWildcardDns1123Subdomain(rule.host) : isDns1123Subdomain(rule.host)))
    }
    if (rule.http && !rule.http.paths?.length) errors.push(fieldError.required(at.child('http', 'paths')))
    for (const [j, entry] of (rule.http?.paths ?? []).entries()) {
      const one = at.child('http', 'paths').index(j)
      if (!entry.pathType) errors.push(fieldError.required(one.child('pathType'), 'pathType must be specified'))
      else errors.push(...oneOf(entry.pathType, ['Exact', 'ImplementationSpecific', 'Prefix'], one.child('pathType')))
      if ((entry.pathType === 'Exact' || entry.pathType === 'Prefix') && !entry.path?.startsWith('/'))
        errors.push(fieldError.invalid(one.child('path'), entry.path ?? '', 'must be an absolute path'))
      errors.push(...backendFaults(entry.backend, one.child('backend')))
    }
  }
  for (const [i, tls] of (spec.tls ?? []).entries()) {
    for (const [j, host] of (tls.hosts ?? []).entries())
      errors.push(
        ...faults(path.child('tls').index(i).child('hosts').index(j), host, host.includes('*') ? isWildcardDns1123Subdomain(host) : isDns1123Subdomain(host)),
      )
  }
  return errors
}

function backendFaults(backend: IngressBackend | undefined, path: FieldPath): FieldError[] {
  const { service, resource } = backend ?? {}
  if (resource && service) return [fieldError.invalid(path, '', 'cannot set both resource and service backends')]
  if (resource) return []
  if (!service) return [fieldError.required(path, 'resource or service backend is required')]
  const errors: FieldError[] = []
  const at = path.child('service')
  if (!service.name) errors.push(fieldError.required(at.child('name')))
  else errors.push(...faults(at.child('name'), service.name, isDns1035Label(service.name)))
  const { name, number } = service.port ?? {}
  if (name && number) errors.push(fieldError.invalid(path, '', 'cannot set both port name & port number'))
  else if (name) errors.push(...faults(at.child('port', 'name'), name, isPortName(name)))
  else if (number) errors.push(...faults(at.child('port', 'number'), number, isPortNumber(number)))
  else errors.push(fieldError.required(path, 'port name or number is required'))
  return errors
}
