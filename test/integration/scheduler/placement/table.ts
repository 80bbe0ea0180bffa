/**
 * What one plugin decides about one pod, case by case, through the real cycle: the profile has that plugin, and nothing else that filters or scores.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Node, Pod, PodSpec, Taint } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { Resource } from '#client/client'
import { definePlugin, type PluginDefinition, type SchedulerPlugin } from '#scheduler/framework/plugin'
import { fitMessage, type Refusal } from '#scheduler/framework/status'
import { defaultPlugins } from '#scheduler/plugins/index'
import { schedulerFixture } from '#testing/schedulerFixture'

export interface Case {
  readonly name: string
  readonly pod: Pod
  readonly nodes: readonly Node[]
  /** Pods that run already. */
  readonly placed?: readonly Pod[]
  readonly objects?: readonly (readonly [Resource<KubeObject>, readonly KubeObject[]])[]
  readonly args?: unknown
  /** Names of the nodes that fit, in any order; `''`: none. */
  readonly fits?: string
  /** The normalized score of each node that fits, before the weight; 'skip': the plugin skips scoring. */
  readonly scores?: Readonly<Record<string, number>> | 'skip'
  /** Why no node fits, and whether preemption might help. */
  readonly message?: string
  readonly code?: Refusal['code']
}

interface Seen {
  fits: string[] | undefined
  scores: Record<string, number> | 'skip' | undefined
}

/** One test a case; its name begins with the row of the feature map. */
export function placements(row: string, plugin: string, cases: readonly Case[]): void {
  for (const one of cases)
    test(`${row} ${plugin}: ${one.name}`, () => {
      assert.ok(
        [one.fits, one.scores, one.message, one.code].some((wanted) => wanted !== undefined),
        'the case says what it wants',
      )
      check(one, plugin)
    })
}

function check({ pod, nodes, placed, objects, args, fits, scores, message, code }: Case, plugin: string): void {
  const seen: Seen = { fits: undefined, scores: undefined }
  const enabled = [...new Set(['PrioritySort', plugin, 'DefaultBinder', 'Witness'])].map((name) => ({ name }))
  const fixture = schedulerFixture({
    nodes,
    ...(placed ? { placed } : {}),
    ...(objects ? { objects } : {}),
    otherPlugins: [watched(plugin, seen), witness(seen)],
    profile: { plugins: { multiPoint: { enabled, disabled: ['*'] } }, args: args === undefined ? {} : { [plugin]: args } },
  })
  const result = fixture.schedule(pod)
  const names = 'placed' in result ? (seen.fits ?? [result.placed.node.name]) : []
  if (fits !== undefined) assert.deepEqual(names.sort(), fits === '' ? [] : fits.split(' ').sort())
  if (scores !== undefined) assert.deepEqual(seen.scores, scores)
  if (message === undefined && code === undefined) return
  assert.ok('refused' in result, `fits ${names.join(' ')}`)
  const { refusals, preFilterMessage } = result.refused
  const totalNodes = fixture.cache.nodes.length
  if (message !== undefined) assert.equal(fitMessage({ totalNodes, refusals: refusals.forMessage(totalNodes), preFilterMessage }), message)
  if (code !== undefined) assert.deepEqual([...new Set(nodes.map(({ metadata }) => refusals.get(metadata.name ?? '').code))], [code])
}

/** The real plugin, with a wrapper that records its scores. */
function watched(name: string, seen: Seen): PluginDefinition {
  const real = defaultPlugins.find(({ definition }) => definition.name === name)?.definition
  if (!real) throw new Error(`no default plugin is called ${name}`)
  return { name, create: (args, handle) => watch(real.create(args, handle), seen) }
}

function watch(plugin: SchedulerPlugin, seen: Seen): SchedulerPlugin {
  const { preScore, normalize } = plugin
  if (preScore)
    plugin.preScore = (...given) => {
      const answer = preScore.apply(plugin, given)
      if (answer === 'skip') seen.scores = 'skip'
      return answer
    }
  if (plugin.score)
    plugin.normalize = (scores, state, pod, nodes) => {
      normalize?.call(plugin, scores, state, pod, nodes)
      seen.scores = Object.fromEntries(nodes.map(({ name }, i) => [name, scores[i] as number]))
    }
  return plugin
}

/** Sees which nodes are left when scoring begins. */
function witness(seen: Seen): PluginDefinition {
  return definePlugin('Witness', () => ({
    preScore: (_state, _pod, nodes) => {
      seen.fits = nodes.map(({ name }) => name)
      return undefined
    },
  }))
}

type Amounts = Readonly<Record<string, string>>

export interface NodeSketch {
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly unschedulable?: boolean
  /** Added to 4 CPUs, 8 GiB and 110 pods. */
  readonly has?: Amounts
  readonly images?: Readonly<Record<string, number>>
  readonly declares?: readonly string[]
}

export function node(name: string, { labels, taints, unschedulable, has, images, declares }: NodeSketch = {}): Node {
  const listed = Object.entries(images ?? {}).map(([image, sizeBytes]) => ({ names: [image], sizeBytes }))
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec: { ...(taints ? { taints: [...taints] } : {}), ...(unschedulable ? { unschedulable } : {}) },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...has },
      ...(images ? { images: listed } : {}),
      ...(declares ? { declaredFeatures: [...declares] } : {}),
    },
  }
}

export interface PodSketch {
  readonly name?: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  /** The node that it runs on. */
  readonly on?: string
  /** One container for each. */
  readonly asks?: readonly Amounts[]
  readonly spec?: Partial<PodSpec>
}

let made = 0

export function pod({ name = `pod-${made++}`, namespace = 'default', labels = {}, on, asks = [{}], spec = {} }: PodSketch = {}): Pod {
  const containers = asks.map((requests, i): Container => ({ name: `c${i}`, image: 'app:1', resources: { requests: { ...requests } } }))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, uid: `${namespace}/${name}`, labels: { ...labels }, generation: 1 },
    spec: { containers, ...(on === undefined ? {} : { nodeName: on }), ...spec },
    status: {},
  }
}
