/** Validation of services (L1). Upstream: pkg/apis/core/validation ValidateService, ValidateServiceUpdate (v1.36). */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import { isExternallyAccessible } from '#api/helpers/services'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import {
  invalidCidrMessage,
  invalidIpMessage,
  ipFamily,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isLoopback,
  isUnspecified,
  parseCidr,
  parseIp,
} from '#api/machinery/ip'
import { validateLabels } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain, isPortNumber, isQualifiedName } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { faults, oneOf } from '../rules.ts'
import { validatePortNumberOrName } from './pod/validateProbes.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const maxClientIpTimeout = 86_400

/** All rules that need only the Service itself. */
export function validateService(obj: Service, root: FieldPath): FieldError[] {
  const path = root.child('spec')
  const { spec } = obj
  const headless = spec.clusterIP === 'None'
  const errors = topologyFaults(obj, root.child('metadata', 'annotations'))
  if (!spec.ports?.length && !headless && spec.type !== 'ExternalName') errors.push(fieldError.required(path.child('ports')))
  if ((spec.type === 'LoadBalancer' || spec.type === 'NodePort') && headless)
    errors.push(fieldError.invalid(path.child('clusterIPs').index(0), 'None', `may not be set to 'None' for ${spec.type} services`))
  if (spec.type === 'ExternalName') errors.push(...externalNameFaults(obj, path))
  else errors.push(...addressFaults(obj, path))
  errors.push(...portFaults(spec.ports, spec.type, path.child('ports')))
  errors.push(...validateLabels(spec.selector, path.child('selector')))
  errors.push(...oneOf(spec.sessionAffinity, ['ClientIP', 'None'], path.child('sessionAffinity')))
  if (spec.sessionAffinity === 'ClientIP') errors.push(...affinityFaults(spec.sessionAffinityConfig, path.child('sessionAffinityConfig')))
  if (spec.sessionAffinity === 'None' && spec.sessionAffinityConfig)
    errors.push(fieldError.forbidden(path.child('sessionAffinityConfig'), 'must not be set when session affinity is None'))
  for (const [i, ip] of (spec.externalIPs ?? []).entries()) errors.push(...specialAddressFaults(ip, path.child('externalIPs').index(i)))
  errors.push(...oneOf(spec.type, types, path.child('type')))
  return [...errors, ...loadBalancerFaults(obj, path), ...policyFaults(obj, path), ...familyFaults(obj, path)]
}

/** The annotation and its successor must agree. */
function topologyFaults({ metadata: { annotations = {} } }: Service, path: FieldPath): FieldError[] {
  const [mode, hints] = [annotations['service.kubernetes.io/topology-mode'], annotations['service.kubernetes.io/topology-aware-hints']]
  if (mode === undefined || hints === undefined || mode === hints) return []
  const detail = 'must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified'
  return [fieldError.invalid(path.key('service.kubernetes.io/topology-mode'), mode, detail)]
}

function affinityFaults(config: Service['spec']['sessionAffinityConfig'], path: FieldPath): FieldError[] {
  const when = 'when session affinity type is ClientIP'
  if (!config) return [fieldError.required(path, when)]
  if (!config.clientIP) return [fieldError.required(path.child('clientIP'), when)]
  const timeout = config.clientIP.timeoutSeconds
  const at = path.child('clientIP', 'timeoutSeconds')
  if (timeout === undefined) return [fieldError.required(at, when)]
  return timeout <= 0 || timeout > maxClientIpTimeout ? [fieldError.invalid(at, timeout, `must be greater than 0 and less than ${maxClientIpTimeout}`)] : []
}

/** Fields that may not change while the type stays: the first address and family, the load balancer's class, the health check's port. */
export function validateServiceUpdate(obj: Service, old: Frozen<Service>, root: FieldPath): FieldError[] {
  const path = root.child('spec')
  const errors: FieldError[] = []
  // The first address may not change; a second one may be added and removed.
  if (old.spec.type !== 'ExternalName' && obj.spec.type !== 'ExternalName' && old.spec.clusterIP && obj.spec.clusterIP !== old.spec.clusterIP)
    errors.push(fieldError.invalid(path.child('clusterIPs').index(0), obj.spec.clusterIPs?.[0] ?? '', 'may not change once set'))
  if (old.spec.type === 'LoadBalancer' && obj.spec.type === 'LoadBalancer' && !semanticEqual(obj.spec.loadBalancerClass, old.spec.loadBalancerClass))
    errors.push(fieldError.invalid(path.child('loadBalancerClass'), obj.spec.loadBalancerClass, 'may not change once set'))
  if (old.spec.healthCheckNodePort && obj.spec.healthCheckNodePort && obj.spec.type === old.spec.type)
    errors.push(...validateImmutable(obj.spec.healthCheckNodePort, old.spec.healthCheckNodePort, path.child('healthCheckNodePort')))
  const oldFirst = old.spec.ipFamilies?.[0]
  if (oldFirst && obj.spec.ipFamilies?.[0] && obj.spec.type !== 'ExternalName' && old.spec.type !== 'ExternalName' && obj.spec.ipFamilies[0] !== oldFirst)
    errors.push(fieldError.invalid(path.child('ipFamilies').index(0), obj.spec.ipFamilies, 'may not change once set'))
  return errors
}

