/**
 * Which events may help which refused pods (L3), from what the plugins registered.
 * Upstream: scheduler.go buildQueueingHintMap, scheduling_queue.go isPodWorthRequeuing.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type ClusterEvent, eventLabel, type Requeue } from './framework/clusterEvent.ts'
import type { SchedulerPlugin } from './framework/plugin.ts'

export interface RefusedPod {
  readonly pod: Frozen<Pod>
  readonly refusedBy: ReadonlySet<string>
  readonly pendingOn: ReadonlySet<string>
  readonly gatedBy: string | undefined
}

export interface HintTables {
  /** Names of the plugins that registered for the event. */
  interestedIn(event: ClusterEvent): readonly string[]
  mayHelp(plugin: string, event: ClusterEvent, pod: Frozen<Pod>): boolean
}

/** Stands among the refusing plugins for all extenders, which have no hints: every event may help. */
export const extendersName = 'Extenders'

/** The tables of one profile; which plugins an event concerns is worked out once for each kind of event. */
export function hintTables(plugins: Iterable<SchedulerPlugin>, timer?: HintTimer): HintTables {
  let asked = 0
  const all: SchedulerPlugin[] = [...plugins, { name: extendersName }]
  const byPlugin = new Map(all.map((plugin) => [plugin.name, plugin.requeueOn]))
  const registered = (plugin: SchedulerPlugin, { resource, action }: ClusterEvent) =>
    !plugin.requeueOn || plugin.requeueOn.some((one) => one.resource === resource && (one.actions & action) !== 0)
  const cached = new Map<string, readonly string[]>()
  const ask = (plugin: string, one: Requeue, event: ClusterEvent, pod: Frozen<Pod>): boolean => {
    if (!timer || !one.hint || asked++ % everyNthHint !== 0) return hintSays(one, event, pod) !== 'QueueSkip'
    const startedMs = timer.nowMs()
    const said = hintSays(one, event, pod)
    timer.took(plugin, eventLabel(event), said, (timer.nowMs() - startedMs) / 1000)
    return said !== 'QueueSkip'
  }
  return {
    interestedIn: (event) => {
      const key = `${event.resource}/${event.action}`
      let names = cached.get(key)
      if (!names) {
        names = all.filter((plugin) => registered(plugin, event)).map(({ name }) => name)
        cached.set(key, names)
      }
      return names
    },
    mayHelp: (plugin, event, pod) => {
      const requeueOn = byPlugin.get(plugin)
      // A plugin without EventsToRegister: every event.
      if (!requeueOn) return true
      return requeueOn.some((one) => one.resource === event.resource && (one.actions & event.action) !== 0 && ask(plugin, one, event, pod))
    },
  }
}

type Said = 'Queue' | 'QueueSkip' | 'Error'

/** A hint that fails must not strand the pod. */
function hintSays({ hint }: Requeue, event: ClusterEvent, pod: Frozen<Pod>): Said {
  if (!hint) return 'Queue'
  try {
    return hint(pod, event) ? 'Queue' : 'QueueSkip'
  } catch {
    return 'Error'
  }
}

/** Gets the time of one hint in {@link everyNthHint}, as upstream samples them. */
export interface HintTimer {
  nowMs(): number
  took(plugin: string, event: string, hint: Said, seconds: number): void
}

const everyNthHint = 10

/** 'now' where the pod only waited for a plugin to finish something; 'backoff' where it was refused. */
export function strategyFor(tables: HintTables, refused: RefusedPod, event: ClusterEvent): 'skip' | 'backoff' | 'now' {
  const { pod } = refused
  if (event.resource === 'TargetPod' && (event as ClusterEvent<'TargetPod'>).object?.metadata.uid !== pod.metadata.uid) return 'skip'
  if (refused.gatedBy !== undefined && tables.mayHelp(refused.gatedBy, event, pod)) return 'backoff'
  for (const plugin of refused.pendingOn) if (tables.mayHelp(plugin, event, pod)) return 'now'
  for (const plugin of refused.refusedBy) if (tables.mayHelp(plugin, event, pod)) return 'backoff'
  return 'skip'
}
