/**
 * A whole cluster in this process, for tests: memory store, API server, controllers, scheduler, simulated nodes. Under virtual time nothing
 * happens until the test moves the time, a day passes in seconds, and one seed gives one history. Published as skiff-kubernetes/testing.
 */
import { toYaml } from '#api/machinery/yaml'
import type { ApiServer } from '#apiserver/apiServer'
import type { UserInfo } from '#apiserver/core/request'
import type { Listener } from '#apiserver/server/listener'
import type { Clock } from '#base/clock'
import { type Logger, noLog } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type Metrics, noMetrics } from '#base/metrics'
import type { Tracer } from '#base/traceContext'
import { VirtualClock } from '#base/virtualClock'
import { nodes } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { ApiRequest, Transport } from '#client/transport'
import type { ControllerOptions } from '#controllers/index'
import { simulatedNodeAddress } from '#kubelet/runtime/simulated/machine'
import { defaultProfile, type SimulatedProfile } from '#kubelet/runtime/simulated/profile'
import { createOwnKubelets } from '#main/layouts/ownKubelets'
import { kubeletClientUser } from '#main/pki/pki'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { isStoreError } from '#store/storeError'
import { TraceBook } from '#trace/traceBook'
import { ClockControl } from './clockControl.ts'
import { clockPage } from './clockPage.ts'
import {
  adminToken,
  adminUser,
  apiServerSetup,
  type ClusterTools,
  clusterCidr,
  liveAsControllers,
  liveAsScheduler,
  makeApiServer,
  offerResourceMetrics,
  partRandom,
} from './controlPlane.ts'
import { Faults, Link } from './faults.ts'
import { type Change, History } from './history.ts'
import type { KubeletCredentials } from './kubeletPort.ts'
import { LastSeen } from './lastSeen.ts'
import { type NodeSpec, SimulatedNode } from './node.ts'
import { type Life, Part, type PartDeps } from './part.ts'
import { realClock } from './realClock.ts'
import { Activity, pausingClock, settle } from './settle.ts'
import { addStages, liveAsStagePlayer } from './stages/stagesOfCluster.ts'
import { testCertificates } from './testCertificates.ts'

export interface ClusterOptions {
  /** Whatever is left to chance follows from it. Default 1. */
  readonly seed?: number | undefined
  /** Default virtual. */
  readonly clock?: 'virtual' | 'real' | undefined
  /** When virtual time begins, RFC 3339. Default 2026-01-01T00:00:00Z. */
  readonly start?: string | undefined
  /** How many, called n1, n2 and so on; or which. Default 1. */
  readonly nodes?: number | readonly (string | NodeSpec)[] | undefined
  /** As --controllers; false: none. Default ['*']. */
  readonly controllers?: readonly string[] | false | undefined
  readonly controllerOptions?: ControllerOptions | undefined
  /** Default true. */
  readonly scheduler?: boolean | undefined
  /** kube-apiserver's flags, such as --enable-admission-plugins=… */
  readonly apiServerArgs?: readonly string[] | undefined
  /** Whether each node's kubelet answers on a port of 127.0.0.1: for kubectl logs, exec, attach and port-forward. Default false. */
  readonly kubeletPorts?: boolean | undefined
  /** Default behaviour of simulated pods; their annotations override it. */
  readonly profile?: Partial<SimulatedProfile> | undefined
  /**
   * Nodes annotated kwok.x-k8s.io/node=fake, and the pods bound to them, change as Stages say: true for the built-in ones, or Stages of one's own as
   * YAML. Default: none, and no component updates such nodes.
   */
  readonly stages?: true | string | undefined
  /** Whether nodes are sampled and metrics.k8s.io is served: for kubectl top and HorizontalPodAutoscalers. Default false. */
  readonly resourceMetrics?: boolean | undefined
  /** Whether every change is kept for history(). Default false. */
  readonly recordHistory?: boolean | undefined
  readonly store?: Store | undefined
  /** Where the components record metrics and spans; absent: nowhere. */
  readonly observers?: { readonly metrics?: Metrics | undefined; readonly tracer?: Tracer | undefined } | undefined
}

/** The cluster's time. */
export interface ClusterClock extends Clock {
  /** Lets so much time pass: all that falls due happens, in order. Under the real clock it waits. */
  advance(ms: number): Promise<void>
}

export type ControlPlanePart = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kwok-controller'

