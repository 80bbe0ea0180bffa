/**
 * A profile whose plugins are timed one by one (L3), for some of the cycles: timing each call of each would cost more than many of the calls.
 * Upstream: framework/runtime framework.go, pluginMetricsSamplePercent, metric_recorder.go (v1.36).
 */
import type { SchedulerPlugin } from './framework/plugin.ts'
import type { ExtensionPoint, Profile } from './framework/profile.ts'

export type PluginObserver = (plugin: string, point: string, status: string, seconds: number) => void

/** The share of cycles whose plugins are timed, in percent: upstream's pluginMetricsSamplePercent. */
export const timedPercent = 10

/** One in so many of the calls for every node is timed: two clock reads cost more than most of the calls. */
const everyNth = 32

/** No method of a plugin has more arguments. */
type Call = (a: unknown, b: unknown, c: unknown, d: unknown) => unknown

interface Timed {
  readonly method: keyof SchedulerPlugin
  /** As metrics name the point. */
  readonly label: string
  readonly forEachNode?: boolean
}

const timed: Readonly<Partial<Record<ExtensionPoint, readonly Timed[]>>> = {
  preFilter: [
    { method: 'preFilter', label: 'PreFilter' },
    { method: 'addPod', label: 'PreFilterExtensionAddPod' },
  ],
  filter: [{ method: 'filter', label: 'Filter', forEachNode: true }],
  postFilter: [{ method: 'postFilter', label: 'PostFilter' }],
  preScore: [{ method: 'preScore', label: 'PreScore' }],
  score: [
    { method: 'score', label: 'Score', forEachNode: true },
    { method: 'normalize', label: 'ScoreExtensionNormalize' },
  ],
  reserve: [
    { method: 'reserve', label: 'Reserve' },
    { method: 'unreserve', label: 'Unreserve' },
  ],
  permit: [{ method: 'permit', label: 'Permit' }],
  preBind: [{ method: 'preBind', label: 'PreBind' }],
  bind: [{ method: 'bind', label: 'Bind' }],
  postBind: [{ method: 'postBind', label: 'PostBind' }],
}

/** The same plugins in the same order; who is asked through this profile is timed. */
export function timedProfile(profile: Profile, observe: PluginObserver, nowMs: () => number): Profile {
  const points = Object.fromEntries(
    Object.entries(profile.points).map(([point, plugins]) => {
      const calls = timed[point as ExtensionPoint] ?? []
      return [point, calls.length === 0 ? plugins : plugins.map((plugin) => timedPlugin(plugin, calls, observe, nowMs))]
    }),
  )
  return { ...profile, points: points as unknown as Profile['points'] }
}

function timedPlugin(plugin: SchedulerPlugin, calls: readonly Timed[], observe: PluginObserver, nowMs: () => number): SchedulerPlugin {
  const methods: Record<string, unknown> = {}
  for (const { method, label, forEachNode } of calls) {
    const original = plugin[method] as Call | undefined
    if (!original) continue
    let count = 0
    methods[method] = (a: unknown, b: unknown, c: unknown, d: unknown): unknown => {
      if (forEachNode && count++ % everyNth > 0) return original.call(plugin, a, b, c, d)
      const startedMs = nowMs()
      const done = (status: string) => observe(plugin.name, label, status, (nowMs() - startedMs) / 1000)
      try {
        const answer = original.call(plugin, a, b, c, d)
        if (answer instanceof Promise) return answer.then(...settled(done))
        done(statusOf(answer))
        return answer
      } catch (error) {
        done('Error')
        throw error
      }
    }
  }
  return Object.assign(Object.create(plugin) as SchedulerPlugin, methods)
}

function settled(done: (status: string) => void): [(answer: unknown) => unknown, (error: unknown) => never] {
  return [
    (answer) => {
      done(statusOf(answer))
      return answer
    },
    (error) => {
      done('Error')
      throw error
    },
  ]
}

/** As upstream's status codes are spelled. */
function statusOf(answer: unknown): string {
  if (answer === 'skip') return 'Skip'
  if (typeof answer !== 'object' || answer === null) return 'Success'
  if ('waitMs' in answer) return 'Wait'
  const refusal = 'refusal' in answer ? answer.refusal : answer
  return typeof refusal === 'object' && refusal !== null && 'code' in refusal ? String(refusal.code) : 'Success'
}
