/**
 * An extender over HTTP or HTTPS (L3): one POST per question, in the JSON of upstream's extender/v1 types, whose names begin with capitals; answers
 * are read in any case, as Go reads them. Upstream: pkg/scheduler/extender.go, kube-scheduler/extender/v1 (v1.36).
 */
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { PreemptionCandidate } from '../framework/handle.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import type { Snapshot } from '../framework/snapshot.ts'
import type { Extender, ExtenderFilterAnswer } from './extender.ts'

export interface ExtenderTlsConfig {
  readonly insecure: boolean
  readonly serverName?: string | undefined
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  readonly caFile?: string | undefined
  /** Base64 of PEM; before the file of the same meaning. */
  readonly certData?: string | undefined
  readonly keyData?: string | undefined
  readonly caData?: string | undefined
}

export interface ExtenderConfig {
  readonly urlPrefix: string
  /** Empty: the extender is not asked that. */
  readonly filterVerb: string
  readonly preemptVerb: string
  readonly prioritizeVerb: string
  readonly bindVerb: string
  readonly weight: number
  readonly enableHttps: boolean
  readonly tlsConfig?: ExtenderTlsConfig | undefined
  readonly httpTimeoutMs: number
  /** It knows the nodes itself: only names are sent. */
  readonly nodeCacheCapable: boolean
  readonly managedResources: readonly { readonly name: string; readonly ignoredByScheduler: boolean }[]
  readonly ignorable: boolean
}

type Send = (verb: string, body: unknown, signal: AbortSignal) => Promise<unknown>

/** @throws Error when a certificate cannot be read */
export function createHttpExtender(config: ExtenderConfig): Extender {
  const send = sender(config)
  const managed = new Set(config.managedResources.map(({ name }) => name))
  const asks = new Asks(config, send)
  return {
    name: config.urlPrefix,
    isIgnorable: config.ignorable,
    weight: config.weight,
    isInterested: ({ pod }) =>
      managed.size === 0 ||
      [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].some(({ resources }) =>
        Object.keys({ ...resources?.requests, ...resources?.limits }).some((name) => managed.has(name)),
      ),
    ...(config.filterVerb ? { filter: (pod, nodes, signal) => asks.filter(pod, nodes, signal) } : {}),
    ...(config.prioritizeVerb ? { prioritize: (pod, nodes, signal) => asks.prioritize(pod, nodes, signal) } : {}),
    ...(config.preemptVerb ? { preempt: (pod, candidates, snapshot, signal) => asks.preempt(pod, candidates, snapshot, signal) } : {}),
    ...(config.bindVerb ? { bind: (pod, nodeName, signal) => asks.bind(pod, nodeName, signal) } : {}),
  }
}

class Asks {
  readonly #config: ExtenderConfig
  readonly #send: Send

  constructor(config: ExtenderConfig, send: Send) {
    this.#config = config
    this.#send = send
  }