export interface TestCluster {
  readonly clock: ClusterClock
  /** As an administrator. */
  readonly client: Client
  /** As any user; the API server accepts the identity. */
  clientAs(user: UserInfo): Client
  /** Resolves when nothing is under way any more: only time, or a call, can bring something about. */
  idle(): Promise<void>
  /**
   * Lets time pass, from one event to the next, until `check` gives something other than false or undefined, and gives it back.
   * @throws Error when `withinMs` of the cluster's time have passed (default 10 minutes). Its message has the objects that `check` read last, with
   * their conditions and events, and what was logged meanwhile; its cause is the error that `check` threw last.
   */
  until<T>(check: () => Promise<T | false | undefined>, withinMs?: number): Promise<T>
  readonly faults: Faults
  /** @throws Error for a node that was never there */
  node(name: string): SimulatedNode
  readonly nodes: readonly SimulatedNode[]
  addNode(spec: string | NodeSpec): SimulatedNode
  /** Stops a part, without tidying up when it crashes; it stays down until start. Links of the others to the API server break when that is the part. */
  stop(part: ControlPlanePart, how?: 'stop' | 'crash'): Promise<void>
  start(part: ControlPlanePart): Promise<void>
  restart(part: ControlPlanePart, how?: 'stop' | 'crash'): Promise<void>
  /** Forgets the store's history up to now: watches from before get 410 Expired. */
  compact(): Promise<void>
  /** All changes since the start, with recordHistory. */
  history(): readonly Change[]
  /** Warnings and errors that components logged. */
  readonly complaints: readonly string[]
  /** For controllers of the test's own: keeps warnings and errors in `complaints`. */
  readonly log: Logger
  /** Serves the API on a port of 127.0.0.1, chosen by the system, on first use. */
  listen(): Promise<{ readonly url: string; readonly ca: string; readonly token: string }>
  /** A kubeconfig for listen(), as YAML. */
  kubeconfig(): Promise<string>
  close(): Promise<void>
  /** As close(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Ready when it returns: system objects are there, controllers and scheduler follow the API, all nodes are Ready. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const cluster = new Cluster(options)
  await cluster.begin()
  return cluster
}

/** How long the first nodes may take to be Ready. */
const readyWithinMs = 60_000
const defaultUntilMs = 10 * 60_000
const realWatchSeconds = 300
const virtualWatchSeconds = 86_400
/** A hundred watches of one process would do little else. Each cache keeps its last thousand changes, so that a broken watch resumes from this long ago. */
const virtualBookmarkMs = 30 * 60_000
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
/** How often `until` looks under the real clock. */
const lookEveryMs = 5

class Cluster implements TestCluster {
  readonly clock: ClusterClock
  readonly client: Client
  readonly faults: Faults
  readonly complaints: string[] = []
  readonly log: Logger = listeningLog(this.complaints)
  readonly #lastSeen = new LastSeen()
  #isClosing = false
  readonly #options: ClusterOptions
  readonly #activity = new Activity()
  readonly #virtual: VirtualClock | undefined
  /** Of virtual time, for users of the API. */
  readonly #clockControl: ClockControl | undefined
  readonly #tools: ClusterTools
  readonly #store: Store
  readonly #parts = new Map<string, Part>()
  readonly #nodes = new Map<string, SimulatedNode>()
  readonly #history: History | undefined
  /** Transports of the current API server, one per user and agent. */
  readonly #transports = new Map<string, Transport>()
  #server: ApiServer | undefined
  #kubeletCredentials: KubeletCredentials | undefined
  readonly #ownKubelets = createOwnKubelets()
  #addedNodes = 0
  #port: Promise<{ readonly cert: string; readonly listener: Listener }> | undefined

