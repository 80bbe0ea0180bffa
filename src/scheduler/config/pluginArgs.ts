/**
 * Arguments of plugins from the configuration (L3): decoded strictly, defaulted and checked.
 * Upstream: pkg/scheduler/apis/config/v1/defaults.go, validation/validation_pluginargs.go (v1.36).
 */
import type { NodeAffinity, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import { parseDuration } from '#api/machinery/duration'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelName } from '#api/machinery/labelSelector'
import { decode, strictProblems } from '#api/schema/decode'
import { defaultPluginArgs, type PluginArgs, type ResourceSpec, type UtilizationShapePoint } from '../framework/pluginArgs.ts'
import { pluginArgsSchemas } from './schemas.ts'

/** Problems are added to `errors`; what is wrong keeps its default. Plugins without known arguments get them as they stand. */
export function pluginArgs(plugin: string, args: unknown, path: FieldPath, errors: FieldError[]): unknown {
  const schema = pluginArgsSchemas[plugin]
  if (!schema) return args
  const { kind, apiVersion } = (args ?? {}) as Record<string, unknown>
  if (kind !== undefined && kind !== `${plugin}Args`)
    throw new Error(`args for plugin ${plugin} were not of type ${plugin}Args.kubescheduler.config.k8s.io, got ${String(kind)}`)
  if (apiVersion !== undefined && apiVersion !== 'kubescheduler.config.k8s.io/v1')
    throw new Error(`decoding args for plugin ${plugin}: no kind "${plugin}Args" is registered for version "${String(apiVersion)}"`)
  const { object, unknownFields } = decode(args ?? {}, schema, { unknown: 'collect', absent: 'keep' })
  const problems = strictProblems(unknownFields, [])
  if (problems.length > 0) throw new Error(`decoding args for plugin ${plugin}: strict decoding error: ${problems.join(', ')}`)
  return readers[plugin as keyof PluginArgs](object as Given, path, errors)
}

type Given = Readonly<Record<string, never>>
type Readers = { readonly [Name in keyof PluginArgs]: (given: Given, path: FieldPath, errors: FieldError[]) => PluginArgs[Name] }

const readers: Readers = {
  DefaultPreemption: (given, path, errors) => {
    const args = { ...defaultPluginArgs.DefaultPreemption, ...without(given) } as PluginArgs['DefaultPreemption']
    const [percentage, absolute] = [path.child('minCandidateNodesPercentage'), path.child('minCandidateNodesAbsolute')]
    inRange(args.minCandidateNodesPercentage, 0, 100, percentage, errors)
    if (args.minCandidateNodesAbsolute < 0) errors.push(fieldError.invalid(absolute, args.minCandidateNodesAbsolute, 'not in valid range [0, inf)'))
    if (args.minCandidateNodesPercentage === 0 && args.minCandidateNodesAbsolute === 0) {
      errors.push(fieldError.invalid(percentage, 0, 'cannot be zero at the same time as minCandidateNodesAbsolute'))
      errors.push(fieldError.invalid(absolute, 0, 'cannot be zero at the same time as minCandidateNodesPercentage'))
    }
    return args
  },
  DynamicResources: (given, path, errors) => {
    const { filterTimeoutMs, bindingTimeoutMs } = defaultPluginArgs.DynamicResources
    const filter = durationMs(given.filterTimeout, filterTimeoutMs, path.child('filterTimeout'), errors)
    const binding = durationMs(given.bindingTimeout, bindingTimeoutMs, path.child('bindingTimeout'), errors)
    if (filter < 0) errors.push(fieldError.invalid(path.child('filterTimeout'), given.filterTimeout, 'must be zero or positive'))
    if (binding < 1000) errors.push(fieldError.invalid(path.child('bindingTimeout'), given.bindingTimeout, 'must be at least 1 second'))
    return { filterTimeoutMs: filter, bindingTimeoutMs: binding }
  },
  InterPodAffinity: (given, path, errors) => {
    const args = { ...defaultPluginArgs.InterPodAffinity, ...without(given) } as PluginArgs['InterPodAffinity']
    inRange(args.hardPodAffinityWeight, 0, 100, path.child('hardPodAffinityWeight'), errors)
    return args
  },
  NodeAffinity: (given) => ({ addedAffinity: given.addedAffinity as NodeAffinity | undefined }),
  NodeResourcesBalancedAllocation: (given, path, errors) => {
    const resources = resourcesOf(given.resources)
    const seen = new Set<string>()
    resources.forEach(({ name, weight }, i) => {
      const at = path.child('resources').index(i)
      if (seen.has(name)) errors.push(fieldError.duplicate(at.child('name'), name))
      seen.add(name)
      if (weight !== 1) errors.push(fieldError.invalid(at.child('weight'), weight, 'must be 1'))
    })
    return { resources }
  },
  NodeResourcesFit: (given, path, errors) => nodeResourcesFitArgs(given, path, errors),
  PodTopologySpread: (given, path, errors) => podTopologySpreadArgs(given, path, errors),
  VolumeBinding: (given, path, errors) => {
    const bindTimeoutSeconds = (given.bindTimeoutSeconds as number | undefined) ?? defaultPluginArgs.VolumeBinding.bindTimeoutSeconds
    if (bindTimeoutSeconds < 0)
      errors.push(fieldError.invalid(path.child('bindTimeoutSeconds'), bindTimeoutSeconds, 'invalid BindTimeoutSeconds, should not be a negative value'))
    const refused = 'unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring'
    if (given.shape !== undefined) errors.push(fieldError.invalid(path.child('shape'), given.shape, refused))
    return { bindTimeoutSeconds, shape: [] }
  },
}

