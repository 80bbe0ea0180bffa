/** Validation of a whole pod spec and of pod templates (L1). Upstream: pkg/apis/core/validation ValidatePodSpec, ValidatePodTemplateSpec (v1.36). */
import type { PodDNSConfig, PodSpec, PodTemplateSpec } from '#api/gen/types/core.v1'
import { amountText, isPodLevelResource, podRequests, resourceAmount } from '#api/helpers/podResources'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { invalidIpMessage, ipFamily } from '#api/machinery/ip'
import { validateLabels } from '#api/machinery/labelSelector'
import { isDns1123Label, isDns1123Subdomain, isDns1123SubdomainWithUnderscore, isQualifiedName, rangeMessage } from '#api/machinery/names'
import { validateAnnotations } from '#api/machinery/objectMeta'
import { canonicalQuantity, compareQuantities, isQuantity } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { faults, oneOf } from '../../rules.ts'
import { validateAllContainers } from './validateContainers.ts'
import { validateResourceRequirements } from './validateResources.ts'
import { validateAffinity, validateTolerations, validateTopologySpread } from './validateScheduling.ts'
import { validatePodSecurityContext } from './validateSecurity.ts'
import { validateVolumes } from './validateVolumes.ts'
import { osFaults, validateHostProcess } from './validateWindows.ts'

const maxInt32 = 2_147_483_647

/** All that a pod's spec must keep, in a Pod and in a template. In upstream's order: clients see the first faults first. */
export function validatePodSpec(spec: PodSpec, path: FieldPath): FieldError[] {
  return [
    ...(spec.terminationGracePeriodSeconds === undefined ? [fieldError.required(path.child('terminationGracePeriodSeconds'))] : []),
    ...validateVolumes(spec.volumes, path.child('volumes')),
    ...resourceClaimFaults(spec.resourceClaims, path.child('resourceClaims')),
    ...validateAllContainers(spec, path),
    ...(spec.resources ? podResourceFaults(spec, path.child('resources')) : []),
    ...oneOf(spec.restartPolicy, ['Always', 'OnFailure', 'Never'], path.child('restartPolicy')),
    ...oneOf(spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'], path.child('dnsPolicy')),
    ...validateLabels(spec.nodeSelector, path.child('nodeSelector')),
    ...validatePodSecurityContext(spec, path.child('securityContext')),
    ...validateAffinity(spec.affinity, path.child('affinity')),
    ...dnsFaults(spec.dnsConfig, spec.dnsPolicy, path.child('dnsConfig')),
    ...gateFaults(spec, path),
    ...validateTopologySpread(spec.topologySpreadConstraints, path.child('topologySpreadConstraints')),
    ...validateHostProcess(spec, path),
    ...hostUsersFaults(spec, path),
    ...nameFaults(spec, path),
    ...numberFaults(spec, path),
    ...validateTolerations(spec.tolerations, path.child('tolerations')),
    ...hostAliasFaults(spec, path.child('hostAliases')),
    ...(spec.overhead ? validateResourceRequirements({ limits: spec.overhead }, new Set(), path.child('overhead')) : []),
    ...osFaults(spec, path),
  ]
}

/** A template of a workload: labels, annotations and the spec; ephemeral containers belong to real pods only. */
export function validatePodTemplateSpec(template: PodTemplateSpec | undefined, path: FieldPath): FieldError[] {
  const spec = template?.spec ?? { containers: [] }
  return [
    ...validateLabels(template?.metadata?.labels, path.child('labels')),
    ...validateAnnotations(template?.metadata?.annotations, path.child('annotations')),
    ...validatePodSpec(spec, path.child('spec')),
    ...(spec.ephemeralContainers?.length
      ? [fieldError.forbidden(path.child('spec', 'ephemeralContainers'), 'ephemeral containers not allowed in pod template')]
      : []),
  ]
}

function nameFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  const check = (field: keyof PodSpec, form: (value: string) => readonly string[]) => {
    const value = spec[field]
    return typeof value === 'string' && value !== '' ? faults(path.child(field), value, form(value)) : []
  }
  return [
    ...check('serviceAccountName', isDns1123Subdomain),
    ...check('nodeName', isDns1123Subdomain),
    ...check('hostname', isDns1123Label),
    ...check('subdomain', isDns1123Label),
    ...check('priorityClassName', isDns1123Subdomain),
    ...check('runtimeClassName', isDns1123Subdomain),
    ...check('hostnameOverride', isDns1123Subdomain),
  ]
}

function numberFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  const seconds = spec.activeDeadlineSeconds
  const deadline = path.child('activeDeadlineSeconds')
  return [
    ...(seconds !== undefined && (seconds < 1 || seconds > maxInt32) ? [fieldError.invalid(deadline, seconds, rangeMessage(1, maxInt32))] : []),
    ...(spec.preemptionPolicy ? oneOf(spec.preemptionPolicy, ['PreemptLowerPriority', 'Never'], path.child('preemptionPolicy')) : []),
  ]
}

function gateFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  const errors = (spec.readinessGates ?? []).flatMap(({ conditionType }, i) =>
    faults(path.child('readinessGates').index(i).child('conditionType'), conditionType, isQualifiedName(conditionType)),
  )
  const seen = new Set<string>()
  for (const [i, { name }] of (spec.schedulingGates ?? []).entries()) {
    const at = path.child('schedulingGates').index(i)
    errors.push(...faults(at, name, isQualifiedName(name)))
    if (seen.has(name)) errors.push(fieldError.duplicate(at, name))
    seen.add(name)
  }
  return errors
}

function hostAliasFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  return (spec.hostAliases ?? []).flatMap(({ ip, hostnames }, i) => {
    const at = path.index(i)
    return [
      ...(ipFamily(ip) === undefined ? [fieldError.invalid(at.child('ip'), ip, invalidIpMessage)] : []),
      ...(hostnames ?? []).flatMap((name, j) => faults(at.child('hostnames').index(j), name, isDns1123Subdomain(name))),
    ]
  })
}

function dnsFaults(config: PodDNSConfig | undefined, policy: string | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (policy === 'None') {
    if (!config) return [fieldError.required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')]
    if (!config.nameservers?.length)
      return [fieldError.required(path.child('nameservers'), 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
  }
  const nameservers = config?.nameservers ?? []
  if (nameservers.length > 3) errors.push(fieldError.invalid(path.child('nameservers'), nameservers, 'must not have more than 3 nameservers'))
  for (const [i, ip] of nameservers.entries())
    if (ipFamily(ip) === undefined) errors.push(fieldError.invalid(path.child('nameservers').index(i), ip, invalidIpMessage))
  const searches = config?.searches ?? []
  if (searches.length > 32) errors.push(fieldError.invalid(path.child('searches'), searches, 'must not have more than 32 search paths'))
  if (searches.join(' ').length > 2048)
    errors.push(fieldError.invalid(path.child('searches'), searches, 'must not have more than 2048 characters (including spaces) in the search list'))
  for (const [i, search] of searches.entries()) {
    if (search === '.') continue
    errors.push(...faults(path.child('searches').index(i), search, isDns1123SubdomainWithUnderscore(search.replace(/\.$/, ''))))
  }
  for (const [i, option] of (config?.options ?? []).entries())
    if (!option.name) errors.push(fieldError.required(path.child('options').index(i), 'must not be empty'))
  return errors
}

/** A pod in its own user namespace shares no other namespace with the host. The odd capitals are upstream's. */
function hostUsersFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  if (spec.hostUsers !== false) return []
  const shared = { hostNetwork: spec.hostNetwork, HostPID: spec.hostPID, HostIPC: spec.hostIPC }
  return Object.entries(shared).flatMap(([field, set]) => (set ? [fieldError.forbidden(path.child(field), 'when `pod.Spec.HostUsers` is false')] : []))
}

function resourceClaimFaults(claims: PodSpec['resourceClaims'], path: FieldPath): FieldError[] {
  const names = new Set<string>()
  return (claims ?? []).flatMap((claim, i) => {
    const at = path.index(i)
    const { name, resourceClaimName, resourceClaimTemplateName } = claim
    const errors: FieldError[] = []
    if (!name) errors.push(fieldError.required(at.child('name')))
    else if (names.has(name)) errors.push(fieldError.duplicate(at.child('name'), name))
    else errors.push(...faults(at.child('name'), name, isDns1123Label(name)))
    names.add(name)
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined)
      errors.push(fieldError.invalid(at, claim, 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'))
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined)
      errors.push(fieldError.invalid(at, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'))
    for (const field of ['resourceClaimName', 'resourceClaimTemplateName'] as const) {
      const value = claim[field]
      if (value !== undefined) errors.push(...faults(at.child(field), value, isDns1123Subdomain(value)))
    }
    return errors
  })
}

const podLevelResources = ['cpu', 'hugepages-', 'memory']

/** What the pod asks for as a whole covers what its containers ask for, and limits what each of them may use. */
function podResourceFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  const { claims, requests = {}, limits = {} } = spec.resources ?? {}
  const errors: FieldError[] = []
  if (claims) errors.push(fieldError.forbidden(path.child('claims'), 'claims cannot be set for Resources at pod-level'))
  for (const [list, amounts] of Object.entries({ limits, requests })) {
    for (const name of Object.keys(amounts))
      if (!isPodLevelResource(name)) errors.push(fieldError.notSupported(path.child(list).key(name), name, podLevelResources))
  }
  errors.push(...validateResourceRequirements(spec.resources, new Set(), path))
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  const amounts = containers.flatMap(({ resources }) => [...Object.values(resources?.requests ?? {}), ...Object.values(resources?.limits ?? {})])
  if (errors.length > 0 || !amounts.every(isQuantity)) return errors
  const sums = podRequests({ apiVersion: 'v1', kind: 'Pod', metadata: {}, spec, status: {} }, { skipPodLevelResources: true, excludeOverhead: true })
  for (const [name, sum] of Object.entries(sums)) {
    const whole = ownValue(requests, name)
    if (whole === undefined || resourceAmount(name, whole) >= sum) continue
    const detail = `must be greater than or equal to aggregate container requests of ${amountText(name, sum)}`
    errors.push(fieldError.invalid(path.child('requests').key(name), canonicalQuantity(whole), detail))
  }
  for (const [i, container] of (spec.containers ?? []).entries()) {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const whole = ownValue(limits, name)
      if (whole === undefined || compareQuantities(limit, whole) <= 0) continue
      const at = path.child('containers').index(i).key(name).child('limits')
      errors.push(fieldError.invalid(at, canonicalQuantity(limit), `must be less than or equal to pod limits of ${canonicalQuantity(whole)}`))
    }
  }
  return errors
}
