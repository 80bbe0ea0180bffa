/**
 * Reads metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io (L3). The last two are served by
 * add-ons: an answer of another form is an error, and a long one is read in parts. Upstream: pkg/controller/podautoscaler/metrics/client.go (v1.36), k8s.io/metrics/pkg/client.
 */
import type { CrossVersionObjectReference, MetricIdentifier } from '#api/gen/types/autoscaling.v2'
import { parseDuration } from '#api/machinery/duration'
import { type Selector, selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, parseGroupVersion } from '#api/machinery/meta'
import { quantityMilliValue } from '#api/machinery/quantity'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { parseTime } from '#base/time'
import type { Transport } from '#client/transport'
import type { KindMapper } from './kindMapper.ts'
import type { PodMetric, PodMetrics } from './podGroups.ts'
import { totalOf } from './replicaCalculator.ts'

/** The questions of one sync; each pod's usage is asked for once, however many metrics need it. Values are in thousandths. */
export interface MetricQueries {
  ofResource(resource: string, container: string): Promise<PodMetrics>
  ofPods(metric: Frozen<MetricIdentifier>): Promise<PodMetrics>
  ofObject(metric: Frozen<MetricIdentifier>, object: Frozen<CrossVersionObjectReference>): Promise<number>
  /** The sum of all values. */
  ofExternal(metric: Frozen<MetricIdentifier>): Promise<number>
}

export interface MetricsClient {
  queries(namespace: string, selector: Selector, signal: AbortSignal): MetricQueries
}

export interface MetricsClientDeps {
  readonly transport: Transport
  readonly mapper: KindMapper
  readonly clock: Clock
  /** How long the version of the custom metrics API is remembered. */
  readonly syncPeriodMs: number
}

type Fields = Readonly<Record<string, unknown>>

const customGroup = 'custom.metrics.k8s.io'
const customVersions = ['v1beta2', 'v1beta1'].map((version) => `${customGroup}/${version}`)
const itemsPerTurn = 1000
const defaultWindowMs = 60_000

export function createMetricsClient({ transport, mapper, clock, syncPeriodMs }: MetricsClientDeps): MetricsClient {
  const customVersion = rememberedFor(syncPeriodMs, clock, async (signal) => chooseVersion(await customGroupOf(transport, signal)))

  /** @throws Error when the answer is no list, or an empty one */
  async function list(api: string, path: string, query: Record<string, string>, signal: AbortSignal): Promise<readonly Fields[]> {
    const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''))
    const { body } = await transport.request({ method: 'GET', path, query: given }, signal)
    const items = (body as Fields | undefined)?.items
    if (!Array.isArray(items)) throw new Error('the answer is not a list')
    if (items.length === 0) throw new EmptyAnswer(`no metrics returned from ${api} metrics API`)
    return items as readonly Fields[]
  }

  async function eachItem(items: readonly Fields[], read: (item: Fields) => void): Promise<void> {
    for (const [index, item] of items.entries()) {
      read(item)
      if (index % itemsPerTurn === itemsPerTurn - 1) await clock.turn()
    }
  }

  async function custom(namespace: string, path: string, query: Record<string, string>, signal: AbortSignal): Promise<readonly Fields[]> {
    return list('custom', `/apis/${await customVersion(signal)}/namespaces/${encodeURIComponent(namespace)}/${path}`, query, signal)
  }

  async function resourceOf({ apiVersion = '', kind }: Frozen<CrossVersionObjectReference>, signal: AbortSignal): Promise<string> {
    const { group } = parseGroupVersion(apiVersion)
    try {
      const [found] = await mapper.resourcesOf(group, kind, signal)
      return group === '' ? `${found?.resource}` : `${found?.resource}.${group}`
    } catch (error) {
      throw new Error(`unable to map kind ${group === '' ? kind : `${kind}.${group}`} to resource: ${messageOf(error)}`)
    }
  }

  return {
    queries(namespace, selector, signal) {
      const labelSelector = selector.toString()
      let usage: Promise<readonly Fields[]> | undefined
      const usageOfPods = () => list('resource', `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods`, { labelSelector }, signal)
      return {
        ofResource: (resource, container) =>
          fetching('resource', async () => {
            usage ??= usageOfPods()
            const metrics = new Map<string, PodMetric>()
            await eachItem(await usage, (item) => {
              const value = container === '' ? usageOfAll(item, resource) : usageOfContainer(item, resource, container)
              if (value !== undefined) metrics.set(nameOf(item.metadata), { value, atMs: timeOf(item), windowMs: parseDuration(String(item.window)) ?? 0 })
            })
            return metrics
          }),
        ofPods: (metric) =>
          fetching('custom', async () => {
            const query = { labelSelector, metricLabelSelector: selectorOf(metric.selector).toString() }
            const metrics = new Map<string, PodMetric>()
            await eachItem(await custom(namespace, `pods/*/${encodeURIComponent(metric.name)}`, query, signal), (item) => {
              const seconds = item.windowSeconds ?? item.window
              const windowMs = typeof seconds === 'number' ? seconds * 1000 : defaultWindowMs
              metrics.set(nameOf(item.describedObject), { value: milliValueOf(item.value), atMs: timeOf(item), windowMs })
            })
            return metrics
          }),
        ofObject: (metric, object) =>
          fetching('custom', async () => {
            const isNamespace = object.kind === 'Namespace' && parseGroupVersion(object.apiVersion ?? '').group === ''
            // The name of a Namespace is disregarded: a reference never leaves its own namespace.
            const owner = isNamespace ? 'metrics' : `${await resourceOf(object, signal)}/${encodeURIComponent(object.name)}`
            const query = { metricLabelSelector: selectorOf(metric.selector).toString() }
            const items = await custom(namespace, `${owner}/${encodeURIComponent(metric.name)}`, query, signal).catch(noItems)
            if (items.length !== 1) throw new Error(`the custom metrics API server returned ${items.length} results when we asked for exactly one`)
            return milliValueOf(items[0]?.value)
          }),
        ofExternal: (metric) =>
          fetching('external', async () => {
            const path = `/apis/external.metrics.k8s.io/v1beta1/namespaces/${encodeURIComponent(namespace)}/${encodeURIComponent(metric.name)}`
            const values: number[] = []
            const items = await list('external', path, { labelSelector: selectorOf(metric.selector).toString() }, signal)
            await eachItem(items, (item) => void values.push(milliValueOf(item.value)))
            return totalOf(values)
          }),
      }
    },
  }
}