/** The arguments without apiVersion and kind. */
function without({ apiVersion: _version, kind: _kind, ...args }: Given): Record<string, unknown> {
  return args
}

function inRange(value: number, lowest: number, highest: number, path: FieldPath, errors: FieldError[]): void {
  if (value < lowest || value > highest) errors.push(fieldError.invalid(path, value, `not in valid range [${lowest}, ${highest}]`))
}

/** Milliseconds of a duration's text, or the default. */
export function durationMs(text: unknown, absent: number, path: FieldPath, errors: FieldError[]): number {
  if (text === undefined) return absent
  const ms = parseDuration(String(text))
  if (ms === undefined) errors.push(fieldError.invalid(path, text, 'is not a duration'))
  return ms ?? absent
}

/** cpu and memory where none are named; a weight of 0 is one that was left out. */
function resourcesOf(given: readonly Partial<ResourceSpec>[] | undefined): readonly ResourceSpec[] {
  if (!given || given.length === 0) return defaultPluginArgs.NodeResourcesFit.scoringStrategy.resources
  return given.map(({ name = '', weight }) => ({ name, weight: weight || 1 }))
}

function nodeResourcesFitArgs(given: Given, path: FieldPath, errors: FieldError[]): PluginArgs['NodeResourcesFit'] {
  const ignoredResources = (given.ignoredResources as readonly string[] | undefined) ?? []
  const ignoredResourceGroups = (given.ignoredResourceGroups as readonly string[] | undefined) ?? []
  ignoredResources.forEach((name, i) => {
    errors.push(...validateLabelName(name, path.child('ignoredResources').index(i)))
  })
  ignoredResourceGroups.forEach((group, i) => {
    const at = path.child('ignoredResourceGroups').index(i)
    if (group.includes('/')) errors.push(fieldError.invalid(at, group, "resource group name can't contain '/'"))
    errors.push(...validateLabelName(group, at))
  })
  const strategyPath = path.child('scoringStrategy')
  const strategy = (given.scoringStrategy ?? {}) as Partial<PluginArgs['NodeResourcesFit']['scoringStrategy']>
  const type = strategy.type ?? 'LeastAllocated'
  const types = ['LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio']
  if (!types.includes(type)) errors.push(fieldError.notSupported(strategyPath.child('type'), type, types))
  const resources = resourcesOf(strategy.resources)
  resources.forEach(({ name, weight }, i) => {
    if (weight <= 0 || weight > 100)
      errors.push(
        fieldError.invalid(strategyPath.child('resources').index(i).child('weight'), weight, `resource weight of ${name} not in valid range (0, 100]`),
      )
  })
  const ratio = strategy.requestedToCapacityRatio
  const ratioPath = strategyPath.child('requestedToCapacityRatio')
  if (type === 'RequestedToCapacityRatio') {
    if (ratio) validateShape(ratio.shape ?? [], ratioPath.child('shape'), errors)
    else errors.push(fieldError.required(ratioPath, 'must be specified when type is RequestedToCapacityRatio'))
  } else if (ratio) errors.push(fieldError.forbidden(ratioPath, 'must be nil when type is not RequestedToCapacityRatio'))
  return { ignoredResources, ignoredResourceGroups, scoringStrategy: { type, resources, requestedToCapacityRatio: ratio } }
}

