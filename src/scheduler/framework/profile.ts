/**
 * A profile made ready (L3): the plugins of each extension point, in order, out of what the configuration enables and disables.
 * Upstream: pkg/scheduler/framework/runtime/framework.go NewFramework, expandMultiPointPlugins; apis/config/v1/default_plugins.go (v1.36).
 */
import type { Handle } from './handle.ts'
import type { PluginDefinition, SchedulerPlugin } from './plugin.ts'
import { defaultPluginArgs } from './pluginArgs.ts'

/** Extension points as the configuration names them, with the method that a plugin of each has. */
const methods = {
  preEnqueue: 'preEnqueue',
  queueSort: 'less',
  preFilter: 'preFilter',
  filter: 'filter',
  postFilter: 'postFilter',
  preScore: 'preScore',
  score: 'score',
  reserve: 'reserve',
  permit: 'permit',
  preBind: 'preBind',
  bind: 'bind',
  postBind: 'postBind',
} as const satisfies Record<string, keyof SchedulerPlugin>

export type ExtensionPoint = keyof typeof methods
export const extensionPoints = Object.keys(methods) as readonly ExtensionPoint[]

export interface EnabledPlugin {
  readonly name: string
  readonly weight?: number | undefined
}

export interface PluginSet {
  readonly enabled: readonly EnabledPlugin[]
  /** Names; `*`: all defaults. */
  readonly disabled: readonly string[]
}

export interface ProfileConfig {
  readonly schedulerName: string
  /** Absent: as for all profiles. */
  readonly percentageOfNodesToScore?: number | undefined
  readonly plugins: Readonly<Partial<Record<ExtensionPoint | 'multiPoint', PluginSet>>>
  /** Plugin name → its arguments; absent ones are the defaults. */
  readonly args: Readonly<Record<string, unknown>>
}

type With<P extends ExtensionPoint> = SchedulerPlugin & Required<Pick<SchedulerPlugin, (typeof methods)[P]>>

export interface Profile {
  readonly name: string
  readonly percentageOfNodesToScore: number | undefined
  readonly points: { readonly [P in ExtensionPoint]: readonly With<P>[] }
  /** Of plugins that score, as `points.score`. */
  readonly weights: readonly number[]
  /** Every plugin that some point has, by name. */
  readonly plugins: ReadonlyMap<string, SchedulerPlugin>
}

export interface DefaultPluginSet {
  readonly definition: PluginDefinition
  readonly weight: number
}

/**
 * @param known every plugin there is, the defaults in their order first
 * @throws Error when the configuration names a plugin that does not exist, or one for a point that it does not implement
 */
export function createProfile(config: ProfileConfig, defaults: readonly DefaultPluginSet[], others: readonly PluginDefinition[], handle: Handle): Profile {
  const multiPoint = mergeDefaults(defaults, config.plugins.multiPoint)
  const definitions = new Map([...defaults.map(({ definition }) => definition), ...others].map((definition) => [definition.name, definition]))
  const instances = new Map<string, SchedulerPlugin>()
  const instance = (name: string): SchedulerPlugin => {
    const there = instances.get(name)
    if (there) return there
    const definition = definitions.get(name)
    if (!definition) throw new Error(`profile ${config.schedulerName}: plugin ${name} does not exist`)
    const made = definition.create(config.args[name] ?? (defaultPluginArgs as Readonly<Record<string, unknown>>)[name] ?? {}, handle)
    instances.set(name, made)
    return made
  }
  const points = {} as Record<ExtensionPoint, SchedulerPlugin[]>
  for (const point of extensionPoints) points[point] = pluginsOf(point, multiPoint, config, instance)
  if (points.queueSort.length !== 1)
    throw new Error(`profile ${config.schedulerName}: exactly one queue sort plugin is needed, there are ${points.queueSort.length}`)
  if (points.bind.length === 0) throw new Error(`profile ${config.schedulerName}: at least one bind plugin is needed`)
  return {
    name: config.schedulerName,
    percentageOfNodesToScore: config.percentageOfNodesToScore,
    points: points as unknown as Profile['points'],
    weights: points.score.map(({ name }) => weightOf(name, multiPoint, config)),
    plugins: instances,
  }
}

/** The default plugins, less what is disabled, with what else is enabled: in the place of the default of that name, or at the end. */
function mergeDefaults(defaults: readonly DefaultPluginSet[], custom: PluginSet | undefined): readonly EnabledPlugin[] {
  const enabled = new Map((custom?.enabled ?? []).map((plugin) => [plugin.name, plugin]))
  const disabled = new Set(custom?.disabled)
  const merged: EnabledPlugin[] = []
  for (const { definition, weight } of defaults) {
    const { name } = definition
    if (disabled.has('*') || disabled.has(name)) continue
    merged.push(enabled.get(name) ?? { name, weight })
    enabled.delete(name)
  }
  return [...merged, ...enabled.values()]
}

/** Order: plugins that are enabled for the point and by multiPoint, then other multiPoint plugins, then other plugins of the point. */
function pluginsOf(
  point: ExtensionPoint,
  multiPoint: readonly EnabledPlugin[],
  config: ProfileConfig,
  instance: (name: string) => SchedulerPlugin,
): SchedulerPlugin[] {
  const { enabled = [], disabled = [] } = config.plugins[point] ?? {}
  const everywhere = new Set(multiPoint.map(({ name }) => name))
  const own = enabled.map(({ name }) => name)
  for (const name of own) if (!instance(name)[methods[point]]) throw new Error(`profile ${config.schedulerName}: plugin ${name} does not extend ${point}`)
  const inherited = multiPoint
    .map(({ name }) => name)
    .filter((name) => !own.includes(name) && !disabled.includes('*') && !disabled.includes(name) && instance(name)[methods[point]])
  return [...own.filter((name) => everywhere.has(name)), ...inherited, ...own.filter((name) => !everywhere.has(name))].map(instance)
}

/** The point's own weight counts before the one for all points; 0 and none mean 1. */
function weightOf(name: string, multiPoint: readonly EnabledPlugin[], config: ProfileConfig): number {
  const own = config.plugins.score?.enabled.find((plugin) => plugin.name === name)?.weight
  return own || multiPoint.find((plugin) => plugin.name === name)?.weight || 1
}
