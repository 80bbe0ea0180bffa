/** Ingress (L1). Upstream: pkg/registry/networking/ingress, pkg/apis/networking/validation, printers (v1.36). */
import type { Ingress } from '#api/gen/types/networking.v1'
import { type FieldError, fieldError } from '#api/machinery/fieldPath'
import { validateLooseIp } from '#api/machinery/formats'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain } from '#api/machinery/names'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, statusStrategy } from '../rules.ts'
import { validateIngressSpec } from './ingressRules.ts'

const shownHosts = 3
const classAnnotation = 'kubernetes.io/ingress.class'

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
  validate({ obj, path }) {
    const errors = validateIngressSpec(obj.spec, undefined, path.child('spec'))
    const annotated = obj.metadata.annotations?.[classAnnotation]
    if (annotated !== undefined && obj.spec.ingressClassName !== undefined && annotated !== obj.spec.ingressClassName)
      errors.push(fieldError.invalid(path.child('annotations', classAnnotation), annotated, 'must match `ingressClassName` when both are specified'))
    return errors
  },
  validateUpdate: ({ obj, old, path }) => validateIngressSpec(obj.spec, old.spec, path.child('spec')),
  warnings: ({ obj }, old) =>
    !old && obj.metadata.annotations?.[classAnnotation] !== undefined && obj.spec.ingressClassName === undefined
      ? [`annotation ${JSON.stringify(classAnnotation)} is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
  status: statusStrategy<Ingress>({ validateUpdate: statusFaults }),
})

function hostsText(obj: Frozen<Ingress>): string {
  const rules = obj.spec?.rules ?? []
  const shown: string[] = []
  let more = false
  for (const { host } of rules) {
    if (shown.length === shownHosts) more = true
    else if (host) shown.push(host)
  }
  if (shown.length === 0) return '*'
  return more ? `${shown.join(',')} + ${rules.length - shownHosts} more...` : shown.join(',')
}

function addressText(obj: Frozen<Ingress>): string {
  const given = (obj.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').filter((entry) => entry !== '')
  return [...new Set(given)].sort().join(',')
}

function statusFaults({ obj, old, path }: UpdateInput<Ingress>): FieldError[] {
  const before = (old.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip ? [ip] : []))
  return (obj.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }, i) => {
    const at = path.child('status', 'loadBalancer', 'ingress').index(i)
    const errors = ip ? validateLooseIp(ip, at.child('ip'), before) : []
    if (!hostname) return errors
    errors.push(...faults(at.child('hostname'), hostname, isDns1123Subdomain(hostname)))
    if (ipFamily(hostname) !== undefined) errors.push(fieldError.invalid(at.child('hostname'), hostname, 'must be a DNS name, not an IP address'))
    return errors
  })
}
