/**
 * What `skiff simulate load` does to a cluster (L4, pure): read from a YAML file, with everything that the file does not say filled in. docs/scale.md describes the
 * file.
 */

import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import { parseDuration } from '#api/machinery/duration'
import { isDns1123Label } from '#api/machinery/names'
import { parseYaml } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { CommandError } from '../exitCodes.ts'

/** Both included. */
export interface Range {
  readonly least: number
  readonly most: number
}

export interface Autoscaler {
  readonly min: number
  readonly max: number
  readonly cpuPercent: number
}

export interface DeploymentGroup {
  readonly name: string
  readonly count: number
  readonly replicas: Range
  readonly template: PodTemplateSpec
  readonly autoscaler: Autoscaler | undefined
}

/** Each with a rate of its own, in operations a second. */
export const operations = ['scale', 'rollOut', 'deletePod', 'nodeFlap'] as const
export type Operation = (typeof operations)[number]

export interface LoadPlan {
  /** Namespaces are called NAME-1, NAME-2 and so on. */
  readonly name: string
  readonly namespaces: number
  readonly seed: number
  readonly deployments: readonly DeploymentGroup[]
  /** Deployments that are created a second. Undefined: as fast as the server answers. */
  readonly createRate: number | undefined
  /** How long the cluster may take to run all pods. */
  readonly fillTimeoutMs: number
  readonly churn: { readonly durationMs: number; readonly rates: Readonly<Partial<Record<Operation, number>>>; readonly nodeDownMs: number }
}

export const mostPods = 500_000
const mostDeployments = 20_000
const mostRate = 1_000
const longestMs = 24 * 3_600_000
const defaultTemplate: PodTemplateSpec = {
  spec: { containers: [{ name: 'main', image: 'load.skiff.dev/pause:1', resources: { requests: { cpu: '100m', memory: '64Mi' } } }] },
}

/** The most pods that the plan's Deployments have at the same time, without those that a rollout adds. */
export function podsOf({ deployments }: LoadPlan): number {
  return deployments.reduce((sum, { count, replicas, autoscaler }) => sum + count * Math.max(replicas.most, autoscaler?.max ?? 0), 0)
}

/** @throws CommandError usage, which names the file and the field */
export function readLoadPlan(file: string, text: string): LoadPlan {
  const top = new Fields(file, '', parsed(file, text))
  const plan: LoadPlan = {
    name: top.name('name', 'load'),
    namespaces: top.whole('namespaces', 1, 1_000, 1),
    seed: top.whole('seed', 0, 2 ** 32 - 1, 1),
    deployments: top.list('deployments').map(groupOf),
    createRate: top.has('createRate') ? top.rate('createRate') : undefined,
    fillTimeoutMs: top.duration('fillTimeout', 600_000),
    churn: churnOf(top.map('churn')),
  }
  top.refuseOthers()
  if (plan.deployments.length === 0) top.refuse('deployments', 'expected a list with at least one entry')
  const names = plan.deployments.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) top.refuse('deployments', `two entries have the name "${twice}"`)
  const count = plan.deployments.reduce((sum, group) => sum + group.count, 0)
  if (count > mostDeployments) top.refuse('deployments', `${count} Deployments are more than ${mostDeployments}`)
  if (podsOf(plan) > mostPods) top.refuse('deployments', `${podsOf(plan)} pods are more than ${mostPods}`)
  return plan
}

function groupOf(fields: Fields): DeploymentGroup {
  const autoscaler = fields.has('autoscaler') ? autoscalerOf(fields.map('autoscaler')) : undefined
  const group = {
    name: fields.name('name', 'web'),
    count: fields.whole('count', 1, mostDeployments, 1),
    replicas: fields.range('replicas', 0, 100_000, 1),
    template: fields.has('template') ? (fields.map('template').values as unknown as PodTemplateSpec) : defaultTemplate,
    autoscaler,
  }
  fields.refuseOthers()
  return group
}

function autoscalerOf(fields: Fields): Autoscaler {
  const autoscaler = {
    min: fields.whole('min', 1, 100_000, 1),
    max: fields.whole('max', 1, 100_000, 10),
    cpuPercent: fields.whole('cpuPercent', 1, 10_000, 80),
  }
  if (autoscaler.max < autoscaler.min) fields.refuse('max', `expected at least min, ${autoscaler.min}`)
  fields.refuseOthers()
  return autoscaler
}

