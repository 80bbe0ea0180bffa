/**
 * The pod annotations that define the behaviour of a simulated pod (L3). `KEY.CONTAINER` is about one container, `KEY` about all but init
 * containers (annotations of pulls: about all). An invalid value makes the container fail with the annotation's name.
 */
import { simulatedPrefix } from '#api/helpers/simulatedPods'
import { parseDuration } from '#api/machinery/duration'
import type { Random } from '#base/random'
import { GrpcError } from '#grpc/grpcError'
import type { ProbeSchedule, SimulatedBehaviour, SimulatedContainer, SimulatedPull } from './behaviour.ts'
import { readExecScript } from './execScript.ts'
import { lastLines } from './logLines.ts'

export const simulatedAnnotations = {
  /** Seconds, or `1-5`: drawn from between. Fractions are allowed. */
  pullSeconds: `${simulatedPrefix}pull-seconds`,
  pullError: `${simulatedPrefix}pull-error`,
  pullFailures: `${simulatedPrefix}pull-failures`,
  /** The uid that pulled images run as. */
  pullUser: `${simulatedPrefix}pull-user`,
  startSeconds: `${simulatedPrefix}start-seconds`,
  startError: `${simulatedPrefix}start-error`,
  exitAfterSeconds: `${simulatedPrefix}exit-after-seconds`,
  exitCode: `${simulatedPrefix}exit-code`,
  exitReason: `${simulatedPrefix}exit-reason`,
  exitTimes: `${simulatedPrefix}exit-times`,
  stopSeconds: `${simulatedPrefix}stop-seconds`,
  /** `fail 10s, pass 1m, fail`: one after the other from the container's start, the last one stays. */
  startup: `${simulatedPrefix}startup`,
  liveness: `${simulatedPrefix}liveness`,
  readiness: `${simulatedPrefix}readiness`,
  /** One line of the log per line. */
  logs: `${simulatedPrefix}logs`,
  /** A JSON object from command line to output and exit code. */
  exec: `${simulatedPrefix}exec`,
  cpuMilli: `${simulatedPrefix}cpu-milli`,
  memoryBytes: `${simulatedPrefix}memory-bytes`,
} as const

type Reader<T> = (text: string, random: Random) => T | undefined

const number: Reader<number> = (text) => (/^\d+(\.\d+)?$/.test(text) && isUsable(text) ? Number(text) : undefined)
const wholeNumber: Reader<number> = (text) => (/^\d+$/.test(text) && isUsable(text) ? Number(text) : undefined)
/** Sums and products with larger ones are not exact, and may be infinite. */
const isUsable = (text: string) => Number(text) <= Number.MAX_SAFE_INTEGER
const words: Reader<string> = (text) => text
/** Behaviours are read for every probe and measurement, their logs only at a start. */
const linesWhenAsked: Reader<Iterable<string>> = (text) => ({ [Symbol.iterator]: () => lastLines(text)[Symbol.iterator]() })

