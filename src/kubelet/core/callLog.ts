/**
 * The last calls of this kubelet to the container runtime and to CSI drivers, and those of the runtime to CNI plugins (L3): a ring of bounded size, for people who ask
 * what was done for a pod. Values that may be secret are replaced before they are kept.
 */
import type { NodeCall } from '#api/debug/nodeCalls'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { shortText } from '#base/shortText'
import { GrpcError } from '#grpc/grpcError'

/** The call, as far as it is known before the answer. */
export interface CallStart extends Pick<NodeCall, 'api' | 'method' | 'pod' | 'volume'> {
  readonly podUid?: string | undefined
  readonly request: object
}

export interface CallLog {
  /** Does the call. @throws what it throws */
  record<T>(start: CallStart, call: () => Promise<T>): Promise<T>
  /** Keeps a call that another program has made and recorded, without secrets. */
  add(call: NodeCall & { readonly podUid?: string | undefined }): void
  /**
   * With a pod, also calls for its volumes that name no pod. Without a filter, all calls.
   * @param podOf the pod by its uid, which is all that a call to a CSI driver has
   */
  find(wanted: { readonly pod?: string | undefined; readonly volume?: string | undefined }, podOf?: (uid: string) => string | undefined): NodeCall[]
}

const maxCalls = 500
/** The longest text of a request or an answer. */
const maxText = 2048

type Kept = { -readonly [Key in keyof NodeCall]: NodeCall[Key] } & { readonly podUid: string | undefined }

export function createCallLog(clock: Clock): CallLog {
  const calls: Kept[] = []
  const keep = (call: Kept, at = calls.length) => {
    calls.splice(at, 0, call)
    if (calls.length > maxCalls) calls.shift()
  }
  return {
    add: ({ podUid, request, answer, ...call }) => {
      const kept = { ...call, podUid, request: shortText(request, maxText), answer: answer === undefined ? undefined : shortText(answer, maxText) }
      // Calls stand in the order of their beginnings, and this one may be older than those that were recorded meanwhile.
      keep(kept, calls.findLastIndex(({ time }) => time <= call.time) + 1)
    },
    record: async ({ api, method, pod, podUid, volume, request }, call) => {
      const beganMs = clock.monotonicMs()
      const kept: Kept = { api, method, time: new Date(clock.now()).toISOString(), pod, podUid, volume, request: shownText(request) }
      keep(kept)
      const end = (code: string, answer: string) => Object.assign(kept, { milliseconds: Math.round(clock.monotonicMs() - beganMs), code, answer })
      try {
        const answer = await call()
        end('OK', shownText(answer as object))
        return answer
      } catch (error) {
        end(error instanceof GrpcError ? error.code : 'UNKNOWN', shortText(messageOf(error), maxText))
        throw error
      }
    },
    find: ({ pod, volume }, podOf = () => undefined) => {
      const ownNames = new Map(calls.flatMap((one) => (one.podUid !== undefined && one.pod !== undefined ? [[one.podUid, one.pod] as const] : [])))
      const named = calls.map(({ podUid = '', ...one }) => ({ ...one, pod: one.pod ?? ownNames.get(podUid) ?? podOf(podUid) }))
      const volumes = new Set(named.flatMap((one) => (pod !== undefined && one.pod === pod && one.volume !== undefined ? [one.volume] : [])))
      return named.filter((one) => {
        if (pod !== undefined) return one.pod === pod || (one.pod === undefined && one.volume !== undefined && volumes.has(one.volume))
        return volume === undefined || one.volume === volume
      })
    },
  }
}

const hidden = '***'
/** Members whose values are secret in whole, in CRI and in CSI. */
const secretMembers = new Set(['secrets', 'auth', 'publishContext'])
/** CSI's, in the context of a volume. */
const tokenKey = 'csi.storage.k8s.io/serviceAccount.tokens'
/** The kubelet has put values of variables into them, for `$(NAME)`. */
const wordMembers = new Set(['command', 'args'])
/** A shorter value is part of many words, and no secret. */
const leastValue = 4

function shownText(message: object): string {
  const values = environmentValues(message)
  const text = JSON.stringify(message, function (this: unknown, key: string, value: unknown) {
    // The message itself.
    if (key === '') return value
    if (secretMembers.has(key) && value) return hideValues(value)
    if (key === tokenKey) return hidden
    // Keep the names of environment variables, not their values.
    if (key === 'envs' && Array.isArray(value)) return value.map(({ key: name }: { key: string }) => name)
    if (wordMembers.has(key) && Array.isArray(value)) return value.map((word) => withoutValues(String(word), values))
    // The address of a stream connects its reader to the container.
    if (key === 'url' && value) return hidden
    // Those of a pod hold what was applied, values of its environment included.
    if (key === 'annotations' && value) return Object.keys(value)
    return isDefault(value) ? undefined : value
  })
  return shortText(text, maxText)
}

/** The values of the container's variables in the message; the longest first, since one may be part of another. */
function environmentValues(message: object): string[] {
  const { envs = [] } = (message as { readonly config?: { readonly envs?: readonly { readonly value: string | Uint8Array }[] } | null }).config ?? {}
  const values = envs.map(({ value }) => (typeof value === 'string' ? value : Buffer.from(value).toString()))
  return values.filter((value) => value.length >= leastValue).sort((one, other) => other.length - one.length)
}

const withoutValues = (word: string, values: readonly string[]) => values.reduce((text, value) => text.replaceAll(value, hidden), word)

function hideValues(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return hidden
  const keys = Object.keys(value)
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key) => [key, hidden]))
}

/** Messages name every member; those that say nothing are left out. */
function isDefault(value: unknown): boolean {
  if (value === null || value === '' || value === false) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}
