/**
 * Service (L1): types, families, ports and policies. Which address or node port it gets is the API server's allocator's choice; here is
 * only what shape they must have, and that an update that leaves them out keeps them.
 * Upstream: pkg/registry/core/service/{strategy,storage/storage}.go, pkg/apis/core/v1/defaults.go (v1.36).
 */
import type { Service, ServicePort, ServiceSpec } from '#api/gen/types/core.v1'
import { hasClusterIp, isExternallyAccessible } from '#api/helpers/services'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsLabel } from '#api/machinery/names'
import { ageColumn, labelsText, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { validateService, validateServiceUpdate } from './serviceRules.ts'
import { serviceWarnings, validateServiceStatus } from './serviceStatus.ts'

export const service = defineKind<Service>({
  group: '',
  kind: 'Service',
  generation: false,
  // Creating through PUT is allowed, as upstream does for services.
  allowCreateOnUpdate: true,
  validateName: nameIsDnsLabel,
  columns: [
    nameColumn,
    text('Type', (obj) => obj.spec?.type ?? ''),
    text('Cluster-IP', (obj) => obj.spec?.clusterIP || none),
    text('External-IP', externalIpText),
    text('Port(s)', (obj) => (obj.spec?.ports ?? []).map(portText).join(',') || none),
    ageColumn,
    text('Selector', (obj) => labelsText(obj.spec?.selector), 1),
  ],
  selectableFields: { 'spec.clusterIP': (obj) => obj.spec?.clusterIP ?? '', 'spec.type': (obj) => obj.spec?.type ?? '' },
  defaults: setServiceDefaults,
  defaultsReadSpec: true,
  prepareForCreate({ obj }) {
    dropStatus(obj, { loadBalancer: {} })
    normalizeClusterIps(obj.spec, undefined)
  },
  prepareForUpdate(input) {
    keepStatus(input)
    const { obj, old } = input
    normalizeClusterIps(obj.spec, old.spec)
    keepAllocated(obj, old)
    dropWhatTheTypeLost(obj, old)
  },
  validate: ({ obj, path }) => validateService(obj, path),
  validateUpdate: ({ obj, old, path }) => [...validateServiceUpdate(obj, old, path), ...validateService(obj, path)],
  warnings: ({ obj, path }) => serviceWarnings(obj, path),
  status: statusStrategy<Service>({ validateUpdate: ({ obj, path }) => validateServiceStatus(obj, path.child('status', 'loadBalancer', 'ingress')) }),
})

/** Idempotent. */
export function setServiceDefaults(obj: Service): void {
  obj.spec ??= {}
  obj.status ??= {}
  obj.status.loadBalancer ??= {}
  const { spec } = obj
  spec.type ||= 'ClusterIP'
  spec.sessionAffinity ||= 'None'
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
  else if (spec.sessionAffinity === 'ClientIP' && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined)
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: 10_800 } }
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP'
    port.targetPort ||= port.port
  }
  if (isExternallyAccessible(obj)) spec.externalTrafficPolicy ||= 'Cluster'
  if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster'
  if (spec.type === 'LoadBalancer') {
    spec.allocateLoadBalancerNodePorts ??= true
    for (const ingress of obj.status.loadBalancer.ingress ?? []) if (ingress.ip) ingress.ipMode ??= 'VIP'
  }
}