/** Upstream words an empty answer without the prefix that other failures of a query have. */
class EmptyAnswer extends Error {}

function noItems(error: unknown): readonly Fields[] {
  if (error instanceof EmptyAnswer) return []
  throw error
}

async function fetching<T>(api: string, fetch: () => Promise<T>): Promise<T> {
  try {
    return await fetch()
  } catch (error) {
    throw error instanceof EmptyAnswer ? error : new Error(`unable to fetch metrics from ${api} metrics API: ${messageOf(error)}`)
  }
}

async function customGroupOf(transport: Transport, signal: AbortSignal): Promise<Fields> {
  try {
    return (await transport.request({ method: 'GET', path: `/apis/${customGroup}` }, signal)).body as Fields
  } catch (error) {
    throw isStatus(error, 'NotFound') ? new Error(`no custom metrics API (${customGroup}) registered`) : error
  }
}

function chooseVersion({ preferredVersion, versions }: Fields): string {
  const offered = [preferredVersion, ...(Array.isArray(versions) ? versions : [])] as readonly { readonly groupVersion?: string }[]
  const chosen = offered.find((one) => customVersions.includes(one?.groupVersion ?? ''))?.groupVersion
  if (chosen === undefined) throw new Error('no known available metric versions found')
  return chosen
}

function rememberedFor<T>(ms: number, clock: Clock, ask: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let known: { readonly value: T; readonly untilMs: number } | undefined
  return async (signal) => {
    if (!known || clock.monotonicMs() >= known.untilMs) known = { value: await ask(signal), untilMs: clock.monotonicMs() + ms }
    return known.value
  }
}

interface ContainerUsage {
  readonly name?: unknown
  readonly usage?: Readonly<Record<string, string>> | undefined
}

const containersOf = ({ containers }: Fields) => (Array.isArray(containers) ? (containers as readonly ContainerUsage[]) : [])

/** Undefined unless each container has a value. */
function usageOfAll(item: Fields, resource: string): number | undefined {
  const amounts = containersOf(item).map(({ usage }) => ownValue(usage, resource))
  return amounts.length === 0 || amounts.includes(undefined) ? undefined : totalOf(amounts.map(milliValueOf))
}

function usageOfContainer(item: Fields, resource: string, container: string): number | undefined {
  const amount = ownValue(containersOf(item).find(({ name }) => name === container)?.usage, resource)
  return amount === undefined ? undefined : milliValueOf(amount)
}

/** @throws QuantityError */
const milliValueOf = (value: unknown) => quantityMilliValue(typeof value === 'number' ? value : String(value))
const nameOf = (value: unknown) => String((value as Fields | undefined)?.name ?? '')
/** Without a time it is older than any other. */
const timeOf = ({ timestamp }: Fields) => (typeof timestamp === 'string' && parseTime(timestamp)) || 0