function churnOf(fields: Fields): LoadPlan['churn'] {
  const rates = Object.fromEntries(operations.filter((operation) => fields.has(operation)).map((operation) => [operation, fields.rate(operation)]))
  const durationMs = fields.duration('for', 0)
  const nodeDownMs = fields.duration('nodeDown', 60_000)
  fields.refuseOthers()
  if (durationMs > 0 && Object.keys(rates).length === 0) fields.refuse('for', `expected a rate beside it: ${operations.join(', ')}`)
  if (durationMs === 0 && Object.keys(rates).length > 0) fields.refuse('for', 'expected how long, such as 60s')
  return { durationMs, rates, nodeDownMs }
}

function parsed(file: string, text: string): unknown {
  try {
    return parseYaml(text)
  } catch (error) {
    throw new CommandError('usage', `${file}: ${messageOf(error)}`)
  }
}

/** The fields of one map in the file. Each is read once; a field that no method reads is a mistake of the user. */
class Fields {
  readonly values: Readonly<Record<string, unknown>>
  readonly #file: string
  readonly #path: string
  readonly #read = new Set<string>()

  constructor(file: string, path: string, values: unknown) {
    this.#file = file
    this.#path = path
    if (values !== undefined && values !== null && (typeof values !== 'object' || Array.isArray(values))) this.#fail(path || 'the file', 'expected a map')
    this.values = { ...(values as object | undefined) }
  }

  has(field: string): boolean {
    return this.values[field] !== undefined && this.values[field] !== null
  }

  /** @throws CommandError usage */
  refuse(field: string, reason: string): never {
    return this.#fail(this.#pathOf(field), reason)
  }

  refuseOthers(): void {
    const other = Object.keys(this.values).find((field) => !this.#read.has(field))
    if (other !== undefined) this.refuse(other, `unknown; the fields are ${[...this.#read].join(', ')}`)
  }

  map(field: string): Fields {
    return new Fields(this.#file, this.#pathOf(field), this.#take(field))
  }

  list(field: string): Fields[] {
    const list = this.#take(field) ?? []
    if (!Array.isArray(list)) return this.refuse(field, 'expected a list')
    return list.map((item, at) => new Fields(this.#file, `${this.#pathOf(field)}[${at}]`, item))
  }

  name(field: string, absent: string): string {
    const value = this.#take(field) ?? absent
    if (typeof value !== 'string') return this.refuse(field, 'expected a text')
    const [problem] = isDns1123Label(value)
    if (problem) this.refuse(field, problem)
    // A number is added, and pods get two more suffixes.
    return value.length <= 40 ? value : this.refuse(field, 'expected at most 40 characters')
  }

  whole(field: string, least: number, most: number, absent: number): number {
    const value = this.#take(field) ?? absent
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
    return this.refuse(field, `expected a whole number from ${least} to ${most}`)
  }

  /** A number, or two with a dash. */
  range(field: string, least: number, most: number, absent: number): Range {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(String(this.#take(field) ?? absent)) ?? []
    const range = { least: Number(first), most: Number(last) }
    if (range.least >= least && range.most <= most && range.least <= range.most) return range
    return this.refuse(field, `expected a whole number from ${least} to ${most}, or two of them, such as 10-40`)
  }

  /** Operations a second: 2/s, 30/m, or a number. */
  rate(field: string): number {
    const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(?:\/([sm]))?$/.exec(String(this.#take(field))) ?? []
    const rate = Number(amount) / (unit === 'm' ? 60 : 1)
    return rate > 0 && rate <= mostRate ? rate : this.refuse(field, `expected a rate of at most ${mostRate}/s, such as 2/s or 30/m`)
  }

  duration(field: string, absentMs: number): number {
    const value = this.#take(field)
    if (value === undefined || value === null) return absentMs
    const ms = typeof value === 'string' ? parseDuration(value) : undefined
    return ms !== undefined && ms > 0 && ms <= longestMs ? ms : this.refuse(field, 'expected a duration of at most 24h, such as 90s or 10m')
  }

  #take(field: string): unknown {
    this.#read.add(field)
    return this.values[field]
  }

  #pathOf(field: string): string {
    return this.#path === '' ? field : `${this.#path}.${field}`
  }

  #fail(path: string, reason: string): never {
    throw new CommandError('usage', `${this.#file}: ${path}: ${reason}`)
  }
}