function externalNameFaults({ spec }: Service, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
    if (!semanticEqual(spec[field], undefined)) errors.push(fieldError.forbidden(path.child(field), 'may not be set for ExternalName services'))
  }
  const name = (spec.externalName ?? '').replace(/\.$/, '')
  const at = path.child('externalName')
  return [...errors, ...(name ? faults(at, name, isDns1123Subdomain(name.toLowerCase())) : [fieldError.required(at)])]
}

function addressFaults({ spec }: Service, path: FieldPath): FieldError[] {
  const at = path.child('clusterIPs')
  const ips = spec.clusterIPs ?? []
  const errors: FieldError[] = []
  if (spec.clusterIP && ips.length === 0) return [fieldError.required(at)]
  if (!spec.clusterIP && ips.length > 0) return [fieldError.invalid(at, ips, 'must be empty when `clusterIP` is not specified')]
  if (ips[0] !== undefined && ips[0] !== spec.clusterIP) errors.push(fieldError.invalid(at, ips, 'first value must match `clusterIP`'))
  for (const [i, ip] of ips.entries()) {
    if (ip === 'None') {
      if (ips.length > 1) errors.push(fieldError.invalid(at, ips, "'None' must be the first and only value"))
    } else if (ipFamily(ip) === undefined) errors.push(fieldError.invalid(at.index(i), ip, invalidIpMessage))
  }
  if (ips.length > 2) errors.push(fieldError.invalid(at, ips, 'may only hold up to 2 values'))
  else if (ips.length === 2 && ipFamily(ips[0] ?? '') === ipFamily(ips[1] ?? ''))
    errors.push(fieldError.invalid(at, ips, 'may specify no more than one IP for each IP family'))
  return errors
}

function portFaults(ports: readonly ServicePort[] | undefined, type: string | undefined, path: FieldPath): FieldError[] {
  const names = new Set<string>()
  const pairs = new Set<string>()
  const nodePorts = new Set<string>()
  return (ports ?? []).flatMap((port, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!port.name) {
      if ((ports ?? []).length > 1) errors.push(fieldError.required(at.child('name')))
    } else {
      errors.push(...faults(at.child('name'), port.name, isDns1123Label(port.name)))
      if (names.has(port.name)) errors.push(fieldError.duplicate(at.child('name'), port.name))
      names.add(port.name)
    }
    errors.push(...faults(at.child('port'), port.port, isPortNumber(port.port)))
    errors.push(...oneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], at.child('protocol')))
    errors.push(...validatePortNumberOrName(port.targetPort, at.child('targetPort')))
    if (port.appProtocol) errors.push(...faults(at.child('appProtocol'), port.appProtocol, isQualifiedName(port.appProtocol)))
    const pair = `${port.protocol}/${port.port}`
    if (pairs.has(pair)) errors.push(fieldError.duplicate(at, { protocol: port.protocol, port: port.port }))
    pairs.add(pair)
    if (port.nodePort) {
      if (type === 'ClusterIP') errors.push(fieldError.forbidden(at.child('nodePort'), "may not be used when `type` is 'ClusterIP'"))
      const id = `${port.protocol}/${port.nodePort}`
      if (nodePorts.has(id)) errors.push(fieldError.duplicate(at.child('nodePort'), port.nodePort))
      nodePorts.add(id)
    }
    return errors
  })
}