  constructor(options: ClusterOptions) {
    this.#options = options
    // Tests take single methods out of a cluster: `const { client, until, restart } = cluster`.
    for (const name of ['restart', 'compact', 'close'] as const) this[name] = this[name].bind(this) as never
    this.#virtual = options.clock === 'real' ? undefined : new VirtualClock(options.start, () => settle(this.#activity), turn)
    this.#clockControl = this.#virtual && new ClockControl(this.#virtual, realClock)
    this.clock = this.#virtual ?? { ...realClock, advance: (ms) => realClock.sleep(ms) }
    this.faults = new Faults(this.clock, this.#activity)
    this.faults.onCrash((component) => this.#crashAndRestart(component))
    this.#store = options.store ?? createMemoryStore({ clock: this.clock })
    this.#tools = {
      clock: this.clock,
      requestClock: pausingClock(this.clock, this.#activity),
      log: this.log,
      metrics: options.observers?.metrics ?? noMetrics,
      tracer: options.observers?.tracer,
      trace: new TraceBook(this.clock),
      random: partRandom(options.seed ?? 1),
      minWatchSeconds: this.#virtual ? virtualWatchSeconds : realWatchSeconds,
      bookmarkMs: this.#virtual && virtualBookmarkMs,
    }
    this.#history = options.recordHistory ? new History(this.#store, this.clock) : undefined
    this.client = this.clientAs(adminUser)
  }

  async begin(): Promise<void> {
    const { controllers = ['*'], controllerOptions = {}, scheduler = true, apiServerArgs = [], stages } = this.#options
    if (this.#options.kubeletPorts) this.#kubeletCredentials = await testCertificates(`CN=${kubeletClientUser}`)
    const setup = await apiServerSetup(this.#store, apiServerArgs, this.clock)
    const pages = this.#clockControl ? [clockPage(this.#clockControl)] : []
    const makeServer = () => makeApiServer(setup, this.#tools, this.#kubeletCredentials, this.#ownKubelets, pages)
    this.#addPart('kube-apiserver', (life) => this.#liveAsApiServer(makeServer(), life))
    await this.until(async () => this.#server !== undefined)
    if (controllers)
      this.#addPart('kube-controller-manager', (life) => liveAsControllers(this.#tools, controllers, { clusterCidr, ...controllerOptions }, life))
    if (scheduler) this.#addPart('kube-scheduler', (life) => liveAsScheduler(this.#tools, life))
    if (stages) {
      await addStages(this.client, stages, this.until)
      this.#addPart('kwok-controller', (life) => liveAsStagePlayer(this.#tools, life))
    }
    for (const spec of nodeSpecs(this.#options.nodes ?? 1)) this.addNode(spec)
    await this.until(() => this.#areNodesReady(), readyWithinMs)
  }

  get nodes(): readonly SimulatedNode[] {
    return [...this.#nodes.values()]
  }

  clientAs(user: UserInfo): Client {
    const { faults } = this
    const onAnswer = (request: ApiRequest, body: unknown) => this.#lastSeen.note(request, body)
    return createClient(new Link({ component: 'test', faults, activity: this.#activity, server: () => this.#transport(user, 'test'), onAnswer }))
  }

  readonly idle = async (): Promise<void> => {
    await settle(this.#activity)
    this.#virtual?.throwRunaway()
  }

  readonly until = async <T>(check: () => Promise<T | false | undefined>, withinMs = defaultUntilMs): Promise<T> => {
    const deadlineMs = this.clock.monotonicMs() + withinMs
    const complaintsBefore = this.complaints.length
    for (;;) {
      if (this.#virtual) await this.idle()
      this.#lastSeen.clear()
      let failure: unknown
      try {
        const value = await check()
        if (value !== false && value !== undefined) return value
      } catch (error) {
        failure = error
      }
      const nextMs = this.#virtual ? this.#virtual.nextTimerMs() : lookEveryMs
      if (nextMs === undefined || this.clock.monotonicMs() + nextMs > deadlineMs) throw await this.#notWithin(withinMs, check, failure, complaintsBefore)
      await this.clock.advance(nextMs)
    }
  }

  async #notWithin(withinMs: number, check: () => unknown, failure: unknown, complaintsBefore: number): Promise<Error> {
    const what = failure === undefined ? check.toString() : messageOf(failure)
    const seen = await this.#lastSeen.describe(this.client, this.complaints.slice(complaintsBefore))
    return new Error(`not within ${withinMs} ms: ${what}${seen === '' ? '' : `\n${seen}`}`, failure === undefined ? undefined : { cause: failure })
  }

  readonly node = (name: string): SimulatedNode => {
    const node = this.#nodes.get(name)
    if (!node) throw new Error(`there is no simulated node ${name}`)
    return node
  }

  addNode(spec: string | NodeSpec): SimulatedNode {
    const { controllers, profile } = this.#options
    const setup = {
      tools: this.#tools,
      part: this.#partDeps(),
      profile: { ...defaultProfile, ...profile },
      kubeletCredentials: this.#kubeletCredentials,
      ownKubelets: this.#ownKubelets,
      address: simulatedNodeAddress(++this.#addedNodes),
      podCidr: controllers === false ? '10.244.0.0/16' : undefined,
    }
    const node = new SimulatedNode(typeof spec === 'string' ? { name: spec } : spec, setup)
    this.#nodes.set(node.name, node)
    node.start()
    return node
  }

  async stop(part: ControlPlanePart, how: 'stop' | 'crash' = 'stop'): Promise<void> {
    if (part === 'kube-apiserver') this.#loseServer()
    if (how === 'crash') this.#part(part).crash()
    else await this.#letGo(this.#part(part).stop())
  }

  async start(part: ControlPlanePart): Promise<void> {
    this.#part(part).start()
    if (part === 'kube-apiserver') await this.until(async () => this.#server !== undefined)
  }

  async restart(part: ControlPlanePart, how: 'stop' | 'crash' = 'stop'): Promise<void> {
    await this.stop(part, how)
    await this.start(part)
  }

  async compact(): Promise<void> {
    try {
      await this.#store.compact(await this.#store.latestRevision())
    } catch (error) {
      // Nothing was written since the last time.
      if (!isStoreError(error, 'compacted')) throw error
    }
  }

  readonly history = (): readonly Change[] => {
    if (!this.#history) throw new Error('history needs the option recordHistory')
    return this.#history.changes
  }

  readonly listen = async () => {
    const server = this.#server
    if (!server) throw new Error('the API server is not running')
    this.#port ??= testCertificates().then(async ({ cert, key }) => ({
      cert,
      listener: await server.listen({ host: '127.0.0.1', port: 0, tls: { cert, key } }),
    }))
    const { cert, listener } = await this.#port
    return { url: `https://127.0.0.1:${listener.port}`, ca: cert, token: adminToken }
  }

  readonly kubeconfig = async (): Promise<string> => {
    const { url, ca, token } = await this.listen()
    const name = 'skiff-test'
    return toYaml({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      clusters: [{ name, cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    })
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await this.#clockControl?.stop()
    this.faults.clear()
    await this.#letGo(Promise.all(this.nodes.map((node) => node.gone())))
    for (const name of ['kwok-controller', 'kube-scheduler', 'kube-controller-manager', 'kube-apiserver']) {
      if (name === 'kube-apiserver') await (await this.#port)?.listener.close()
      const part = this.#parts.get(name)
      if (part) await this.#letGo(part.gone())
    }
    await this.#history?.close()
    await this.#store.close()
  }

  #addPart(name: ControlPlanePart, live: (life: Life) => Promise<void>): void {
    const part = new Part(name, this.#partDeps(), live)
    this.#parts.set(name, part)
    part.start()
  }

  #partDeps(): PartDeps {
    const { clock, log } = this.#tools
    return { clock, log, faults: this.faults, activity: this.#activity, server: (user, userAgent) => this.#transport(user, userAgent) }
  }

  #part(name: string): Part {
    const part = this.#parts.get(name)
    if (!part) throw new Error(`${name} is not part of this cluster`)
    return part
  }

  #transport(user: UserInfo, userAgent: string): Transport | undefined {
    if (!this.#server) return undefined
    const key = `${user.name} ${user.groups.join(' ')} ${userAgent}`
    const known = this.#transports.get(key) ?? this.#server.transport(user, userAgent)
    this.#transports.set(key, known)
    return known
  }

  async #liveAsApiServer(server: ApiServer, life: Life): Promise<void> {
    const sampler = this.#options.resourceMetrics ? offerResourceMetrics(server, this.#tools, this.#ownKubelets) : undefined
    const running = Promise.all([server.run(life.signal), sampler?.run(life.signal)])
    await Promise.race([server.started, running])
    if (!life.signal.aborted) this.#server = server
    await running
  }

  /** From here on no client reaches it, and watches have ended. */
  #loseServer(): void {
    this.#server = undefined
    this.#transports.clear()
    this.faults.breakWatches()
    this.#activity.lose()
    void this.#port?.then(({ listener }) => listener.close())
    this.#port = undefined
  }

  #crashAndRestart(component: string): void {
    const node = component.startsWith('kubelet/') ? this.#nodes.get(component.slice('kubelet/'.length)) : undefined
    const part = node ? node.kubelet : this.#part(component)
    part.crash()
    part.start()
  }

  async #areNodesReady(): Promise<boolean> {
    if (this.#nodes.size === 0) return true
    const { items } = await this.client.of(nodes).list()
    const ready = items.filter(({ status }) => status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'))
    return ready.length === this.#nodes.size
  }

  /** Waits for something that may wait for time itself, such as a pod's grace period. */
  async #letGo(ending: Promise<unknown>): Promise<void> {
    const state = { isOver: false }
    const over = ending.finally(() => {
      state.isOver = true
    })
    for (let nextMs = this.#virtual ? 0 : undefined; nextMs !== undefined && !state.isOver; nextMs = this.#virtual?.nextTimerMs())
      await this.clock.advance(nextMs).catch((error: unknown) => {
        // A controller that the test still runs must not keep the cluster from closing.
        if (!this.#isClosing) throw error
      })
    await over
  }
}

function nodeSpecs(nodes: NonNullable<ClusterOptions['nodes']>): readonly (string | NodeSpec)[] {
  return typeof nodes === 'number' ? Array.from({ length: nodes }, (_, index) => `n${index + 1}`) : nodes
}

function listeningLog(complaints: string[]): Logger {
  const note = (message: string, fields: unknown) => complaints.push(fields === undefined ? message : `${message} ${JSON.stringify(fields)}`)
  return {
    ...noLog,
    warn: note,
    error: (error, message, fields) => void note(`${message}: ${error instanceof Error ? error.stack : String(error)}`, fields),
    with: () => listeningLog(complaints),
  }
}