function validateShape(shape: readonly UtilizationShapePoint[], path: FieldPath, errors: FieldError[]): void {
  if (shape.length === 0) errors.push(fieldError.required(path, 'at least one point must be specified'))
  const unsorted = shape.findIndex((point, i) => i > 0 && (shape[i - 1] as UtilizationShapePoint).utilization >= point.utilization)
  if (unsorted > 0)
    errors.push(fieldError.invalid(path.index(unsorted).child('utilization'), shape[unsorted]?.utilization, 'values must be sorted in increasing order'))
  shape.forEach(({ utilization, score }, i) => {
    inRange(utilization, 0, 100, path.index(i).child('utilization'), errors)
    inRange(score, 0, 10, path.index(i).child('score'), errors)
  })
}

function podTopologySpreadArgs(given: Given, path: FieldPath, errors: FieldError[]): PluginArgs['PodTopologySpread'] {
  const defaultConstraints = (given.defaultConstraints as readonly TopologySpreadConstraint[] | undefined) ?? []
  const defaultingType = (given.defaultingType as 'System' | 'List' | undefined) ?? 'System'
  const typePath = path.child('defaultingType')
  if (defaultingType !== 'System' && defaultingType !== 'List') errors.push(fieldError.notSupported(typePath, defaultingType, ['System', 'List']))
  else if (defaultingType === 'System' && defaultConstraints.length > 0)
    errors.push(fieldError.invalid(typePath, defaultingType, 'when .defaultConstraints are not empty'))
  const seen = new Set<string>()
  defaultConstraints.forEach(({ maxSkew, topologyKey = '', whenUnsatisfiable = '', labelSelector }, i) => {
    const at = path.child('defaultConstraints').index(i)
    if (!(maxSkew > 0)) errors.push(fieldError.invalid(at.child('maxSkew'), maxSkew, 'not in valid range (0, inf)'))
    if (topologyKey === '') errors.push(fieldError.required(at.child('topologyKey'), 'can not be empty'))
    else errors.push(...validateLabelName(topologyKey, at.child('topologyKey')))
    if (whenUnsatisfiable === '') errors.push(fieldError.required(at.child('whenUnsatisfiable'), 'can not be empty'))
    else if (whenUnsatisfiable !== 'DoNotSchedule' && whenUnsatisfiable !== 'ScheduleAnyway')
      errors.push(fieldError.notSupported(at.child('whenUnsatisfiable'), whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']))
    if (labelSelector) errors.push(fieldError.forbidden(at.child('labelSelector'), 'constraint must not define a selector, as they deduced for each pod'))
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`
    if (seen.has(pair)) errors.push(fieldError.duplicate(at, pair))
    seen.add(pair)
  })
  return { defaultConstraints, defaultingType }
}
