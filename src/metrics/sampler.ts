/**
 * Samples all nodes every 15 seconds (L3). A bounded number is asked at a time, each for a bounded time, and those that did not answer last time come last:
 * kubelets that hang delay each other, not the rest. Without nodes, and while another server answers the group, nothing runs.
 * Upstream: metrics-server pkg/scraper, pkg/server (v0.8).
 */

import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { Counter, Metrics } from '#base/metrics'
import { orAborted } from '#base/orAborted'
import { createWakeUp } from '#base/wakeUp'
import { group, version } from './kinds.ts'
import { type NodeSample, resolutionMs } from './samples.ts'
import type { UsageStore } from './usageStore.ts'

interface Resource {
  readonly group: string
  readonly resource: string
}

/** The cluster's objects, from a cache. */
export interface ClusterObjects {
  get<T extends KubeObject>(resource: Resource, namespace: string, name: string): Frozen<T> | undefined
  list<T extends KubeObject>(resource: Resource, namespace?: string): readonly Frozen<T>[]
  /** Returns what stops it. */
  onChange<T extends KubeObject>(resource: Resource, fn: (change: { readonly object: Frozen<T> }) => void): () => void
}

/** Measures a node now. @throws Error when it does not answer */
export type MeasureNode = (nodeName: string, signal: AbortSignal) => Promise<NodeSample>

export interface SamplerDeps {
  readonly objects: ClusterObjects
  readonly measure: MeasureNode
  readonly store: UsageStore
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

export const nodes: Resource = { group: '', resource: 'nodes' }
export const apiServices: Resource = { group: 'apiregistration.k8s.io', resource: 'apiservices' }
const workers = 32
const nodeTimeoutMs = 10_000
/** A round ends before the next one begins. */
const roundTimeoutMs = 13_500

export function createSampler(deps: SamplerDeps): Component {
  const { objects, clock, metrics } = deps
  const requests = metrics.counter({ name: 'metrics_server_kubelet_request_total', help: 'Samples of nodes, by success.', labels: ['success'] })
  return {
    name: 'resource-metrics',
    async run(signal) {
      const changed = createWakeUp()
      const stops = [objects.onChange(nodes, changed.ring), objects.onChange(apiServices, changed.ring)]
      let silent: ReadonlySet<string> = new Set()
      try {
        while (!signal.aborted) {
          const names = isServed(objects) ? objects.list<Node & KubeObject>(nodes).map(({ metadata }) => metadata.name ?? '') : []
          deps.store.keep(new Set(names))
          if (names.length === 0) await changed.wait(signal)
          else {
            const nextMs = clock.monotonicMs() + resolutionMs
            silent = await round(deps, inOrder(names, silent), requests, signal)
            await clock.sleep(Math.max(0, nextMs - clock.monotonicMs()), signal).catch(() => undefined)
          }
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

/** Whether this server answers the group: its APIService exists and names no Service. */
function isServed(objects: ClusterObjects): boolean {
  const apiService = objects.get<APIService & KubeObject>(apiServices, '', `${version}.${group}`)
  return apiService !== undefined && !apiService.spec.service
}

function inOrder(names: readonly string[], silent: ReadonlySet<string>): string[] {
  return [...names.filter((name) => !silent.has(name)), ...names.filter((name) => silent.has(name))]
}

/** @returns the nodes that did not answer */
async function round({ clock, ...deps }: SamplerDeps, names: readonly string[], requests: Counter, signal: AbortSignal): Promise<ReadonlySet<string>> {
  using whole = deadlineScope({ clock, ms: roundTimeoutMs }, signal)
  const silent = new Set<string>()
  let next = 0
  const work = async () => {
    for (let name = names[next++]; name !== undefined; name = names[next++]) {
      const sample = await measured({ clock, ...deps }, name, whole.signal)
      if (signal.aborted) return
      requests.inc({ success: String(sample !== undefined) })
      if (!sample) silent.add(name)
      deps.store.put(name, sample)
      // Nodes of this process answer without I/O: others have their turn.
      await clock.turn()
    }
  }
  await Promise.all(Array.from({ length: Math.min(workers, names.length) }, work))
  return silent
}

async function measured({ clock, measure, log }: Omit<SamplerDeps, 'store'>, name: string, signal: AbortSignal): Promise<NodeSample | undefined> {
  if (signal.aborted) return undefined
  using limit = deadlineScope({ clock, ms: nodeTimeoutMs }, signal)
  try {
    return await orAborted(measure(name, limit.signal), limit.signal)
  } catch (error) {
    log.v(1).info('A node was not measured', { node: name, error: messageOf(error) })
    return undefined
  }
}
