/** What /skiff/traces answers (L1): recorded requests, kept refusals and what components did about an object; for the server and for `skiff explain`. */

/** The header with which an authenticated user asks for the trace of a request. */
export const explainHeader = 'skiff-explain'
export const tracesPath = '/skiff/traces'

export function isTracesPath(path: string): boolean {
  return path === tracesPath || path.startsWith(`${tracesPath}/`)
}

/** One admission plugin that handled the request. */
export interface TracedPlugin {
  readonly name: string
  readonly durationMs: number
  /** Present: the plugin refused. */
  readonly refused?: string
  /** What a mutating plugin changed, one line a field. Values of Secrets are never in it. */
  readonly changes?: readonly string[]
}

/** What one stage decided. */
export interface TraceStage {
  readonly stage: string
  readonly decision: string
  /** The rule, binding or schema by which it decided. */
  readonly rule?: string
  /** When the stage ended, in milliseconds since the epoch, with a fraction. */
  readonly atMs: number
  readonly durationMs: number
  readonly plugins?: readonly TracedPlugin[]
}

export interface TracedObject {
  readonly group: string
  /** Plural. */
  readonly resource: string
  readonly subresource?: string
  readonly namespace: string
  readonly name: string
}

/** One field that validation refused. */
export interface TracedCause {
  readonly field: string
  readonly message: string
}

export interface TracedRequest {
  /** The Audit-ID of the answer. */
  readonly id: string
  /** When the request arrived, in milliseconds since the epoch. */
  readonly atMs: number
  readonly user: string
  /** The impersonated user. */
  readonly as?: string
  /** The groups that authorization used. */
  readonly groups: readonly string[]
  readonly verb: string
  readonly uri: string
  readonly code: number
  readonly durationMs: number
  readonly object?: TracedObject
  /** Empty for a refusal that was made before anyone asked: then only what is kept of every refusal is known. */
  readonly stages: readonly TraceStage[]
  /** The store's revision of the write. */
  readonly revision?: number
  /** How many open watches the write was passed to. */
  readonly watchers?: number
  /** The reason and message of the Status, if the request was refused. */
  readonly reason?: string
  readonly message?: string
  readonly causes?: readonly TracedCause[]
  /** The stage or admission plugin that refused. */
  readonly refusedBy?: string
}

/** Something that a component did about an object. */
export interface ObjectEvent {
  /** kube-scheduler, kubelet, or a controller's name. */
  readonly component: string
  /** attempt, bind, reconcile, sync, or a call of the runtime. */
  readonly what: string
  /** `pods/default/web`: the resource, the namespace if there is one, the name. */
  readonly object: string
  readonly node?: string
  /** When it began, in milliseconds since the epoch, with a fraction. */
  readonly atMs: number
  readonly durationMs: number
  /** How long it waited in a queue before. */
  readonly waitedMs?: number
  readonly result: string
}

/** GET /skiff/traces/ID. */
export interface ExplainedRequest extends TracedRequest {
  /** What would allow a refused request, at most three lines. */
  readonly advice?: readonly string[]
}

/** GET /skiff/traces?object=…|user=…|since=…, the newest request first; events by time. */
export interface TraceList {
  readonly requests: readonly ExplainedRequest[]
  readonly events: readonly ObjectEvent[]
  /** True: there are more than the answer holds. */
  readonly truncated: boolean
  /** With `since`: the server's time, for the next question, in milliseconds since the epoch. */
  readonly nowMs?: number
  /** With `since`, while a rule for a sample holds: how many requests there were since it began, and how many of them are recorded. */
  readonly sampled?: { readonly seen: number; readonly kept: number }
}

/** POST /skiff/traces/rules: one of `user`, `object` and `perSecond`. */
export interface TraceRule {
  readonly user?: string
  readonly object?: string
  /** Records at most so many requests of all users each second, and as many events. */
  readonly perSecond?: number
  /** How long the rule holds. */
  readonly seconds: number
}

/** `pods/default/web`, `nodes/n1`. */
export function objectKey(resource: string, namespace: string, name: string): string {
  return namespace === '' ? `${resource}/${name}` : `${resource}/${namespace}/${name}`
}
