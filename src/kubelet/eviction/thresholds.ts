/**
 * What "short of something" means on a node (L3, pure): eviction signals, their thresholds from the configuration, and those that are met, kept until enough is
 * free again, and for how long. Upstream: kubelet/eviction/helpers.go, kubelet/eviction/api/types.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { canonicalQuantity, formatQuantity, isQuantity, quantityOf, quantitySign, quantityValue } from '#api/machinery/quantity'
import type { KubeletConfig } from '../core/config.ts'

const signals = [
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
] as const
export type EvictionSignal = (typeof signals)[number]

export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids'
export type Pressure = 'memory' | 'disk' | 'pid'

export function resourceOf(signal: EvictionSignal): StarvedResource {
  if (signal === 'memory.available' || signal === 'allocatableMemory.available') return 'memory'
  if (signal === 'pid.available') return 'pids'
  return signal.endsWith('.inodesFree') ? 'inodes' : 'ephemeral-storage'
}

export function pressureOf(signal: EvictionSignal): Pressure {
  const resource = resourceOf(signal)
  return resource === 'memory' ? 'memory' : resource === 'pids' ? 'pid' : 'disk'
}

export interface Observation {
  readonly available: number
  readonly capacity: number
}

export type Observations = Partial<Record<EvictionSignal, Observation>>

export interface Threshold {
  readonly signal: EvictionSignal
  /** A quantity or a percentage of the capacity. */
  readonly value: string
  /** How long the threshold must be met before pods are evicted; 0: a hard threshold. */
  readonly graceMs: number
  /** How much more than the value must be free before it counts as over. */
  readonly minReclaim?: string | undefined
}

/** '10%' of the capacity, or a quantity; bytes, inodes or processes. */
export function thresholdAmount(text: string, capacity: number): number {
  return text.endsWith('%') ? Math.trunc(capacity * percentage(text)) : quantityValue(text)
}

/** As upstream's messages print the threshold. */
export function thresholdText(text: string, capacity: number): string {
  return text.endsWith('%') ? formatQuantity(quantityOf(thresholdAmount(text, capacity), 'BinarySI')) : canonicalQuantity(text)
}

/** Upstream keeps the share as a 32-bit number, which shows in its amounts. */
const percentage = (text: string) => Math.fround(Math.fround(Number(text.slice(0, -1))) / 100)

type ThresholdConfig = Pick<KubeletConfig, 'evictionHard' | 'evictionSoft' | 'evictionSoftGracePeriod' | 'evictionMinimumReclaim' | 'enforceNodeAllocatable'>

/** @throws Error in upstream's words for a signal, amount or period that is none */
export function parseThresholds(config: ThresholdConfig): Threshold[] {
  const hard = statements(config.evictionHard)
  const soft = statements(config.evictionSoft)
  for (const name of [...Object.keys(config.evictionSoftGracePeriod), ...Object.keys(config.evictionMinimumReclaim)]) knownSignal(name)
  const withReclaim = (threshold: Threshold): Threshold => {
    const minReclaim = config.evictionMinimumReclaim[threshold.signal]
    if (minReclaim === undefined) return threshold
    checkAmount(minReclaim, `eviction minimum reclaim for ${threshold.signal}`)
    return { ...threshold, minReclaim }
  }
  const parsed = [
    ...hard.map(([signal, value]) => withReclaim({ signal, value, graceMs: 0 })),
    ...soft.map(([signal, value]) => withReclaim({ signal, value, graceMs: gracePeriodMs(config.evictionSoftGracePeriod, signal) })),
  ]
  // What pods may use together runs short like the node's memory does.
  const memory = parsed.find((threshold) => threshold.signal === 'memory.available' && threshold.graceMs === 0)
  return memory && config.enforceNodeAllocatable.includes('pods') ? [...parsed, { ...memory, signal: 'allocatableMemory.available' }] : parsed
}

function statements(texts: Readonly<Record<string, string>>): [EvictionSignal, string][] {
  return Object.entries(texts).flatMap(([name, value]): [EvictionSignal, string][] => {
    const signal = knownSignal(name)
    // Upstream's way to switch a default off.
    if (value === '0%' || value === '100%') return []
    checkAmount(value, `eviction threshold ${signal}`)
    if (value.endsWith('%') ? false : quantitySign(value) <= 0) throw new Error(`eviction threshold ${signal} must be positive: ${value}`)
    return [[signal, value]]
  })
}

