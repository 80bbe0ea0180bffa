/**
 * Faults on purpose: calls of a cluster's components that are refused, delayed, or answered without the answer arriving; watches that break;
 * components that die at their Nth call. Every component's way to the API server goes through a Link, which asks here first.
 */
import { StatusError, type StatusReason } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { ApiRequest, ApiResponse, Transport, WatchEvent } from '#client/transport'
import type { Activity } from './settle.ts'

/** A request as faults see it. */
export interface Call {
  /** The caller: kube-controller-manager, kube-scheduler, kubelet/NODE, test. */
  readonly component: string
  readonly verb: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

/** Which calls; what is absent matches all. */
export interface FaultSelector {
  readonly component?: string | undefined
  readonly verb?: string | undefined
  readonly resource?: string | undefined
  readonly subresource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  /** Only the Nth of those calls, counted from 1. */
  readonly nth?: number | undefined
  /** At most so many times. */
  readonly times?: number | undefined
}

export interface Fault {
  /** How often it struck. */
  readonly hits: number
  remove(): void
}

type Action =
  | { readonly type: 'refuse'; readonly error: Error }
  | { readonly type: 'delay'; readonly ms: () => number }
  | { readonly type: 'drop'; readonly what: 'request' | 'answer' }
  | { readonly type: 'die'; readonly when: 'before' | 'after' }

/** What becomes of the answer: 'die': it is lost together with the one who asked. */
type Outcome = 'deliver' | 'lose' | 'die'

interface Rule {
  readonly selector: FaultSelector
  readonly action: Action
  seen: number
  hits: number
}

/** What a connection that breaks looks like to a client. */
export function connectionLost(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}

export function connectionRefused(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

export class Faults {
  readonly #clock: Clock
  readonly #activity: Activity
  readonly #rules = new Set<Rule>()
  readonly #watches = new Set<{ readonly call: Call; readonly break: () => void }>()
  #crash: (component: string) => void = () => {}

  constructor(clock: Clock, activity: Activity) {
    this.#clock = clock
    this.#activity = activity
  }

  /** Answers with an error of the API (a Status reason such as TooManyRequests, Conflict, InternalError) or with any other error. */
  refuse(selector: FaultSelector, error: StatusReason | Error = 'InternalError'): Fault {
    return this.#add(selector, { type: 'refuse', error: typeof error === 'string' ? new StatusError(error, `${error}: a fault on purpose`) : error })
  }

  /** Lets calls, and for verb watch each batch of events, wait. */
  delay(selector: FaultSelector, ms: number | (() => number)): Fault {
    return this.#add(selector, { type: 'delay', ms: typeof ms === 'number' ? () => ms : ms })
  }

  /** The connection breaks before the request arrives, or after it was carried out and before its answer arrives. */
  drop(selector: FaultSelector, what: 'request' | 'answer' = 'request'): Fault {
    return this.#add(selector, { type: 'drop', what })
  }

  /**
   * The component dies at its Nth call from now, before the call goes out (or, `after`, when it has been carried out and the answer is lost), without
   * tidying up, and is started again.
   */
  crashAt(component: string, nth: number, when: 'before' | 'after' = 'before'): Fault {
    return this.#add({ component, nth }, { type: 'die', when })
  }

  /** Ends open watches as a lost connection does; returns their number. */
  breakWatches(selector: Omit<FaultSelector, 'nth' | 'times' | 'verb'> = {}): number {
    const chosen = [...this.#watches].filter(({ call }) => matches(selector, call))
    for (const watch of chosen) watch.break()
    return chosen.length
  }

  /** Takes every fault back. */
  clear(): void {
    this.#rules.clear()
  }

  /** For the cluster: what makes a component die. */
  onCrash(crash: (component: string) => void): void {
    this.#crash = crash
  }

  crash(component: string): void {
    this.#crash(component)
  }

  /** Runs before a call is sent: waits, throws, or returns what happens to the answer. */
  async before(call: Call, signal: AbortSignal | undefined): Promise<Outcome> {
    let outcome: Outcome = 'deliver'
    for (const action of this.#striking(call)) {
      if (action.type === 'refuse') throw action.error
      if (action.type === 'delay') await this.#activity.pause(this.#clock.sleep(action.ms(), signal))
      if (action.type === 'drop' && action.what === 'request') throw connectionLost()
      if (action.type === 'drop') outcome = 'lose'
      if (action.type === 'die' && action.when === 'before') this.#crash(call.component)
      if (action.type === 'die' && action.when === 'after') outcome = 'die'
    }
    return outcome
  }

  /** Before events of a watch are handed over. */
  async beforeEvents(call: Call, signal: AbortSignal): Promise<void> {
    for (const rule of this.#rules) {
      if (rule.action.type === 'delay' && rule.selector.verb === 'watch' && matches(rule.selector, call)) {
        await this.#clock.sleep(rule.action.ms(), signal).catch(() => {})
      }
    }
  }

  get active(): boolean {
    return this.#rules.size > 0
  }

  /** Remembers an open watch until the returned function is called. */
  track(call: Call, breakIt: () => void): () => void {
    const watch = { call, break: breakIt }
    this.#watches.add(watch)
    return () => void this.#watches.delete(watch)
  }

  #add(selector: FaultSelector, action: Action): Fault {
    const rule: Rule = { selector, action, seen: 0, hits: 0 }
    this.#rules.add(rule)
    return {
      get hits() {
        return rule.hits
      },
      remove: () => void this.#rules.delete(rule),
    }
  }

  #striking(call: Call): Action[] {
    const actions: Action[] = []
    for (const rule of this.#rules) {
      if (!matches(rule.selector, call)) continue
      rule.seen++
      const { nth, times = nth === undefined ? Number.POSITIVE_INFINITY : 1 } = rule.selector
      if (nth !== undefined && rule.seen < nth) continue
      rule.hits++
      if (rule.hits >= times) this.#rules.delete(rule)
      actions.push(rule.action)
    }
    return actions
  }
}

function matches(selector: FaultSelector, call: Call): boolean {
  return (['component', 'verb', 'resource', 'subresource', 'namespace', 'name'] as const).every((key) => {
    const wanted = selector[key]
    return wanted === undefined || wanted === call[key]
  })
}

const verbs = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete', GET: 'get' } as const

/** What a request's path and method mean. */
export function callOf(component: string, request: ApiRequest, watch: boolean): Call {
  const parts = request.path.split('/').filter((part) => part !== '')
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2 && !['status', 'finalize'].includes(rest[2] ?? '')
  const [resource = '', name = '', subresource = ''] = isNamespaced ? rest.slice(2) : rest
  const one = name !== ''
  const many = request.method === 'GET' ? 'list' : request.method === 'DELETE' ? 'deletecollection' : verbs[request.method]
  return { component, verb: watch ? 'watch' : one ? verbs[request.method] : many, resource, subresource, namespace: isNamespaced ? (rest[1] ?? '') : '', name }
}

export interface LinkDeps {
  readonly component: string
  readonly faults: Faults
  readonly activity: Activity
  /** The API server of this moment, as this caller; undefined: none is running. */
  server(): Transport | undefined
  /** Gets each answer that arrives. */
  readonly onAnswer?: ((request: ApiRequest, body: unknown) => void) | undefined
}

/** A component's way to the API server, which can be cut: for the component the server is gone, and for the server the component. */
export class Link implements Transport {
  readonly #deps: LinkDeps
  readonly #open = new Set<() => void>()
  #isCut = false

