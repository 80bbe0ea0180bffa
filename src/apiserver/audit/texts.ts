/**
 * Caches JSON texts that audit events repeat (L3): users, addresses, agents, reasons and the second of a time are the same in thousands of events.
 * Bounded: an evicted text is made again.
 */
import { formatTime } from '#base/time'
import type { ServerRequest, UserInfo } from '../core/request.ts'
import { sourceIps } from './sourceIps.ts'

export interface Origin {
  readonly ips: readonly string[]
  /** The event's member `sourceIPs`, with its comma; empty where the addresses are unknown. */
  readonly json: string
}

/** Longer texts are not cached. */
const longestKept = 512
const mostKept = 2048
/** Up to this length, checking each character is faster than JSON.stringify. */
const longestLookedAt = 256

/** What requests of one caller have in common: the verb, the source addresses and the user agent. */
interface Caller {
  readonly verb: string
  readonly origin: Origin
  readonly userAgent: string | undefined
  readonly json: string
}

/** Callers cached for each user; the texts of further ones are made each time. */
const mostCallers = 4

export class AuditTexts {
  readonly #users = new WeakMap<UserInfo, string>()
  readonly #callers = new WeakMap<UserInfo, Caller[]>()
  readonly #members = new Map<string, Map<string, string>>()
  #memberCount = 0
  readonly #origins = new Map<string, Origin>()
  readonly #quoted = new Map<string, string>()
  #second = Number.NaN
  #upToSecond = ''
  #timeMs = Number.NaN
  #time = ''

  /** As `{"username":…}`. */
  user(user: UserInfo): string {
    let json = this.#users.get(user)
    if (json === undefined) {
      const { name, uid, groups, extra } = user
      json = JSON.stringify({ username: name, uid: uid || undefined, groups: groups.length > 0 ? groups : undefined, extra })
      this.#users.set(user, json)
    }
    return json
  }

  /** As `,"verb":…,"user":…,"sourceIPs":…,"userAgent":…`, for a request without impersonation. */
  caller(verb: string, user: UserInfo | undefined, origin: Origin, userAgent: string | undefined): string {
    if (!user || (userAgent && userAgent.length > longestKept)) return this.#callerOf(verb, user ? this.user(user) : '{}', origin, userAgent)
    let callers = this.#callers.get(user)
    if (!callers) {
      callers = []
      this.#callers.set(user, callers)
    }
    for (const known of callers) if (known.verb === verb && known.userAgent === userAgent && known.origin === origin) return known.json
    const json = inOnePiece(this.#callerOf(verb, this.user(user), origin, userAgent))
    if (callers.length >= mostCallers) callers.shift()
    callers.push({ verb, origin, userAgent, json })
    return json
  }

  #callerOf(verb: string, user: string, origin: Origin, userAgent: string | undefined): string {
    return `,"verb":${quote(verb)},"user":${user}${origin.json}${userAgent ? `,"userAgent":${this.quoted(userAgent)}` : ''}`
  }

  /** As `"key":"value"`. */
  member(key: string, value: string): string {
    if (key.length > longestKept || value.length > longestKept) return `${JSON.stringify(key)}:${JSON.stringify(value)}`
    return this.#members.get(key)?.get(value) ?? this.#keepMember(key, value)
  }

  #keepMember(key: string, value: string): string {
    if (this.#memberCount++ >= mostKept) {
      this.#members.clear()
      this.#memberCount = 0
    }
    const json = inOnePiece(`${JSON.stringify(key)}:${JSON.stringify(value)}`)
    const ofKey = this.#members.get(key) ?? new Map<string, string>()
    this.#members.set(key, ofKey.set(value, json))
    return json
  }

  origin(request: Pick<ServerRequest, 'headers' | 'remoteAddress'>): Origin {
    const { headers, remoteAddress } = request
    if (headers['x-forwarded-for'] !== undefined || headers['x-real-ip'] !== undefined) return originOf(sourceIps(request))
    let origin = this.#origins.get(remoteAddress)
    if (!origin) {
      origin = originOf(sourceIps(request))
      keep(this.#origins, remoteAddress, origin)
    }
    return origin
  }

  /** The quoted text, cached because many events contain it. */
  quoted(text: string): string {
    if (text.length > longestKept) return JSON.stringify(text)
    let json = this.#quoted.get(text)
    if (json === undefined) {
      json = JSON.stringify(text)
      keep(this.#quoted, text, json)
    }
    return json
  }

  /** As metav1.MicroTime, without quotes. */
  time(epochMs: number): string {
    if (epochMs === this.#timeMs) return this.#time
    const second = Math.floor(epochMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#upToSecond = `${formatTime(second * 1000).slice(0, -1)}.`
    }
    const micros = Math.min(999_999, Math.round((epochMs - second * 1000) * 1000))
    this.#timeMs = epochMs
    this.#time = `${this.#upToSecond + String(1_000_000 + micros).slice(1)}Z`
    return this.#time
  }
}

/** Flattens a concatenated string: V8 would flatten it again in each text that contains it. */
function inOnePiece(text: string): string {
  return Buffer.from(text).toString()
}

function originOf(ips: readonly string[]): Origin {
  return { ips, json: ips.length > 0 ? `,"sourceIPs":${JSON.stringify(ips)}` : '' }
}

function keep<V>(map: Map<string, V>, key: string, value: V): void {
  if (map.size >= mostKept) map.clear()
  map.set(key, value)
}

/** Quotes a text that differs between events: most need no escapes, only the quotes. */
export function quote(text: string): string {
  if (text.length > longestLookedAt) return JSON.stringify(text)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return JSON.stringify(text)
  }
  return `"${text}"`
}