  async filter(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ExtenderFilterAnswer> {
    const answer = members(await this.#send(this.#config.filterVerb, this.#args(pod, nodes), signal))
    if (answer.error) throw new Error(String(answer.error))
    const names = this.#config.nodeCacheCapable && Array.isArray(answer.nodenames) ? (answer.nodenames as string[]) : namesOfList(answer.nodes)
    const byName = new Map(nodes.map((node) => [node.name, node]))
    const feasible = names.map((name) => {
      const node = byName.get(name)
      if (!node) throw new Error(`extender "${this.#config.urlPrefix}" claims a filtered node "${name}" which is not found in the input node list`)
      return node
    })
    return { feasible, failed: textsOf(answer.failednodes), unresolvable: textsOf(answer.failedandunresolvablenodes) }
  }

  async prioritize(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const answer = await this.#send(this.#config.prioritizeVerb, this.#args(pod, nodes), signal)
    const scores = new Map<string, number>()
    for (const item of Array.isArray(answer) ? answer : []) {
      const { host, score } = members(item)
      scores.set(String(host), Number(score ?? 0))
    }
    return scores
  }

  async preempt(pod: PodInfo, candidates: readonly PreemptionCandidate[], snapshot: Snapshot, signal: AbortSignal): Promise<readonly PreemptionCandidate[]> {
    const { nodeCacheCapable, preemptVerb, urlPrefix } = this.#config
    const victims = Object.fromEntries(
      candidates.map(({ nodeName, victims: pods, budgetViolations }) => {
        const Pods = pods.map((victim) => (nodeCacheCapable ? { UID: victim.pod.metadata.uid } : victim.pod))
        return [nodeName, { Pods, NumPDBViolations: budgetViolations }]
      }),
    )
    const body = { Pod: pod.pod, [nodeCacheCapable ? 'NodeNameToMetaVictims' : 'NodeNameToVictims']: victims }
    const answer = members(await this.#send(preemptVerb, body, signal))
    return Object.entries((answer.nodenametometavictims ?? {}) as Record<string, unknown>).map(([nodeName, value]) => {
      const { pods, numpdbviolations } = members(value)
      const there = [...(snapshot.get(nodeName)?.pods.values() ?? [])]
      const found = (Array.isArray(pods) ? pods : []).map((meta) => {
        const { uid } = members(meta)
        const victim = there.find((one) => one.pod.metadata.uid === uid)
        if (!victim) throw new Error(`extender: ${urlPrefix} claims to preempt pod (UID: ${uid}) on node: ${nodeName}, but the pod is not found on that node`)
        return victim
      })
      return { nodeName, victims: found, budgetViolations: Number(numpdbviolations ?? 0) }
    })
  }

  async bind({ pod }: PodInfo, nodeName: string, signal: AbortSignal): Promise<void> {
    const { name, namespace, uid } = pod.metadata
    const answer = members(await this.#send(this.#config.bindVerb, { PodName: name, PodNamespace: namespace, PodUID: uid, Node: nodeName }, signal))
    if (answer.error) throw new Error(String(answer.error))
  }

  #args(pod: PodInfo, nodes: readonly NodeInfo[]): unknown {
    if (this.#config.nodeCacheCapable) return { Pod: pod.pod, Nodes: null, NodeNames: nodes.map(({ name }) => name) }
    const items: readonly Frozen<Node>[] = nodes.map(({ node }) => node)
    return { Pod: pod.pod, Nodes: { apiVersion: 'v1', kind: 'NodeList', metadata: {}, items }, NodeNames: null }
  }
}

/** The members of an answer by their names in lower case. */
function members(answer: unknown): Record<string, unknown> {
  if (typeof answer !== 'object' || answer === null) return {}
  return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name.toLowerCase(), value]))
}

function namesOfList(list: unknown): string[] {
  const { items } = members(list)
  return (Array.isArray(items) ? (items as Node[]) : []).map(({ metadata }) => metadata.name ?? '')
}

function textsOf(map: unknown): ReadonlyMap<string, string> {
  return new Map(Object.entries((map ?? {}) as Record<string, string>))
}

/** Connections are kept: a scheduler asks for every pod. */
function sender(config: ExtenderConfig): Send {
  const isHttps = config.enableHttps || config.urlPrefix.startsWith('https:')
  const agent = isHttps ? new https.Agent({ keepAlive: true, ...tlsOptions(config) }) : new http.Agent({ keepAlive: true })
  const { request } = isHttps ? https : http
  const prefix = config.urlPrefix.replace(/\/+$/, '')
  return (verb, body, signal) =>
    new Promise((resolve, reject) => {
      const url = `${prefix}/${verb}`
      const text = JSON.stringify(body)
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
      const call = request(url, { method: 'POST', agent, headers, signal, timeout: config.httpTimeoutMs }, (response) => {
        let answer = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          answer += chunk
        })
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode !== 200) return reject(new Error(`failed ${verb} with extender at URL ${url}, code ${response.statusCode}`))
          try {
            resolve(JSON.parse(answer))
          } catch (error) {
            reject(new Error(`failed ${verb} with extender at URL ${url}: the answer is not JSON`, { cause: error }))
          }
        })
      })
      call.on('timeout', () => call.destroy(new Error(`failed ${verb} with extender at URL ${url}: no answer within ${config.httpTimeoutMs} ms`)))
      call.on('error', reject)
      call.end(text)
    })
}

/** Without an authority the server's certificate is not verified, as upstream. */
function tlsOptions({ tlsConfig }: ExtenderConfig): https.AgentOptions {
  const read = (data: string | undefined, file: string | undefined) => (data ? Buffer.from(data, 'base64') : file ? fs.readFileSync(file) : undefined)
  const ca = read(tlsConfig?.caData, tlsConfig?.caFile)
  const cert = read(tlsConfig?.certData, tlsConfig?.certFile)
  const key = read(tlsConfig?.keyData, tlsConfig?.keyFile)
  return {
    rejectUnauthorized: ca !== undefined && !tlsConfig?.insecure,
    ...(ca ? { ca } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
    ...(tlsConfig?.serverName ? { servername: tlsConfig.serverName } : {}),
  }
}