const milliseconds: Reader<number> = (text, random) => {
  const [, least, most = least] = /^(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?$/.exec(text) ?? []
  if (least === undefined || Number(most) < Number(least) || !isUsable(`${most}`)) return undefined
  const spread = Number(most) - Number(least)
  return (Number(least) + (spread > 0 ? random.next() * spread : 0)) * 1000
}

/** A schedule is read at every probe. */
const maxResults = 1_000

const schedule: Reader<ProbeSchedule> = (text) => {
  const texts = text.split(',', maxResults + 1)
  if (texts.length > maxResults) return undefined
  const parts = texts.map((part) => {
    const [, word, duration] = /^\s*(pass|fail)(?:\s+(\S+))?\s*$/.exec(part) ?? []
    const forMs = duration === undefined ? undefined : parseDuration(duration)
    return word === undefined || (duration !== undefined && forMs === undefined) ? undefined : { passes: word === 'pass', forMs }
  })
  return parts.every((part) => part !== undefined) ? parts : undefined
}

const forms: Readonly<Record<keyof typeof simulatedAnnotations, string>> = {
  pullSeconds: 'seconds, such as 2.5 or 1-5',
  pullError: 'a text',
  pullFailures: 'a whole number',
  pullUser: 'a whole number',
  startSeconds: 'seconds, such as 2.5 or 1-5',
  startError: 'a text',
  exitAfterSeconds: 'seconds, such as 2.5 or 1-5',
  exitCode: 'a whole number',
  exitReason: 'a text',
  exitTimes: 'a whole number',
  stopSeconds: 'seconds, such as 2.5 or 1-5',
  startup: 'results and durations, such as "fail 10s, pass"',
  liveness: 'results and durations, such as "pass 1m, fail"',
  readiness: 'results and durations, such as "fail 10s, pass"',
  logs: 'a text',
  exec: 'a JSON object from command line to {"stdout": text, "stderr": text, "exitCode": 0 to 255}',
  cpuMilli: 'a number',
  memoryBytes: 'a number',
}

/** Statuses and events show it. */
function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}...` : text
}

/** @throws GrpcError naming the annotation that cannot be read */
function reader(annotations: Readonly<Record<string, string>>, random: Random, containerName: string | undefined, isOwnOnly: boolean) {
  return <T>(name: keyof typeof simulatedAnnotations, read: Reader<T>): T | undefined => {
    const general = simulatedAnnotations[name]
    const own = `${general}.${containerName}`
    const key = containerName !== undefined && annotations[own] !== undefined ? own : general
    const text = isOwnOnly && key === general ? undefined : annotations[key]
    if (text === undefined) return undefined
    const value = read(text, random)
    if (value === undefined) throw new GrpcError('INVALID_ARGUMENT', `annotation ${key}: ${JSON.stringify(shortened(text))} is not ${forms[name]}`)
    return value
  }
}

const nothing = {}

/** Most pods say nothing about it, and behaviours are read for every probe and measurement. */
function saysNothing(annotations: Readonly<Record<string, string>>): boolean {
  for (const key in annotations) if (key.startsWith(simulatedPrefix)) return false
  return true
}

/** The behaviour of a container by its annotations. */
export function annotatedBehaviour(container: SimulatedContainer, random: Random): SimulatedBehaviour {
  if (saysNothing(container.annotations)) return nothing
  const read = reader(container.annotations, random, container.name, container.isInit)
  const behaviour: SimulatedBehaviour = {
    startDelayMs: read('startSeconds', milliseconds),
    startError: read('startError', words),
    exitAfterMs: read('exitAfterSeconds', milliseconds),
    exitCode: read('exitCode', wholeNumber),
    exitReason: read('exitReason', words),
    exitTimes: read('exitTimes', wholeNumber),
    stopDelayMs: read('stopSeconds', milliseconds),
    startup: read('startup', schedule),
    liveness: read('liveness', schedule),
    readiness: read('readiness', schedule),
    logs: read('logs', linesWhenAsked),
    exec: read('exec', readExecScript),
    cpuMilli: read('cpuMilli', number),
    memoryBytes: read('memoryBytes', number),
  }
  return withoutAbsent(behaviour)
}

/** A node pulls one image after the other: a pull of one namespace delays those of all others. */
const mostPullMs = 600_000

/** The behaviour of a pod's image pulls by its annotations. */
export function annotatedPull(annotations: Readonly<Record<string, string>>, random: Random): SimulatedPull {
  if (saysNothing(annotations)) return nothing
  const read = reader(annotations, random, undefined, false)
  const delayMs = read('pullSeconds', milliseconds)
  return withoutAbsent({
    delayMs: delayMs === undefined ? undefined : Math.min(delayMs, mostPullMs),
    error: read('pullError', words),
    failures: read('pullFailures', wholeNumber),
    user: read('pullUser', wholeNumber),
  })
}

/** Removes undefined fields, which would override values of the profile. */
function withoutAbsent<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}
