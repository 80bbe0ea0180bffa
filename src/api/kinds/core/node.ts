/**
 * Node (L1): taints, pod CIDRs that are given once, and a status that the kubelet owns from the first moment.
 * Upstream: pkg/registry/core/node, pkg/apis/core/validation ValidateNode*, printers printNode (v1.36).
 */
import type { Node, Taint } from '#api/gen/types/core.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { repeatedAt } from '#api/machinery/duplicates'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipFamily, parseCidr } from '#api/machinery/ip'
import { validateLabelName } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isLabelValue } from '#api/machinery/names'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, keepStatus, oneOf, statusStrategy } from '../rules.ts'
import { validateQuantity } from './pod/validateResources.ts'
import { taintEffects } from './pod/validateScheduling.ts'

const roleLabelPrefix = 'node-role.kubernetes.io/'

export const node = defineKind<Node>({
  group: '',
  kind: 'Node',
  generation: false,
  columns: [
    nameColumn,
    text('Status', statusText),
    text('Roles', (obj) => nodeRoles(obj).join(',') || none),
    ageColumn,
    text('Version', (obj) => obj.status?.nodeInfo?.kubeletVersion ?? ''),
    text('Internal-IP', (obj) => addressOf(obj, 'InternalIP'), 1),
    text('External-IP', (obj) => addressOf(obj, 'ExternalIP'), 1),
    text('OS-Image', (obj) => obj.status?.nodeInfo?.osImage || '<unknown>', 1),
    text('Kernel-Version', (obj) => obj.status?.nodeInfo?.kernelVersion || '<unknown>', 1),
    text('Container-Runtime', (obj) => obj.status?.nodeInfo?.containerRuntimeVersion || '<unknown>', 1),
  ],
  selectableFields: { 'spec.unschedulable': (obj) => String(obj.spec?.unschedulable ?? false) },
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    if (!obj.status.allocatable && obj.status.capacity) obj.status.allocatable = { ...obj.status.capacity }
    // Conversion upstream keeps the singular and the plural field in step.
    if (obj.spec.podCIDR && !obj.spec.podCIDRs?.length) obj.spec.podCIDRs = [obj.spec.podCIDR]
    else if (obj.spec.podCIDRs?.[0]) obj.spec.podCIDR = obj.spec.podCIDRs[0]
  },
  prepareForUpdate: keepStatus,
  warnings: ({ obj }) => [
    ...(obj.spec.configSource ? ['spec.configSource: the feature is removed'] : []),
    ...(obj.spec.externalID ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes'] : []),
  ],
  validate: ({ obj, path }) => [...specFaults(obj, path.child('spec')), ...statusFaults(obj, path.child('status'))],
  validateUpdate({ obj, old, path }) {
    const spec = path.child('spec')
    const errors = [...specFaults(obj, spec), ...statusFaults(obj, path.child('status'))]
    const oldSpec = old.spec ?? {}
    if (oldSpec.podCIDRs?.length && !semanticEqual(obj.spec.podCIDRs, oldSpec.podCIDRs))
      errors.push(fieldError.forbidden(spec.child('podCIDRs'), 'node updates may not change podCIDR except from "" to valid'))
    if (oldSpec.providerID && obj.spec.providerID !== oldSpec.providerID)
      errors.push(fieldError.forbidden(spec.child('providerID'), 'node updates may not change providerID except from "" to valid'))
    if (obj.spec.externalID !== oldSpec.externalID) errors.push(fieldError.forbidden(spec.child('externalID'), 'may not be updated'))
    return errors
  },
  status: statusStrategy<Node>({ validateUpdate: ({ obj, path }) => statusFaults(obj, path.child('status')) }),
})

/** The roles that labels give a node, sorted. */
function nodeRoles(obj: Frozen<Node>): string[] {
  const roles = new Set<string>()
  for (const [key, value] of Object.entries(obj.metadata.labels ?? {})) {
    if (key.startsWith(roleLabelPrefix) && key.length > roleLabelPrefix.length) roles.add(key.slice(roleLabelPrefix.length))
    else if (key === 'kubernetes.io/role' && value) roles.add(value)
  }
  return [...roles].sort()
}

/** The faults of taints, on nodes and in kubelet configuration. */
function validateTaints(taints: readonly Taint[] | undefined, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  return (taints ?? []).flatMap((taint, i) => {
    const at = path.index(i)
    const errors = [
      ...validateLabelName(taint.key, at.child('key')),
      ...faults(at.child('value'), taint.value, isLabelValue(taint.value ?? '')),
      ...oneOf(taint.effect, taintEffects, at.child('effect')),
    ]
    const id = `${taint.effect}/${taint.key}`
    if (seen.has(id)) {
      const error = fieldError.duplicate(at, taint)
      errors.push({ ...error, body: `${error.body}: taints must be unique by key and effect pair` })
    }
    seen.add(id)
    return errors
  })
}

function statusText(obj: Frozen<Node>): string {
  const ready = obj.status?.conditions?.some((condition) => condition.type === 'Ready')
  const text = !ready ? 'Unknown' : isConditionTrue(obj.status.conditions, 'Ready') ? 'Ready' : 'NotReady'
  return obj.spec?.unschedulable ? `${text},SchedulingDisabled` : text
}

function addressOf(obj: Frozen<Node>, type: string): string {
  return obj.status?.addresses?.find((address) => address.type === type)?.address ?? none
}

function specFaults(obj: Node, path: FieldPath): FieldError[] {
  // The path is upstream's: taints were annotations once.
  const errors = validateTaints(obj.spec.taints, path.root.child('metadata', 'taints'))
  const cidrs = obj.spec.podCIDRs ?? []
  const at = path.child('podCIDRs')
  for (const [i, cidr] of cidrs.entries()) {
    if (!parseCidr(cidr)) errors.push(fieldError.invalid(at.index(i), cidr, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'))
  }
  if (cidrs.length < 2) return errors
  const families = new Set(cidrs.map((cidr) => ipFamily(cidr.split('/')[0] ?? '')))
  if (cidrs.length > 2 || families.size < 2)
    errors.push(fieldError.invalid(path.child('podCIDRs'), cidrs, 'may specify no more than one CIDR for each IP family'))
  for (const i of repeatedAt(cidrs)) errors.push(fieldError.duplicate(at.index(i), cidrs[i]))
  return errors
}

function statusFaults(obj: Node, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const list of ['capacity', 'allocatable'] as const) {
    for (const [name, value] of Object.entries(obj.status?.[list] ?? {})) {
      errors.push(...validateQuantity(name, value, path.child(list, name)))
    }
  }
  const seen = new Set<string>()
  for (const [i, { type, address }] of (obj.status?.addresses ?? []).entries()) {
    const id = `${type}/${address}`
    if (seen.has(id)) errors.push(fieldError.duplicate(path.child('addresses').index(i), { type, address }))
    seen.add(id)
  }
  return errors
}