function loadBalancerFaults({ metadata, spec }: Service, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const only = "may only be used when `type` is 'LoadBalancer'"
  const balanced = spec.type === 'LoadBalancer'
  // The capital letter is upstream's.
  const ranges = path.child('LoadBalancerSourceRanges')
  if (spec.loadBalancerSourceRanges?.length && !balanced) errors.push(fieldError.forbidden(ranges, only))
  for (const [i, range] of (spec.loadBalancerSourceRanges ?? []).entries())
    if (!parseCidr(range.trim())) errors.push(fieldError.invalid(ranges.index(i), range, invalidCidrMessage))
  const annotated = metadata.annotations?.[sourceRangesAnnotation]
  if (annotated !== undefined && !spec.loadBalancerSourceRanges?.length) errors.push(...annotatedRangesFaults(annotated, balanced ? undefined : only))
  if (spec.loadBalancerClass !== undefined) {
    if (!balanced) errors.push(fieldError.forbidden(path.child('loadBalancerClass'), only))
    else errors.push(...faults(path.child('loadBalancerClass'), spec.loadBalancerClass, isQualifiedName(spec.loadBalancerClass)))
  }
  if (spec.allocateLoadBalancerNodePorts !== undefined && !balanced) errors.push(fieldError.forbidden(path.child('allocateLoadBalancerNodePorts'), only))
  if (balanced && spec.allocateLoadBalancerNodePorts === undefined) errors.push(fieldError.required(FieldPath.of('allocateLoadBalancerNodePorts')))
  return errors
}

const sourceRangesAnnotation = 'service.beta.kubernetes.io/load-balancer-source-ranges'

/** Proxies read the annotation as they read the field. */
function annotatedRangesFaults(text: string, forbidden: string | undefined): FieldError[] {
  const path = FieldPath.of('metadata', 'annotations').key(sourceRangesAnnotation)
  const ranges = text.trim() === '' ? [] : text.split(',').map((range) => range.trim())
  const invalid = ranges.filter((range) => !parseCidr(range)).map((range) => fieldError.invalid(path, range, invalidCidrMessage))
  return [...(forbidden === undefined ? [] : [fieldError.forbidden(path, forbidden)]), ...invalid]
}

function policyFaults(obj: Service, path: FieldPath): FieldError[] {
  const { spec } = obj
  const errors: FieldError[] = []
  const external = path.child('externalTrafficPolicy')
  if (isExternallyAccessible(obj)) errors.push(...oneOf(spec.externalTrafficPolicy, ['Cluster', 'Local'], external))
  else if (spec.externalTrafficPolicy)
    errors.push(fieldError.invalid(external, spec.externalTrafficPolicy, 'may only be set for externally-accessible services'))
  const local = spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local'
  if (spec.healthCheckNodePort && !local)
    errors.push(
      fieldError.invalid(
        path.child('healthCheckNodePort'),
        spec.healthCheckNodePort,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    )
  if (spec.type !== 'ExternalName') errors.push(...oneOf(spec.internalTrafficPolicy, ['Cluster', 'Local'], path.child('internalTrafficPolicy')))
  if (spec.trafficDistribution !== undefined)
    errors.push(...oneOf(spec.trafficDistribution, ['PreferClose', 'PreferSameNode', 'PreferSameZone'], path.child('trafficDistribution')))
  return errors
}

function familyFaults({ spec }: Service, path: FieldPath): FieldError[] {
  const families = spec.ipFamilies ?? []
  const at = path.child('ipFamilies')
  const errors = families.flatMap((family, i) => oneOf(family, ['IPv4', 'IPv6'], at.index(i)))
  if (families.length > 2) errors.push(fieldError.invalid(at, families, 'may only hold up to 2 values'))
  if (families.length === 2 && families[0] === families[1]) errors.push(fieldError.duplicate(at.index(1), families[1]))
  if (spec.ipFamilyPolicy !== undefined)
    errors.push(...oneOf(spec.ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack'], path.child('ipFamilyPolicy')))
  if (spec.ipFamilyPolicy === 'SingleStack' && (spec.clusterIPs?.length ?? 0) > 1)
    errors.push(
      fieldError.invalid(
        path.child('ipFamilyPolicy'),
        spec.ipFamilyPolicy,
        'must be RequireDualStack or PreferDualStack when multiple `clusterIPs` are specified',
      ),
    )
  return errors
}

/** Addresses that mean something else on every node. */
export function specialAddressFaults(text: string, path: FieldPath): FieldError[] {
  const ip = parseIp(text)
  if (!ip) return [fieldError.invalid(path, text, invalidIpMessage)]
  const errors: FieldError[] = []
  if (isUnspecified(ip)) errors.push(fieldError.invalid(path, text, `may not be unspecified (${text})`))
  if (isLoopback(ip)) errors.push(fieldError.invalid(path, text, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'))
  if (isLinkLocalUnicast(ip)) errors.push(fieldError.invalid(path, text, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'))
  if (isLinkLocalMulticast(ip)) errors.push(fieldError.invalid(path, text, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'))
  return errors
}