function knownSignal(name: string): EvictionSignal {
  const signal = signals.find((candidate) => candidate === name)
  if (!signal) throw new Error(`unsupported eviction signal ${name}`)
  return signal
}

function checkAmount(value: string, what: string): void {
  if (!value.endsWith('%')) {
    if (!isQuantity(value)) throw new Error(`${what}: ${JSON.stringify(value)} is neither a quantity such as 100Mi nor a percentage such as 10%`)
    return
  }
  const percent = Number(value.slice(0, -1))
  if (Number.isNaN(percent)) throw new Error(`${what}: ${JSON.stringify(value)} is no percentage`)
  if (percent < 0) throw new Error(`eviction percentage threshold ${what.split(' ').at(-1)} must be >= 0%: ${value}`)
  if (percent > 100) throw new Error(`eviction percentage threshold ${what.split(' ').at(-1)} must be <= 100%: ${value}`)
}

function gracePeriodMs(periods: Readonly<Record<string, string>>, signal: EvictionSignal): number {
  const text = periods[signal]
  if (text === undefined) throw new Error(`grace period must be specified for the soft eviction threshold ${signal}`)
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error(`eviction grace period for ${signal}: ${JSON.stringify(text)} is no duration such as 1m30s`)
  if (ms < 0) throw new Error(`invalid eviction grace period specified: ${text}, must be a positive value`)
  return ms
}

/** Where containers write is never configured: it is the file system of images where they have one of their own, else the node's. */
export function withContainerFilesystem(thresholds: readonly Threshold[], dedicatedImageFs: boolean): Threshold[] {
  const source = dedicatedImageFs ? 'imagefs' : 'nodefs'
  const others = thresholds.filter(({ signal }) => !signal.startsWith('containerfs.'))
  const copies = others.flatMap((threshold): Threshold[] => {
    if (threshold.signal === `${source}.available`) return [{ ...threshold, signal: 'containerfs.available' }]
    return threshold.signal === `${source}.inodesFree` ? [{ ...threshold, signal: 'containerfs.inodesFree' }] : []
  })
  return [...others, ...copies]
}

/** The thresholds that are met. With `minReclaim` a signal must also exceed its minimum reclaim. Signals without an observation meet none. */
export function thresholdsMet(thresholds: readonly Threshold[], observations: Observations, minReclaim: boolean): Threshold[] {
  return thresholds.filter((threshold) => {
    const observation = observations[threshold.signal]
    if (!observation) return false
    const extra = minReclaim && threshold.minReclaim !== undefined ? thresholdAmount(threshold.minReclaim, observation.capacity) : 0
    return observation.available < thresholdAmount(threshold.value, observation.capacity) + extra
  })
}

/** State between two rounds. */
export interface ThresholdState {
  readonly firstSeenMs: ReadonlyMap<Threshold, number>
  /** Met for their whole grace period, and not yet over. */
  readonly met: readonly Threshold[]
  readonly pressureSeenMs: ReadonlyMap<Pressure, number>
}

export const nothingMet: ThresholdState = { firstSeenMs: new Map(), met: [], pressureSeenMs: new Map() }

/** One round of observations, at a time in milliseconds. The thresholds must be the same objects every time. */
export function nextState(state: ThresholdState, thresholds: readonly Threshold[], observations: Observations, nowMs: number): ThresholdState {
  const below = new Set([...thresholdsMet(thresholds, observations, false), ...thresholdsMet(state.met, observations, true)])
  const firstSeenMs = new Map([...below].map((threshold) => [threshold, state.firstSeenMs.get(threshold) ?? nowMs]))
  const pressureSeenMs = new Map(state.pressureSeenMs)
  for (const { signal } of below) pressureSeenMs.set(pressureOf(signal), nowMs)
  return { firstSeenMs, met: [...below].filter((threshold) => nowMs - (firstSeenMs.get(threshold) ?? nowMs) >= threshold.graceMs), pressureSeenMs }
}

/** The one to act on: memory before anything else, because it hurts at once. */
export function worstOf(met: readonly Threshold[]): Threshold | undefined {
  return met.find(({ signal }) => resourceOf(signal) === 'memory') ?? met[0]
}