  constructor(deps: LinkDeps) {
    this.#deps = deps
  }

  cut(): void {
    this.#isCut = true
    for (const breakIt of [...this.#open]) breakIt()
  }

  mend(): void {
    this.#isCut = false
  }

  async request(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse> {
    const { activity, faults, component, onAnswer } = this.#deps
    activity.begin()
    try {
      const outcome = faults.active ? await faults.before(callOf(component, request, false), signal) : 'deliver'
      const server = this.#server()
      const answer = await this.#answer(server, request, signal)
      if (outcome === 'die') faults.crash(component)
      if (this.#isCut || outcome === 'lose' || this.#deps.server() !== server) throw connectionLost()
      onAnswer?.(request, answer.body)
      return answer
    } catch (error) {
      // Made where the server refuses; the reader looks for the line of the test or controller that made the call.
      if (error instanceof StatusError) Error.captureStackTrace(error)
      throw error
    } finally {
      activity.end()
    }
  }

  async *watch(request: ApiRequest, signal: AbortSignal): AsyncGenerator<readonly WatchEvent[]> {
    const { activity, faults, component } = this.#deps
    const call = callOf(component, request, true)
    if (faults.active) {
      activity.begin()
      await faults.before(call, signal).finally(() => activity.end())
    }
    const server = this.#server()
    const broken = new AbortController()
    const onAbort = () => broken.abort(signal.reason)
    const breakIt = () => broken.abort(connectionLost())
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    this.#open.add(breakIt)
    const forget = faults.track(call, breakIt)
    try {
      for await (const batch of server.watch(request, broken.signal)) {
        if (faults.active) await faults.beforeEvents(call, broken.signal)
        if (broken.signal.aborted) break
        yield batch
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#open.delete(breakIt)
      forget()
    }
    if (broken.signal.aborted && !signal.aborted) throw connectionLost()
  }

  /** A promise that stays pending when the server or the connection is lost. */
  #answer(server: Transport, request: ApiRequest, signal: AbortSignal | undefined): Promise<ApiResponse> {
    return new Promise((resolve, reject) => {
      const { losses } = this.#deps.activity
      const lost = () => reject(connectionLost())
      losses.add(lost)
      this.#open.add(lost)
      const over = () => {
        losses.delete(lost)
        this.#open.delete(lost)
      }
      const answered = (answer: ApiResponse) => {
        over()
        resolve(answer)
      }
      const failed = (error: unknown) => {
        over()
        reject(error)
      }
      server.request(request, signal).then(answered, failed)
    })
  }

  #server(): Transport {
    const server = this.#isCut ? undefined : this.#deps.server()
    if (!server) throw connectionRefused()
    return server
  }
}