function portText({ port, nodePort, protocol }: Frozen<ServicePort>): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`
}

function externalIpText(obj: Frozen<Service>): string {
  const own = obj.spec?.externalIPs ?? []
  switch (obj.spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return own.join(',') || none
    case 'LoadBalancer': {
      const given = new Set((obj.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').filter((entry) => entry !== ''))
      return [...[...given].sort(), ...own].join(',') || '<pending>'
    }
    case 'ExternalName':
      return obj.spec.externalName ?? ''
    default:
      return '<unknown>'
  }
}

/** clusterIP and clusterIPs[0] are one thing; a client that knows only the singular changes both. */
function normalizeClusterIps(spec: ServiceSpec, old: Frozen<ServiceSpec> | undefined): void {
  if (!old) {
    if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP]
    return
  }
  const pluralUnchanged = JSON.stringify(spec.clusterIPs ?? []) === JSON.stringify(old.clusterIPs ?? [])
  if (spec.clusterIP !== old.clusterIP) {
    if (!spec.clusterIP && old.clusterIP && pluralUnchanged) delete spec.clusterIPs
    else if (spec.clusterIP && (pluralUnchanged || !spec.clusterIPs?.length)) spec.clusterIPs = [spec.clusterIP]
  } else if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [...(old.clusterIPs ?? [spec.clusterIP])]
}

/** An update without the allocated values keeps them: `kubectl apply` and `replace` of the original file must not lose the address. */
function keepAllocated(obj: Service, old: Frozen<Service>): void {
  const { spec } = obj
  const wantsIp = spec.type !== 'ExternalName'
  if (wantsIp && old.spec.type !== 'ExternalName') {
    if (!spec.clusterIP && old.spec.clusterIP) spec.clusterIP = old.spec.clusterIP
    if (!spec.clusterIPs?.length && spec.clusterIP === old.spec.clusterIP && old.spec.clusterIPs) spec.clusterIPs = [...old.spec.clusterIPs]
    if (!spec.ipFamilies?.length && old.spec.ipFamilies && (spec.ipFamilyPolicy ?? old.spec.ipFamilyPolicy) === old.spec.ipFamilyPolicy)
      spec.ipFamilies = [...old.spec.ipFamilies]
    spec.ipFamilyPolicy ??= old.spec.ipFamilyPolicy
    if (spec.ipFamilyPolicy === undefined) delete spec.ipFamilyPolicy
  }
  if (usesNodePorts(spec) && usesNodePorts(old.spec)) {
    const before = new Map((old.spec.ports ?? []).map((port) => [`${port.protocol}/${port.port}`, port.nodePort]))
    const taken = new Set((spec.ports ?? []).map((port) => port.nodePort))
    for (const port of spec.ports ?? []) {
      const nodePort = before.get(`${port.protocol}/${port.port}`)
      if (!port.nodePort && nodePort && !taken.has(nodePort)) port.nodePort = nodePort
    }
  }
  if (needsHealthPort(spec) && needsHealthPort(old.spec) && !spec.healthCheckNodePort && old.spec.healthCheckNodePort)
    spec.healthCheckNodePort = old.spec.healthCheckNodePort
}

function usesNodePorts(spec: Frozen<ServiceSpec>): boolean {
  return spec.type === 'NodePort' || spec.type === 'LoadBalancer'
}

function needsHealthPort(spec: Frozen<ServiceSpec>): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local'
}

/** When the type changed, fields of the old type that the request merely repeats go away with it. */
function dropWhatTheTypeLost(obj: Service, old: Frozen<Service>): void {
  const { spec } = obj
  if (hasClusterIp(old) && spec.type === 'ExternalName' && spec.clusterIP === old.spec.clusterIP) {
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) delete spec[field]
  }
  if (usesNodePorts(old.spec) && !usesNodePorts(spec)) {
    const before = new Set((old.spec.ports ?? []).map((port) => port.nodePort))
    if ((spec.ports ?? []).every((port) => before.has(port.nodePort))) for (const port of spec.ports ?? []) delete port.nodePort
  }
  if (needsHealthPort(old.spec) && !needsHealthPort(spec) && spec.healthCheckNodePort === old.spec.healthCheckNodePort) delete spec.healthCheckNodePort
  if (old.spec.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (spec.allocateLoadBalancerNodePorts === old.spec.allocateLoadBalancerNodePorts) delete spec.allocateLoadBalancerNodePorts
    if (spec.loadBalancerClass === old.spec.loadBalancerClass) delete spec.loadBalancerClass
  }
  if (isExternallyAccessible(old) && !isExternallyAccessible(obj) && spec.externalTrafficPolicy === old.spec.externalTrafficPolicy)
    delete spec.externalTrafficPolicy
}
